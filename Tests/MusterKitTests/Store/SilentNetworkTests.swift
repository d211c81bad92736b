import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// A network that swallows packets: nothing fails, and nothing comes.
@MainActor @Suite struct SilentNetworkTests {
  @MainActor private final class World {
    let ben: TestUser
    let proxy: HTTPFaultProxy
    let store: MusterStore
    let event: MusterKit.Event

    init(_ ben: TestUser, _ proxy: HTTPFaultProxy, _ store: MusterStore, _ event: MusterKit.Event) {
      (self.ben, self.proxy, self.store, self.event) = (ben, proxy, store, event)
    }

    func wait(within limit: Duration = .seconds(60), until condition: () -> Bool) async throws {
      try await eventually(within: limit) { condition() }
    }
  }

  /// Runs a test with ana's store behind a proxy. Ben has invited her.
  private func run(_ change: (inout StoreTiming) -> Void, _ body: (World) async throws -> Void) async throws {
    let server = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
    let event = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let proxy = try await HTTPFaultProxy(inFrontOf: server.port)
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-silence-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    let phone = try await ana.logIn(at: proxy.url, retries: .default)
    var timing = StoreTiming()
    change(&timing)
    let store = try MusterStore(client: phone.client, folder: folder, timing: timing)
    do {
      try await store.refresh()
      try await body(World(ben, proxy, store, event))
    } catch {
      store.stop()
      await proxy.close()
      throw error
    }
    store.stop()
    await proxy.close()
  }

  /// The time that a call needs, which fails because the network is silent.
  private func timeUntilUnreachable(_ call: @MainActor () async throws -> Void) async -> Duration {
    let start = ContinuousClock.now
    let error = await failure(of: call)
    let isUnreachable = if case .unreachable(let reason) = error { reason.contains("silent") } else { false }
    #expect(isUnreachable, "\(String(describing: error))")
    return ContinuousClock.now - start
  }

  @Test func `a refresh ends, all repeats included, and says that the network is silent`() async throws {
    #expect(StoreTiming().silence < 15)
    try await run {
      ($0.silence, $0.requestSilence) = (4, 1)
    } _: { world in
      world.proxy.isSilent = true
      world.proxy.takeExchanges()
      async let second: Duration = {
        try await Task.sleep(for: .seconds(2))
        return await timeUntilUnreachable { try await world.store.refresh() }
      }()
      // A fifth of what single requests would take by the usual rules.
      #expect(await timeUntilUnreachable { try await world.store.refresh() } < .seconds(24))
      #expect(world.store.isOffline && world.store.lastError as? MusterError != nil)
      #expect(world.proxy.exchanges.count > 1)
      #expect(world.store.events.items.map(\.id) == [world.event.id] && !world.store.events.isUpToDate)
      // A call that came meanwhile waits no longer than that from its own beginning.
      #expect(try await second < .seconds(24))
      world.proxy.isSilent = false
      try await world.store.refresh()
      #expect(world.store.events.isUpToDate && !world.store.isOffline)
    }
  }

  @Test func `on a slow network, a refresh succeeds although the first request is given up`() async throws {
    try await run {
      ($0.silence, $0.requestSilence) = (12, 1)
    } _: { world in
      world.proxy.takeExchanges()
      world.proxy.plan { _, _ in .delay(milliseconds: 3000) }
      try await world.store.refresh()
      #expect(world.store.events.isUpToDate)
      #expect(world.proxy.exchanges.count == 2)
    }
  }

  @Test func `a wait that the service asks for is no silence`() async throws {
    try await TestStore.run(silence: 1, retries: .default) { test, server in
      server.fail { [server] request in
        let isFirst = request.isValidation && server.received(\.isValidation).count == 1
        return isFirst ? .status(503, .busy, retryAfter: 2) : .none
      }
      try await test.store.refresh()
      #expect(test.store.events.isUpToDate && server.received(\.isValidation).count == 2)
    }
  }

  @Test func `a request that the silence ends before it has left the phone is no attempt`() async throws {
    try await TestStore.run(silence: 1) { test, server in
      try await test.store.refresh()
      server.fail { $0.isWrite ? .stall : .none }
      try await test.store.perform(.block(ScriptedServer.ben))
      _ = await failure { try await test.store.refresh() }
      #expect(server.received(\.isWrite).count == 1 && test.store.isOffline)
      server.fail { _ in .none }
      server.pass(hours: 30)
      try await test.relaunch()
      try await test.store.refresh()
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.isEmpty)
      #expect(server.received(\.isWrite).count == 2)
    }
  }

  @Test func `a slow response that continues to arrive is waited for`() async throws {
    try await run {
      ($0.silence, $0.requestSilence) = (4, 2)
    } _: { world in
      world.proxy.plan { _, _ in .drip(pieces: 12, pause: .milliseconds(500)) }
      try await world.store.refresh()
      #expect(world.store.events.isUpToDate)
    }
  }

  #if !canImport(Network)
    @Test func `a running store is up to date soon after the network is back`() async throws {
      try await run {
        ($0.silence, $0.requestSilence, $0.heartbeat) = (4, 1, 2)
      } _: { world in
        let messages = Locked<[InboxItem.ID]>([])
        let arrivals = world.store.arrivals
        let reader = Task { for await item in arrivals { messages.change { $0.append(item.id) } } }
        world.store.start()
        try await world.wait { world.store.life.isStreaming && world.store.events.isUpToDate }
        world.proxy.isSilent = true
        // No one asks for anything, but the stream's connection is dead.
        try await world.wait { world.store.isOffline && !world.store.events.isUpToDate }
        try await world.store.perform(.answer(.going, to: world.event.id))
        try await world.ben.client.events.edit(world.event.id, applying: EventEdit(title: "Brunch"))
        // It has failed for a while, so its waits are as long as they get.
        try await Task.sleep(for: .seconds(8))
        #expect(world.store.isOffline)
        world.proxy.isSilent = false
        try await world.wait(within: .seconds(10)) {
          world.store.events.isUpToDate && world.store.outbox.pending.isEmpty
        }
        #expect(world.store.events.items.map(\.title) == ["Brunch"])
        #expect(world.store.events.items.map(\.myStatus) == [.going])
        // What was said meanwhile also arrives.
        try await world.wait { world.store.life.isStreaming && !messages.value.isEmpty }
        #expect(Set(messages.value).count == messages.value.count)
        reader.cancel()
      }
    }
  #endif

  @Test func `a path that comes back ends all waits`() async throws {
    try await run {
      ($0.silence, $0.requestSilence, $0.maximumOfflineRetry) = (3600, 1800, 3600)
    } _: { world in
      world.store.start()
      try await world.wait { world.store.life.isStreaming && world.store.events.isUpToDate }
      world.proxy.isSilent = true
      let number = world.proxy.takeExchanges().count
      #expect(number > 0)
      try await world.store.perform(.answer(.going, to: world.event.id))
      try await world.wait { world.proxy.exchanges.contains { $0.method == "PUT" } }
      async let refresh: Void = world.store.refresh()
      world.proxy.isSilent = false
      world.store.networkIsBack()
      try await refresh
      #expect(world.store.events.isUpToDate && world.store.outbox.pending.isEmpty)
      try await world.wait { world.store.life.isStreaming }
      #expect(world.store.events.items.map(\.myStatus) == [.going])
    }
  }
}
