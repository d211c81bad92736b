import Foundation
import Testing

@testable import MusterKit

/// Files of the outbox that cannot be decoded.
@MainActor @Suite struct DamagedFileTests {
  private let event = ScriptedServer.event(1)
  private let write = Write.answer(.going, to: ScriptedServer.event(1).id)

  /// Makes a write, replaces its file, makes another write, and launches the app again.
  private func run(
    _ replace: (String) -> String, _ body: @MainActor (TestStore, ScriptedServer, URL) async throws -> Void
  ) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await test.store.perform(write)
      let file = try #require(test.files.first { $0.path.contains("/outbox/") })
      try Data(replace(try String(contentsOf: file, encoding: .utf8)).utf8).write(to: file)
      try await test.store.perform(.createEvent(EventDraft(title: "Quiz", startTime: ScriptedServer.noon)))
      try await test.relaunch()
      try await body(test, server, file)
    }
  }

  nonisolated private static let format = "\"format\":\(OutboxRecord.currentFormat)"

  nonisolated private static let damages: [@Sendable (String) -> String] = [
    { _ in "" }, { _ in "{" }, { String($0.prefix($0.count / 2)) }, { "x" + $0 },
    { $0.replacing("\"waiting\"", with: "\"wai*ing\"") }, { $0.replacing(format, with: "\"format\":\"1\"") },
    { $0.replacing("\"answer\"", with: "\"anqwer\"") },
  ]

  @Test(arguments: damages.indices)
  func `a damaged file is a refusal until it is dismissed, and holds up no other write`(number: Int) async throws {
    try await run(Self.damages[number]) { test, server, file in
      #expect(test.store.outbox.pending.count == 1)
      for _ in 0..<2 {
        let refusal = try #require(test.store.outbox.refusals.first)
        let contents = String(try String(contentsOf: file, encoding: .utf8).prefix(1000))
        #expect(refusal.reason == .damaged(contents: contents) && refusal.isUnknown)
        #expect(test.store.outbox.refusals.count == 1)
        try await test.store.refresh()
        #expect(server.received(\.isWrite).map(\.path) == ["/events"] && test.store.outbox.pending.isEmpty)
        try await test.relaunch()
      }
      try await test.store.outbox.dismiss(try #require(test.store.outbox.refusals.first))
      #expect(test.store.outbox.refusals.isEmpty && !FileManager.default.fileExists(atPath: file.path))
      try await test.store.refresh()
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `a write that can be read in a damaged file can be sent again`() async throws {
    try await run({ $0.replacing("\"waiting\"", with: "\"wai*ing\"") }) { test, server, _ in
      let refusal = try #require(test.store.outbox.refusals.first)
      #expect(refusal.write == write && refusal.createdAt != nil)
      try await test.store.sendAgain(refusal)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.count == 2)
      try await test.store.refresh()
      #expect(test.store.events.items.map(\.myStatus).contains(.going) && test.store.outbox.pending.isEmpty)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `a write that cannot be read can only be dismissed`() async throws {
    try await run({ _ in "{" }) { test, _, _ in
      let refusal = try #require(test.store.outbox.refusals.first)
      #expect(refusal.write == nil && refusal.createdAt == nil)
      await #expect(throws: StoreError.damaged) { try await test.store.sendAgain(refusal) }
      #expect(test.store.outbox.refusals == [refusal])
    }
  }

  @Test func `a file of a later version of the app stays as it is, and is no refusal`() async throws {
    try await run({
      $0.replacing(Self.format, with: "\"format\":\(OutboxRecord.currentFormat + 1)")
        .replacing("\"answer\"", with: "\"answerLater\"")
    }) { test, server, file in
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.count == 1)
      let before = try Data(contentsOf: file)
      try await test.store.refresh()
      #expect(server.received(\.isWrite).map(\.path) == ["/events"])
      #expect(test.store.outbox.refusals.isEmpty)
      #expect(try Data(contentsOf: file) == before)
      #expect(try MusterStore.usersWithUnsentWrites(in: test.folder) == [ScriptedServer.ana.id])
    }
  }

  @Test func `a file that breaks while the app runs costs nothing: the app still knows its write`() async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await test.store.perform(write)
      let file = try #require(test.files.first { $0.path.contains("/outbox/") })
      try Data("{".utf8).write(to: file)
      try await test.store.refresh()
      #expect(server.received(\.isWrite).count == 1)
      #expect(test.store.outbox.pending.isEmpty && test.store.outbox.refusals.isEmpty)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }
}
