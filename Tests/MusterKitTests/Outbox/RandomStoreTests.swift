import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// Random writes, failures, launches and processes on one folder: each write happens once and in order, without a
/// question, and no claim is false.
@MainActor @Suite(.serialized) struct RandomStoreTests {
  private static let steps = 40

  @Test(arguments: 1...UInt64(testsAreLong ? 1000 : 25)) func `each write happens once, and no claim is false`(
    seed: UInt64
  ) async throws {
    try await TestStore.run { test, server in
      var random = SeededRandom(seed: seed)
      var stores = [test.store, try await test.another()]
      var titles: [String] = []
      for step in 0..<Self.steps {
        let place = Int.random(in: 0...1, using: &random)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3:
          titles.append("Event \(step)")
          try await stores[place].perform(
            .createEvent(EventDraft(title: "Event \(step)", startTime: ScriptedServer.noon, timeZone: .gmt)))
        case 3..<5:
          guard let event = stores[place].events.items.randomElement(using: &random) else { continue }
          try await stores[place].perform(.editEvent(event.id, applying: EventEdit(note: .set("Note \(step)"))))
        case 5: try addFriend(step, server, announcedTo: stores[place])
        case 6..<9:
          server.fail(Self.storm(seed: random.next()))
          _ = await failure { try await stores[place].refresh() }
        default:
          stores[place].stop()
          stores[place] = try await test.another()
        }
        for store in stores { try expectTruth(store, server, "seed \(seed), step \(step)") }
      }
      server.fail { _ in .none }
      for store in stores { try await store.refresh() }
      for store in stores {
        try await store.refresh()
        #expect(store.outbox.pending.isEmpty, "seed \(seed)")
        // No other device edits the events.
        #expect(store.outbox.refusals.isEmpty, "seed \(seed): \(store.outbox.refusals)")
        #expect(store.events.isUpToDate && store.friends.isUpToDate, "seed \(seed)")
        #expect(Set(store.events.items.map(\.title)) == Set(titles), "seed \(seed)")
        #expect(store.events.items.count == titles.count, "seed \(seed)")
        try expectTruth(store, server, "seed \(seed), at the end")
      }
      let keys = server.received { $0.method == "POST" && $0.path == "/events" }.map(\.key)
      var order: [String?] = []
      for key in keys where !order.contains(key) { order.append(key) }
      #expect(order.count == titles.count, "seed \(seed): an event was created twice.")
    }
  }

  /// A change by another user.
  private func addFriend(_ step: Int, _ server: ScriptedServer, announcedTo store: MusterStore) throws {
    let person = Person(id: ScriptedServer.id(100 + step), username: "p\(step)", displayName: "\(step)")
    let friends = try friends(server)
    try server.set(.friends, [Friend(user: person, since: ScriptedServer.noon)] + friends)
    guard let stamp = server.state.withLock({ $0.lists[.friends]?.stamp }) else { return }
    store.take(.changed([.friends: stamp]))
    #expect(!store.friends.isUpToDate)
  }

  private func friends(_ server: ScriptedServer) throws -> [Friend] {
    try server.state.withLock { $0.lists[.friends]?.items ?? [] }.map { try $0.json.decode() }
  }

  /// A list that a store claims to be up to date equals the service's, unless the service has changed since.
  private func expectTruth(_ store: MusterStore, _ server: ScriptedServer, _ place: String) throws {
    let lists = server.state.withLock { $0.lists }
    if store.events.isUpToDate, store.statuses[.events]?.stamp == lists[.events]?.stamp {
      let events: [Event] = try (lists[.events]?.items ?? []).map { try $0.json.decode() }
      #expect(store.events.items == events, "\(place)")
    }
    if store.friends.isUpToDate, store.statuses[.friends]?.stamp == lists[.friends]?.stamp {
      #expect(store.friends.items == (try friends(server)), "\(place)")
    }
    // New events show, sent or not.
    for id in store.outbox.pending.compactMap(\.write.createdID) where store.events.isLoaded {
      #expect(store.events.items.count { $0.id.rawValue == id } == 1, "\(place)")
    }
  }

  private static func storm(seed: UInt64) -> @Sendable (ScriptedServer.Received) -> ScriptedServer.Fault {
    let random = Guarded(SeededRandom(seed: seed))
    return { _ in
      switch random.withLock({ Int.random(in: 0..<10, using: &$0) }) {
      case 0: .loseRequest
      case 1, 2: .loseResponse
      case 3: .status(503, "database-unavailable")
      default: .none
      }
    }
  }
}
