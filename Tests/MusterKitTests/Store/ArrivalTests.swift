import Foundation
import Testing

@testable import MusterKit

/// The notifications that arrive while a store runs.
@MainActor @Suite struct ArrivalTests {
  private nonisolated static func item(_ number: Int) -> InboxItem {
    InboxItem(
      id: ScriptedServer.id(10_000 + number), createdAt: ScriptedServer.noon, type: .eventInvited,
      message: "m\(number)")
  }

  /// Sends notifications through the open stream.
  private func send(_ numbers: Int..., from server: ScriptedServer) throws {
    for number in numbers {
      let json = String(decoding: try JSONEncoder.muster().encode(Self.item(number)), as: UTF8.self)
      server.state.withLock { state in
        _ = state.stream?.yield(Data("id: \(number)\nevent: notification\ndata: \(json)\n\n".utf8))
      }
    }
  }

  /// Reads arrivals in a task of its own.
  private func read(_ store: MusterStore) -> (messages: Locked<[String]>, end: Task<Void, Never>) {
    let (arrivals, messages) = (store.arrivals, Locked<[String]>([]))
    let task = Task { for await item in arrivals { messages.change { $0.append(item.message) } } }
    return (messages, task)
  }

  private func start(_ test: TestStore, _ server: ScriptedServer) async throws {
    test.store.start()
    try await test.wait { test.store.life.isStreaming && test.store.events.isUpToDate }
  }

  @Test func `each consumer gets each notification once, from when it began`() async throws {
    try await TestStore.run { test, server in
      try await start(test, server)
      let first = read(test.store)
      try send(1, 2, from: server)
      try await test.wait { first.messages.value.count == 2 }
      let (second, slow) = (read(test.store), test.store.arrivals)
      try send(2, 3, 1, 4, from: server)
      try await test.wait { first.messages.value.count == 4 && second.messages.value.count == 2 }
      #expect(first.messages.value == ["m1", "m2", "m3", "m4"] && second.messages.value == ["m3", "m4"])
      // One that has not asked yet misses nothing, and one that is gone holds up no one.
      second.end.cancel()
      await second.end.value
      try send(5, from: server)
      var waiting = slow.makeAsyncIterator()
      for message in ["m3", "m4", "m5"] { #expect(await waiting.next()?.message == message) }
      #expect(second.messages.value.count == 2)
      // The list is read again as well.
      try await test.wait { test.store.notifications.isUpToDate }
    }
  }

  @Test func `a lost connection misses nothing, and a stopped store gets nothing`() async throws {
    try await TestStore.run { test, server in
      try await start(test, server)
      let reader = read(test.store)
      try send(1, from: server)
      try await test.wait { reader.messages.value == ["m1"] }
      server.state.withLock { $0.stream?.finish() }
      try await test.wait { server.state.withLock { $0.streamStarts.count } == 2 }
      #expect(server.state.withLock { $0.streamStarts } == [nil, "1"])
      try send(1, 2, from: server)
      try await test.wait { reader.messages.value == ["m1", "m2"] }
      test.store.stop()
      try send(3, from: server)
      try await start(test, server)
      try send(4, from: server)
      try await test.wait { reader.messages.value.count == 3 }
      #expect(reader.messages.value == ["m1", "m2", "m4"])
    }
  }

  @Test func `the sequence ends with the session, and when everything is forgotten`() async throws {
    try await TestStore.run { test, server in
      try await start(test, server)
      let reader = read(test.store)
      server.fail { _ in .status(401, .sessionEnded) }
      await #expect(throws: MusterError.loggedOut) { try await test.store.refresh() }
      await reader.end.value
      #expect(test.store.isLoggedOut)
      server.fail { _ in .none }
      try await test.logIn(ScriptedServer.ana)
      let next = read(test.store)
      try await start(test, server)
      try send(1, from: server)
      try await test.wait { next.messages.value == ["m1"] }
      try await test.store.forgetEverything()
      await next.end.value
    }
  }

  @Test func `a consumer does not keep the store, and ends with it`() async throws {
    try await TestStore.run { test, _ in
      let reader = try await { read(try await test.another()) }()
      await reader.end.value
    }
  }
}
