import Foundation
import Postgres
import TestSupport
import Testing

@testable import MusterKit

/// The past events of the store, which have no stamp. `StoreModelTests` compares all claims about them.
@MainActor @Suite struct PastEventsTests {
  private func run(_ body: @MainActor (MusterServer, Phone, TestUser, TestUser) async throws -> Void) async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let phone = try await Phone(of: ben, at: shared)
    try await body(shared, phone, ana, ben)
    await phone.end()
  }

  /// Plans events and ends them.
  ///
  /// - Returns: their ids.
  @discardableResult
  private func past(_ titles: String..., by host: TestUser, inviting guest: TestUser, at server: MusterServer)
    async throws -> [Event.ID]
  {
    var ids: [Event.ID] = []
    for title in titles { ids.append(try await host.client.events.create(.planned(title, inviting: [guest])).id) }
    try await end(ids, at: server)
    return ids
  }

  private func end(_ ids: [Event.ID], at server: MusterServer) async throws {
    try await server.endEvents(where: "id = ANY(\(ids.map(\.rawValue)))")
  }

  private func titles(_ phone: Phone) -> Set<String> { Set(phone.store.pastEvents.items.map(\.title)) }

  @Test func `past events are shown, also after a relaunch without a network`() async throws {
    try await run { server, phone, ana, ben in
      #expect(!phone.store.pastEvents.isLoaded)
      let ids = try await past("Swim", "Run", by: ana, inviting: ben, at: server)
      try await phone.catchUp()
      let past = phone.store.pastEvents
      #expect(past.isUpToDate && past.isLoaded && titles(phone) == ["Swim", "Run"] && !past.hasMore)
      #expect(phone.store.events.items.isEmpty)
      let time = past.upToDateAsOf
      phone.proxy.isOffline = true
      try phone.relaunch()
      await phone.store.load()
      #expect(titles(phone) == ["Swim", "Run"] && !phone.store.pastEvents.isUpToDate)
      #expect(phone.store.pastEvents.upToDateAsOf == time)
      #expect(phone.store.opened(ids[0]).event?.title == "Swim")
    }
  }

  @Test func `an event that ends moves over, and nothing else is sent again`() async throws {
    try await run { server, phone, ana, ben in
      try await past("Swim", "Run", by: ana, inviting: ben, at: server)
      let dive = try await ana.client.events.create(.planned("Dive", inviting: [ben])).id
      try await phone.catchUp()
      try await end([dive], at: server)
      _ = phone.proxy.takeExchanges()
      try await phone.catchUp()
      let sent = phone.proxy.takeExchanges()
      #expect(titles(phone) == ["Swim", "Run", "Dive"] && phone.store.pastEvents.isUpToDate)
      #expect(phone.store.events.items.isEmpty)
      // The lists and the past events share a request.
      #expect(sent.count == 1)
    }
  }

  @Test func `a running store moves an event over by itself`() async throws {
    try await run { server, phone, ana, ben in
      let swim = try await ana.client.events.create(.planned("Swim", inviting: [ben])).id
      phone.store.start()
      try await eventually { phone.store.events.isUpToDate && phone.store.pastEvents.isUpToDate }
      try await end([swim], at: server)
      try await eventually {
        phone.store.pastEvents.items.map(\.id) == [swim] && phone.store.pastEvents.isUpToDate
          && phone.store.events.items.isEmpty
      }
    }
  }

  @Test func `a host's new name shows, and a host's block`() async throws {
    try await run { server, phone, ana, ben in
      try await past("Swim", by: ana, inviting: ben, at: server)
      try await phone.catchUp()
      _ = try await ana.client.me.edit(ProfileEdit(displayName: "Anita"))
      try await phone.catchUp()
      #expect(phone.store.pastEvents.items.first?.creator?.displayName == "Anita")
      try await ana.client.blocks.block(ben.id)
      try await phone.catchUp()
      #expect(phone.store.pastEvents.items.first?.creator == nil)
      try await phone.expectTruth()
    }
  }

  @Test func `a damaged copy is received again, and a write that may change it takes the claim away`() async throws {
    try await run { server, phone, ana, ben in
      try await past("Swim", by: ana, inviting: ben, at: server)
      try await phone.catchUp()
      let file = phone.store.folder.file("pastEvents.copy")
      let bytes = try Data(contentsOf: file)
      // Another title under the same digest.
      let swapped = String(decoding: bytes, as: UTF8.self).replacing("Swim", with: "Sing")
      try Data(swapped.utf8).write(to: file)
      try phone.relaunch()
      await phone.store.load()
      #expect(!phone.store.pastEvents.isLoaded)
      try await phone.catchUp()
      #expect(titles(phone) == ["Swim"])
      phone.proxy.isOffline = true
      #expect(phone.store.pastEvents.isUpToDate)
      try await phone.store.perform(.block(try await ana.person))
      #expect(!phone.store.pastEvents.isUpToDate && phone.store.pastEvents.hasPendingWrites)
      try await phone.store.forgetEverything()
      #expect(phone.store.pastEvents.items.isEmpty && !FileManager.default.fileExists(atPath: file.path))
    }
  }

  @Test func `of 10,000 past events, the store keeps those of the last year, and the others are there page by page`()
    async throws
  {
    try await run { server, phone, ana, ben in
      // One each day, and a day is the last year's if it is one of its 366.
      try await insert(10_000, of: ben, every: "1 day", at: server)
      try await phone.catchUp()
      let kept = phone.store.pastEvents.items
      #expect(kept.count == 400 && phone.store.pastEvents.hasMore && phone.store.pastEvents.isUpToDate)
      var earlier: [Event] = []
      for try await page in phone.store.earlierEvents {
        earlier += page.items
        if earlier.count >= 300 { break }
      }
      var all: [Event] = []
      for try await page in ben.client.events.pastPages(limit: 100) {
        all += page.items
        if all.count >= 700 { break }
      }
      #expect(kept == Array(all.prefix(400)) && earlier == Array(all.dropFirst(400)))
      // Several a day are too many.
      try await insert(400, of: ben, every: "1 hour", at: server)
      try await phone.catchUp()
      #expect(phone.store.pastEvents.items.count == 500 && phone.store.pastEvents.isUpToDate)
      let size = try Data(contentsOf: phone.store.folder.file("pastEvents.copy")).count
      #expect(size < 1 << 20)
    }
  }

  private func insert(_ count: Int, of user: TestUser, every step: String, at server: MusterServer) async throws {
    let _: Int = try await server.value(
      """
      WITH ended AS (
        INSERT INTO events (
          id, creator_id, title, start_time, time_zone, start_offset, zone_rules, live_until, archived_at
        )
        SELECT uuid_v7(), \(user.id.rawValue), 'Day ' || place, now() - place * \(step)::interval - interval '2 days',
          'UTC', 0, '2025b', now(), now()
        FROM generate_series(1, \(count)) AS place
        RETURNING 1
      )
      SELECT count(*) FROM ended
      """)
  }
}
