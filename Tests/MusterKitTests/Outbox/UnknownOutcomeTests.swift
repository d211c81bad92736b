import Foundation
import Testing

@testable import MusterKit

/// Writes that were sent without a response, and that the service may have forgotten.
@MainActor @Suite struct UnknownOutcomeTests {
  private let event = ScriptedServer.event(1)
  private let write = Write.block(ScriptedServer.ben)

  private func run(_ body: @MainActor (TestStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await body(test, server)
    }
  }

  @Test(arguments: [0.0, 25.0, -25.0, 9600.0, -9600.0], [0.0, 22.0])
  func `while the service knows its key, a write is sent again, whatever the phone's clock says`(
    ahead: Double, hours: Double
  ) async throws {
    try await run { test, server in
      server.fail { $0.isWrite ? .loseResponse : .none }
      try await test.store.perform(.block(ScriptedServer.ben))
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      test.ahead.withLock { $0 = ahead * 3600 }
      server.pass(hours: hours)
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(server.received(\.isWrite).count == 2 && server.state.withLock { $0.responses.count } == 1)
    }
  }

  @Test func `attempts that did not reach the service do not make a write older`() async throws {
    try await run { test, server in
      let faults: [ScriptedServer.Fault] = [
        .keep, .status(401, .sessionEnded), .status(429, .rateLimited), .status(503, .busy), .keep,
      ]
      for fault in faults {
        server.fail { $0.isWrite ? fault : .none }
        if test.store.outbox.pending.isEmpty { try await test.store.perform(.block(ScriptedServer.ben)) }
        _ = await failure { try await test.store.refresh() }
        try await test.logIn(ScriptedServer.ana)
        server.pass(hours: 30)
        try await test.relaunch()
      }
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(server.received(\.isWrite).count == faults.count + 1)
    }
  }

  @Test func `a key that the service knows from other words is replaced, if the write is safe without it`() async throws
  {
    try await run { test, server in
      let safe = Write.markRead([ScriptedServer.id(60)])
      server.fail { [server] request in
        guard request.isWrite, let key = request.key else { return .none }
        // The first key of each write.
        let earlier = server.received { $0.path == request.path && $0.key != key }
        return earlier.isEmpty ? .status(422, .idempotencyKeyReused) : .none
      }
      try await test.store.perform(safe)
      try await test.store.perform(.block(ScriptedServer.ben))
      try await test.store.refresh()
      #expect(server.received(\.isWrite).count == 3 && test.store.outbox.pending.isEmpty)
      #expect(test.store.outbox.refusals.map(\.write) == [.block(ScriptedServer.ben)])
      #expect(test.store.outbox.refusals.map(\.reason) == [.unknown])
    }
  }

  /// Another device may have undone it since.
  @Test(arguments: [
    Write.endFriendship(with: ScriptedServer.ben.id), .block(ScriptedServer.ben), .unblock(ScriptedServer.ben.id),
    .invite([ScriptedServer.ben.id], to: ScriptedServer.event(1).id),
    .withdraw(Guest.ID(ScriptedServer.ben.id), from: ScriptedServer.event(1).id),
    .setAnswer(.going, of: ScriptedServer.guest, at: ScriptedServer.event(1).id),
    .addHost(ScriptedServer.ben.id, to: ScriptedServer.event(1).id),
    .removeHost(ScriptedServer.ben.id, from: ScriptedServer.event(1).id),
  ])
  func `what might undo a newer change is not sent again after a day, and the user learns of it`(write: Write)
    async throws
  {
    try await run { test, server in
      server.fail { $0.isWrite ? .loseRequest : .none }
      try await test.store.perform(write)
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      server.pass(hours: 24)
      try await test.relaunch()
      let validations = server.received(\.isValidation).count
      try await test.store.refresh()
      #expect(server.received(\.isWrite).count == 1)
      #expect(test.store.outbox.refusals.map(\.reason) == [.unknown] && test.store.outbox.pending.isEmpty)
      #expect(test.store.events.isUpToDate && server.received(\.isValidation).count > validations)
    }
  }

