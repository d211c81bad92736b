import Foundation
import Testing

@testable import MusterKit

/// An app that is suspended while it holds a lock is ended by the system.
@MainActor @Suite struct SendingLockTests {
  /// Whether anyone holds the lock of a store's folder.
  private nonisolated static func isHeld(_ folder: StoreFolder) -> Bool {
    let descriptor = open(folder.file("sending.lock").path, O_RDWR | O_CLOEXEC)
    defer { close(descriptor) }
    guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return descriptor >= 0 }
    flock(descriptor, LOCK_UN)
    return false
  }

  @Test func `the lock is held for each request, and neither while a repeat waits nor between two writes`() async throws
  {
    let event = ScriptedServer.event(1)
    let server = try ScriptedServer.make()
    try server.set(.events, [event])
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-store-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let files = try StoreFolder(in: folder, user: ScriptedServer.ana.id)
    let waits = Guarded<[Bool]>([])
    let sends = Guarded<[Bool]>([])
    let retries = RetryPolicy(maximumAttempts: 3, sleep: { _ in waits.withLock { $0.append(Self.isHeld(files)) } })
    let tokens = StoredTokens(
      accessToken: "access", refreshToken: "refresh", accessExpiresAt: .distantFuture, user: ScriptedServer.ana.id)
    let client = MusterClient(
      baseURL: try #require(URL(string: "http://muster.test")), tokens: MemoryTokenStore(tokens), transport: server,
      retries: retries)
    let store = try MusterStore(client: client, folder: folder, timing: StoreTiming())
    try await store.refresh()

    let losses = Guarded(2)
    server.state.withLock { state in
      state.before = { request in if request.isWrite { sends.withLock { $0.append(Self.isHeld(files)) } } }
      state.faults = { request in
        guard request.isWrite else { return .none }
        let isLost = losses.withLock { left in
          left -= 1
          return left >= 0
        }
        return isLost ? .loseResponse : .none
      }
    }
    try await store.perform(.answer(.going, to: event.id))
    try await store.perform(.editEvent(event.id, applying: EventEdit(title: "Quiz")))
    try await store.refresh()
    #expect(sends.withLock { $0 } == [true, true, true, true])
    #expect(waits.withLock { $0 } == [false, false])
    #expect(!Self.isHeld(files) && store.outbox.pending.isEmpty)
  }

  @Test func `tokens are refreshed without the lock`() async throws {
    try await TestStore.run { test, server in
      let event = ScriptedServer.event(1)
      try server.set(.events, [event])
      try await test.store.refresh()
      let files = test.store.folder
      let held = Guarded<[String: Bool]>([:])
      let refused = Guarded(false)
      let tokens = try JSONEncoder.muster().encode(
        Tokens(
          user: User(id: ScriptedServer.ana.id, username: "ana", displayName: "Ana", createdAt: ScriptedServer.noon),
          accessToken: "access-2", refreshToken: "refresh-2", expiresIn: 900))
      server.fail { request in
        held.withLock { $0[request.path] = Self.isHeld(files) }
        if request.path == "/auth/refresh" {
          return .foreign(
            TransportResponse(status: 200, headers: ["content-type": "application/json"], body: tokens))
        }
        guard request.isWrite else { return .none }
        let isFirst = refused.withLock { refused in
          defer { refused = true }
          return !refused
        }
        return isFirst ? .status(401, .tokenExpired) : .none
      }
      try await test.store.perform(.answer(.going, to: event.id))
      try await test.store.refresh()
      #expect(test.store.outbox.pending.isEmpty && test.store.events.items.map(\.myStatus) == [.going])
      #expect(held.withLock { $0["/auth/refresh"] } == false)
      #expect(held.withLock { $0["/events/\(event.id.wire)/invitations/me"] } == true)
    }
  }
}
