import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// The guide for iOS shows code of PlansApp, and of `AppleSnippets.swift`. What does not need Apple's frameworks runs
/// here.
@MainActor @Suite struct AppleSnippetTests {
  private static let source = "Tests/MusterKitTests/Documentation/AppleSnippets.swift"

  /// The lines of the app's files, without their indentation.
  private func appLines() throws -> [[String]] {
    let folder = Program.checkout.appending(path: "Examples/PlansApp")
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    return try names.map { Self.lines(of: try Guide.read("Examples/PlansApp/\($0)")) }
  }

  private static func lines(of text: String) -> [String] {
    text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
  }

  @Test func `every block of Swift in the guide is a part of the app or of the snippets`() throws {
    let (blocks, snippets, files) = (
      try Guide.blocks(in: "docs/ios.md"), try Guide.snippets(in: Self.source), try appLines()
    )
    #expect(blocks.count > 10)
    for block in blocks where !snippets.contains(block) {
      let lines = Self.lines(of: block)
      let isOfTheApp = files.contains { file in
        file.indices.contains { file[$0...].starts(with: lines) }
      }
      #expect(isOfTheApp, "This is in no file:\n\(block)")
    }
    #expect(Set(snippets).subtracting(blocks) == [], "The guide does not show these.")
  }

  /// A phone with the demo's lists in a folder. Its network may be lost.
  private func phone() async throws -> (client: MusterClient, transport: PreviewTransport, folder: URL) {
    let transport = try PreviewTransport(folder: try await ExportedDemo.today)
    let client = MusterClient(
      baseURL: transport.baseURL, tokens: MemoryTokenStore(transport.tokens), transport: transport, retries: .never)
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-guide-\(UUID().uuidString)")
    return (client, transport, folder)
  }

  @Test func `a widget shows the app's list without a network`() async throws {
    let (client, transport, folder) = try await phone()
    defer { try? FileManager.default.removeItem(at: folder) }
    #expect(try await nextPlan(client, in: folder) == nil)
    #expect(await refreshInBackground(client, in: folder))
    transport.failures = .offline
    let next = try #require(try await nextPlan(client, in: folder))
    #expect(next.myStatus == .going && next.startTime > .now)
    #expect(await !refreshInBackground(client, in: folder))
  }

  @Test func `an answer of an extension is sent, or waits for the app`() async throws {
    let (client, transport, folder) = try await phone()
    defer { try? FileManager.default.removeItem(at: folder) }
    let app = try MusterStore(client: client, folder: folder)
    try await app.refresh()
    #expect(try await answer(.maybe, to: ExportedDemo.trailRun, client, in: folder))
    try await app.refresh()
    #expect(app.events.items.first { $0.id == ExportedDemo.trailRun }?.myStatus == .maybe)

    transport.failures = .offline
    #expect(try await !answer(.going, to: ExportedDemo.trailRun, client, in: folder))
    transport.failures = .none
    try await app.refresh()
    #expect(app.events.items.first { $0.id == ExportedDemo.trailRun }?.myStatus == .going)
    #expect(try await client.events.get(ExportedDemo.trailRun).myStatus == .going)
  }

  @Test func `a push is translated with its own words, and each sentence of the service can be`() throws {
    let push: [AnyHashable: Any] = ["loc-key": "event-invited", "loc-args": ["Ben %2$@", "Pasta"]]
    #expect(sentence(of: push) { _ in "%2$@: %1$@ lädt dich ein." } == "Pasta: Ben %2$@ lädt dich ein.")
    #expect(sentence(of: push) { _ in "%3$@!" } == "!")
    #expect(sentence(of: push) { _ in nil } == nil)
    #expect(sentence(of: ["aps": ["badge": 1]]) { _ in "never" } == nil)
    let strings = try Guide.read("docs/Localizable.strings")
    let formats = strings.matches(of: /"([^"]+)" = "([^"]+)";/).map { (String($0.1), String($0.2)) }
    #expect(formats.count > 30)
    for (key, format) in formats {
      let text = sentence(of: ["loc-key": key, "loc-args": ["a", "b", "c", "d", "e"]]) { $0 == key ? format : nil }
      #expect(text?.contains("$@") == false, "\(key)")
    }
  }
}
