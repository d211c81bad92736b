import Foundation
import Postgres
import TestSupport

@testable import musterctl

/// Runs the sessions of a page again, in order, in terminals.
struct TranscriptRun {
  /// The answer to each question for a password.
  private static let password = "a long evening"
  /// The questions of commands.
  private static let questions: KeyValuePairs = [
    "register": ["Password: ", "Again: "], "login": ["Password: "],
    "password": ["Current password: ", "New password: ", "Again: "], "events cancel": ["[y/N] "],
    "sessions end": ["[y/N] "],
  ]
  /// Wide enough for the page's tables on every day of the year.
  private static let columns = 100

  let demo: Demo
  private var watching: (terminal: PseudoTerminal, part: Int, command: Int)?

  init(on demo: Demo) { self.demo = demo }

  /// - Returns: the page with the output of this run.
  mutating func record(_ page: Transcript) async throws -> Transcript {
    var page = page
    for (index, part) in page.parts.enumerated() {
      switch part {
      case .text(let line):
        if line.hasPrefix("## ") { try await endWatching(&page) }
      case .session(var commands):
        for number in commands.indices {
          if commands[number].line.hasPrefix("musterctl watch") {
            // Its output is what happens until the end of the section.
            watching = (try await watch(commands[number]), index, number)
          } else {
            commands[number].output = try await run(commands[number])
          }
        }
        page.parts[index] = .session(commands)
      }
    }
    try await endWatching(&page)
    return page
  }

  private func run(_ command: Transcript.Command) async throws -> [String] {
    // As if the user took the time to type.
    try await eventually { try await isSettled() }
    let terminal = try start(command)
    for (beginning, questions) in TranscriptRun.questions where command.line.hasPrefix("musterctl \(beginning)") {
      for question in questions where !command.line.contains("--yes") {
        try await terminal.waitForOutput(question)
        terminal.type(question == "[y/N] " ? "y\n" : TranscriptRun.password + "\n")
      }
    }
    _ = try await terminal.exitStatus()
    if command.line.hasPrefix("musterctl register") {
      // As if the user had followed the link in the mail.
      try await demo.execute("UPDATE users SET email_verified_at = now() WHERE email_verified_at IS NULL")
    }
    return lines(of: terminal)
  }

  private func watch(_ command: Transcript.Command) async throws -> PseudoTerminal {
    let terminal = try start(command)
    try await terminal.waitForOutput("Watching")
    return terminal
  }

  private mutating func endWatching(_ page: inout Transcript) async throws {
    guard let (terminal, part, command) = watching else { return }
    watching = nil
    try await eventually { try await isSettled() }
    // Longer than the stream needs.
    try await Task.sleep(for: .seconds(1))
    terminal.type("\u{3}")
    _ = try await terminal.exitStatus()
    guard case .session(var commands) = page.parts[part] else { return }
    commands[command].output = lines(of: terminal)
    page.parts[part] = .session(commands)
  }

  private func start(_ command: Transcript.Command) throws -> PseudoTerminal {
    let folder = URL(filePath: Program.path("musterctl")).deletingLastPathComponent().path
    let environment = demo.environment(as: command.user)
      .merging(["PATH": "\(folder):/usr/bin:/bin", "NO_COLOR": "1"]) { $1 }
    return try PseudoTerminal(
      "/bin/sh", ["-c", command.line], environment: environment, columns: TranscriptRun.columns, in: demo.home.path)
  }

  private func lines(of terminal: PseudoTerminal) -> [String] {
    let text = terminal.output.replacing(demo.url, with: "http://127.0.0.1:8080")
      .replacing("://muster.test", with: "://127.0.0.1:8080")
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).trimmingTrailingSpaces }
    while lines.last?.isEmpty == true { lines.removeLast() }
    return lines
  }

  /// Whether all notices are in the inboxes.
  private func isSettled() async throws -> Bool {
    try await ScriptConnection.run(demo.databaseURL) {
      try $0.rows("SELECT 1 FROM notification_queue LIMIT 1").isEmpty
    }
  }
}