  @Test func `a write with an unknown outcome can be sent again as a new one, or be dismissed`() async throws {
    try await run { test, server in
      server.fail { $0.isWrite ? .loseResponse : .none }
      try await test.store.perform(write)
      _ = await failure { try await test.store.refresh() }
      server.fail { _ in .none }
      server.pass(hours: 24)
      try await test.relaunch()
      try await test.store.refresh()
      let unknown = try #require(test.store.outbox.refusals.first)
      #expect(unknown.isUnknown && unknown.write == write && test.store.outbox.pending.isEmpty)

      try await test.store.sendAgain(unknown)
      #expect(
        test.store.outbox.refusals.isEmpty
          && test.store.outbox.pending.map(\.write) == [unknown.write].compactMap(\.self))
      try await test.store.refresh()
      let keys = server.received(\.isWrite).map(\.key)
      #expect(keys.count == 2 && Set(keys).count == 2)
      // An alert that stayed open, after the write has been sent.
      try await test.store.sendAgain(unknown)
      #expect(test.store.outbox.pending.isEmpty && server.received(\.isWrite).count == 2)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty)
      await #expect(throws: StoreError.dismissed) { try await test.store.sendAgain(unknown) }
    }
  }

  /// Makes a write whose outcome is unknown, and that had happened.
  private func unknownWrite(_ test: TestStore, _ server: ScriptedServer) async throws -> RefusedWrite {
    server.fail { $0.isWrite ? .loseResponse : .none }
    try await test.store.perform(write)
    _ = await failure { try await test.store.refresh() }
    server.fail { _ in .none }
    server.pass(hours: 24)
    try await test.relaunch()
    try await test.store.refresh()
    return try #require(test.store.outbox.refusals.first)
  }

  private func outboxFiles(_ test: TestStore) -> Int { test.files.count { $0.path.contains("outbox") } }

  @Test func `an app that ends after the choice to send again offers no second choice, and sends once`() async throws {
    try await run { test, server in
      let unknown = try await unknownWrite(test, server)
      try await test.store.sendAgain(unknown)
      // Nothing was sent yet, so the files of both writes are there.
      #expect(outboxFiles(test) == 2)
      for fault in [ScriptedServer.Fault.loseRequest, .loseResponse] {
        try await test.relaunch()
        #expect(
          test.store.outbox.refusals.isEmpty
            && test.store.outbox.pending.map(\.write) == [unknown.write].compactMap(\.self))
        server.fail { $0.isWrite ? fault : .none }
        _ = await failure { try await test.store.refresh() }
      }
      try await test.relaunch()
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(Set(server.received(\.isWrite).map(\.key)).count == 2)
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(outboxFiles(test) == 0)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `choosing twice to send again sends once, and a write that was sent again may be refused again`()
    async throws
  {
    try await run { test, server in
      let unknown = try await unknownWrite(test, server)
      let choices = (0..<2).map { _ in Task { try await test.store.sendAgain(unknown) } }
      for choice in choices { _ = try await choice.value }
      #expect(test.store.outbox.pending.count == 1 && test.store.outbox.refusals.isEmpty)
      server.fail { $0.isWrite ? .status(422, .invalidFields) : .none }
      try await test.store.refresh()
      let refused = try #require(test.store.outbox.refusals.first)
      #expect(!refused.isUnknown && test.store.outbox.refusals.count == 1)
      server.fail { _ in .none }
      try await test.relaunch()
      #expect(test.store.outbox.refusals == [refused])
      try await test.store.sendAgain(refused)
      try await test.store.refresh()
      #expect(Set(server.received(\.isWrite).map(\.key)).count == 3 && test.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `a choice that cannot be saved leaves the refusal, and so does an app that ends before a dismissal`()
    async throws
  {
    try await run { test, server in
      let unknown = try await unknownWrite(test, server)
      let folder = try #require(test.files.first { $0.path.contains("outbox") }).deletingLastPathComponent()
      let other = folder.appendingPathExtension("away")
      try FileManager.default.moveItem(at: folder, to: other)
      await #expect(throws: StoreError.self) { try await test.store.sendAgain(unknown) }
      #expect(test.store.outbox.refusals == [unknown] && test.store.outbox.pending.isEmpty)
      try FileManager.default.moveItem(at: other, to: folder)
      try await test.relaunch()
      #expect(test.store.outbox.refusals == [unknown])
      try await test.store.outbox.dismiss(unknown)
      try await test.relaunch()
      #expect(test.store.outbox.refusals.isEmpty && outboxFiles(test) == 0)
    }
  }

  @Test func `another process sends what was sent again, and shows no refusal`() async throws {
    try await run { test, server in
      let unknown = try await unknownWrite(test, server)
      let other = try await test.another()
      try await other.refresh()
      #expect(other.outbox.refusals == [unknown])
      try await test.store.sendAgain(unknown)
      try await other.refresh()
      #expect(other.outbox.refusals.isEmpty)
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(server.received(\.isWrite).count == 2 && outboxFiles(test) == 0)
    }
  }
}
