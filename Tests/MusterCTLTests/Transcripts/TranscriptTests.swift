import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import musterctl

/// The sessions in docs/musterctl.md are what a user sees today.
@Suite struct TranscriptTests {
  private static let page = Program.checkout.appending(path: "docs/musterctl.md")

  /// `Scripts/record-musterctl` sets this variable to write the page instead of checking it.
  private static let isRecording = ProcessInfo.processInfo.environment["MUSTER_RECORD_TRANSCRIPTS"] != nil

  @Test func `the recorded sessions still look the same`() async throws {
    let page = Transcript(try String(contentsOf: Self.page, encoding: .utf8))
    #expect(page.commands.count >= 20)
    try await Demo.run { demo in
      var run = TranscriptRun(on: demo)
      let new = try await run.record(page)
      if Self.isRecording {
        return try page.updated(from: new).text.write(to: Self.page, atomically: true, encoding: .utf8)
      }
      for (old, new) in zip(page.commands, new.commands) {
        #expect(
          new.shape == old.shape,
          "\(old.user)$ \(old.line) printed:\n\(new.output.joined(separator: "\n"))\nRun Scripts/record-musterctl.")
      }
    }
  }

  @Test func `pages are read and written unchanged`() throws {
    let text = try String(contentsOf: Self.page, encoding: .utf8)
    #expect(Transcript(text).text == text)
  }

  @Test func `times, ids and widths do not matter`() {
    func shape(_ line: String) -> [String] { Transcript.Command(user: "rosa", line: "", output: [line]).shape }
    #expect(shape("4902ab  Fri 1 May 19:00  Pasta") == shape("00aa11  Thu 31 Dec 2026 20:00    Pasta"))
    #expect(shape("rosa  Rosa  2026-05-01") == shape("rosa  Rosa  2027-12-31"))
    #expect(shape("rosa  Rosa") != shape("rosa  Rose"))
  }

  /// The words after `musterctl` of each command that runs.
  private func commands(of parent: any ParsableCommand.Type, after words: [String] = []) -> [String] {
    parent.configuration.subcommands.flatMap { command in
      let line = words + [command._commandName]
      let inner = commands(of: command, after: line)
      return inner.isEmpty ? [line.joined(separator: " ")] : inner
    }
  }

  @Test func `the page lists every command and exit status`() throws {
    let text = try String(contentsOf: Self.page, encoding: .utf8)
    let section = try #require(text.components(separatedBy: "\n## Commands\n").dropFirst().first)
    let rows = section.components(separatedBy: "\n## ")[0].matches(of: /\n\| `([a-z -]+)[^`]*`/)
    let listed = rows.map { $0.1.trimmingCharacters(in: .whitespaces) }
    #expect(listed.sorted() == commands(of: MusterCTL.self).sorted())
    for status in ["0", "1", "2", "3", "4", "130"] { #expect(text.contains("| \(status) |")) }
  }
}
