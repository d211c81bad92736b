import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// A disk without room.
@MainActor @Suite struct FullDiskTests {
  private let event = ScriptedServer.event(1)

  private func run(_ body: @MainActor (TestStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await body(test, server)
      #expect(!test.files.contains { $0.pathExtension == "new" })
    }
  }

  private func expectDiskError(_ store: MusterStore, sourceLocation: SourceLocation = #_sourceLocation) {
    guard case .disk = store.lastError as? StoreError else {
      Issue.record("\(String(describing: store.lastError))", sourceLocation: sourceLocation)
      return
    }
  }

  @Test func `a write that does not fit is refused, and one after that is sent`() async throws {
    try await run { test, server in
      test.isFull.withLock { $0 = true }
      await #expect { try await test.store.perform(.answer(.going, to: event.id)) } throws: { error in
        if case .disk = error as? StoreError { true } else { false }
      }
      #expect(test.store.outbox.pending.isEmpty && test.store.events.items.map(\.myStatus) == [.invited])
      test.isFull.withLock { $0 = false }
      try await test.store.perform(.answer(.maybe, to: event.id))
      try await test.relaunch()
      #expect(test.store.outbox.pending.map(\.write) == [.answer(.maybe, to: event.id)])
      try await test.store.refresh()
      #expect(server.received(\.isWrite).count == 1 && test.store.events.items.map(\.myStatus) == [.maybe])
      #expect(test.store.lastError == nil)
    }
  }

  @Test func `lists are read and right, the store says that they are not kept, and keeps them later`() async throws {
    try await run { test, server in
      test.isFull.withLock { $0 = true }
      try server.set(.events, [event, ScriptedServer.event(2)])
      try await test.store.refresh()
      #expect(test.store.events.items.count == 2 && test.store.events.isUpToDate)
      expectDiskError(test.store)
      // The older copy is whole.
      try await test.relaunch()
      #expect(test.store.events.items.count == 1 && test.store.events.isLoaded)
      try await test.store.refresh()
      #expect(test.store.events.items.count == 2 && test.store.events.isUpToDate)
      test.isFull.withLock { $0 = false }
      try await test.store.refresh()
      #expect(test.store.lastError == nil)
      server.takeOffline()
      try await test.relaunch()
      #expect(test.store.events.items.count == 2)
    }
  }

  @Test func `changes of other users are followed while the disk is full`() async throws {
    try await run { test, server in
      test.store.start()
      try await test.wait { test.store.life.isStreaming && test.store.events.isUpToDate }
      test.isFull.withLock { $0 = true }
      try server.set(.events, [event, ScriptedServer.event(2)])
      let stamp = try #require(server.state.withLock { $0.lists[.events]?.stamp })
      test.store.take(.changed([.events: stamp]))
      try await test.wait { test.store.events.items.count == 2 && test.store.events.isUpToDate }
      try await test.wait { test.store.lastError != nil }
      expectDiskError(test.store)
    }
  }

  @Test func `a refusal that does not fit stays, and is not sent again`() async throws {
    try await run { test, server in
      try await test.store.perform(.answer(.going, to: event.id))
      server.fail { $0.isWrite ? .status(409, .eventCancelled) : .none }
      // The file of the attempt fits, that of the refusal does not.
      server.state.withLock { state in
        state.before = { request in if request.isWrite { test.isFull.withLock { $0 = true } } }
      }
      for _ in 0..<3 {
        try await test.store.refresh()
        #expect(test.store.outbox.refusals.count == 1 && test.store.outbox.pending.isEmpty)
        expectDiskError(test.store)
      }
      #expect(server.received(\.isWrite).count == 1)
      test.isFull.withLock { $0 = false }
      try await test.store.refresh()
      #expect(test.store.lastError == nil)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.count == 1)
    }
  }

  @Test func `a write whose success does not fit happens once`() async throws {
    try await run { test, server in
      let draft = EventDraft(title: "Quiz", startTime: ScriptedServer.noon, timeZone: .lisbon)
      try await test.store.perform(.createEvent(draft))
      server.state.withLock { state in
        state.before = { request in if request.isWrite { test.isFull.withLock { $0 = true } } }
      }
      try await test.store.refresh()
      try await test.relaunch()
      test.isFull.withLock { $0 = false }
      try await test.store.refresh()
      #expect(test.store.events.items.count == 2 && test.store.outbox.pending.isEmpty)
    }
  }

  @Test func `an answer that could not be left out holds up the later one, and does not replace it`() async throws {
    try await run { test, server in
      for answer in [Answer.going, .declined] { try await test.store.perform(.answer(answer, to: event.id)) }
      test.isFull.withLock { $0 = true }
      await #expect(throws: StoreError.self) { try await test.store.refresh() }
      #expect(test.store.outbox.pending.map(\.isSent) == [false, false] && server.received(\.isWrite).isEmpty)
      test.isFull.withLock { $0 = false }
      try await test.relaunch()
      try await test.store.refresh()
      #expect(server.received(\.isWrite).map { $0.body?["status"]?.string } == ["declined"])
      #expect(test.store.outbox.pending.isEmpty && test.store.outbox.refusals.isEmpty)
      #expect(test.store.events.items.map(\.myStatus) == [.declined] && test.store.lastError == nil)
    }
  }

  /// The system itself refuses the bytes.
  @Test nonisolated func `a process that may write no more bytes continues, and sends what it keeps later`()
    async throws
  {
    let shared = try await MusterServer.shared.value
    try await URL.withFolder { folder in
      let tokens = folder.appending(path: "tokens")
      let ana = try await TestUser.register("ana", at: shared.url, tokens: FileTokenStore(file: tokens))
      let store = folder.appending(path: "store")
      let program = try await Program(
        Program.path("test-client"), ["full", shared.url.absoluteString, tokens.path, store.path])
      #expect(try await program.exitStatus() == 0, "\(program.standardError)")
      #expect(program.standardOutput == "disk\nevents 1, disk\nevents 2, no error\n")
      #expect(Set(try await ana.client.events.list().items.map(\.title)) == ["Direct", "Later"])
      let files = try FileManager.default.subpathsOfDirectory(atPath: store.path)
      #expect(!files.contains { $0.hasSuffix(".new") })
    }
  }
}
