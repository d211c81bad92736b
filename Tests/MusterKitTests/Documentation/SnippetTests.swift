import Foundation
import MusterKit
import TestSupport
import Testing

/// The guides show code that compiles: each block of Swift is a part of `Snippets.swift`, or of `GettingStarted.swift`,
/// which also runs.
@Suite struct SnippetTests {
  /// Blocks that begin like this cannot be compiled here, or are not part of a program.
  private static let exceptions = ["import SwiftUI", "// Package.swift"]

  private func snippets(of file: String) throws -> [String] {
    try Guide.snippets(in: "Tests/MusterKitTests/Documentation/\(file)")
  }

  private func blocks(of guide: String) throws -> [String] {
    try Guide.blocks(in: guide).filter { block in !Self.exceptions.contains { block.hasPrefix($0) } }
  }

  @Test func `every block of Swift in the reference is compiled, and the other way around`() throws {
    let (blocks, snippets) = (try blocks(of: "docs/client.md"), try snippets(of: "Snippets.swift"))
    #expect(blocks.count > 10)
    #expect(Set(blocks).symmetricDifference(snippets) == [])
  }

  @Test func `the blocks of the first guide are one program, in this order`() throws {
    let blocks = try blocks(of: "docs/getting-started.md")
    #expect(blocks.count > 5)
    #expect(try snippets(of: "GettingStarted.swift") == blocks)
  }

  @Test @MainActor func `the program of the first guide runs against the demo`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-guide-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try await MusterServer.run { server in
      try await server.seedDemo()
      let ben = MusterClient(baseURL: server.url)
      _ = try await ben.auth.logIn(as: "ben", password: "plans-with-friends")
      let guide = await GettingStarted(
        server: server.url, folder: folder, deviceToken: Data(repeating: 0xab, count: 32),
        meanwhile: { event in try await ben.events.answer(.going, to: event.id) })
      let (store, answered, own) = try await guide.run()
      // The store sends the answer, and shows Ben's.
      let dev = MusterClient(baseURL: server.url)
      _ = try await dev.auth.logIn(as: "dev", password: "plans-with-friends")
      try await eventually(within: .seconds(60)) {
        let shown = await store.events.items.first { $0.id == own.id }
        let guests = try await dev.events.guests(of: answered.id).items
        return shown?.counts?.going == 1 && guests.first { $0.user?.username == "ana" }?.status == .going
      }
      #expect(await store.outbox.refusals.isEmpty)
      await store.stop()
    }
  }

  @Test func `the app has fewer than 1,750 lines`() throws {
    let folder = Program.checkout.appending(path: "Examples/PlansApp")
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    let lines = try names.map { name in
      try String(contentsOf: folder.appending(path: name), encoding: .utf8).split(
        separator: "\n", omittingEmptySubsequences: false
      ).count - 1
    }
    #expect(names.count > 10 && lines.reduce(0, +) < 1750)
  }
}
