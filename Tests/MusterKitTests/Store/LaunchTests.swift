import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// The cost of a launch with copies, and of long lists.
@MainActor @Suite struct LaunchTests {
  @Test func `a launch after one change of 100 reads one item, and few bytes`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let events = try await ben.createEvents(100, inviting: [ana])
    let transport = LossyTransport()
    let phone = try await Phone(of: ana, at: shared) { _ in transport }
    try await phone.store.refresh()
    let full = bytes(transport.takeSent())
    #expect(phone.store.events.items.count == 100)

    // Nothing has changed: one request.
    _ = try await shared.quiet()
    try phone.relaunch()
    try await phone.store.refresh()
    let fresh = transport.takeSent()
    #expect(fresh.count == 1 && bytes(fresh) < full / 6, "\(bytes(fresh)) of \(full)")

    try await ben.client.events.edit(events[17].id, applying: EventEdit(title: "Changed"))
    _ = try await shared.quiet()
    try phone.relaunch()
    try await phone.store.refresh()
    let stale = transport.takeSent()
    let verdicts = try #require(stale.first?.response).verdicts()
    #expect(stale.count == 1)
    let parts = try #require(verdicts[.events]?.parts)
    #expect(parts.compactMap(\.item).count == 1 && parts.reduce(0) { $0 + ($1.count ?? 0) } == 99)
    #expect(verdicts[.friends]?.invalidate == false)
    #expect(bytes(stale) < full / 3, "\(bytes(stale)) of \(full)")
    #expect(phone.store.events.items.contains { $0.title == "Changed" })
    try await phone.expectTruth()
    await phone.end()
  }

  @Test func `lists of more than 500 items, and more than fits into one response, are complete`() async throws {
    try await MusterServer.run(hasWorker: false) { @MainActor server in
      let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
      // Some 700 KiB of events, and 256 KiB fit.
      let events = try await ben.createEvents(560, inviting: [ana], note: String(repeating: "long ", count: 200))
      let transport = LossyTransport()
      let phone = try await Phone(of: ana, at: server) { _ in transport }
      try await phone.store.refresh()
      #expect(phone.store.events.items.count == 560 && phone.store.events.isUpToDate)
      let first = transport.takeSent()
      #expect(first.count > 3)
      #expect(try first.count { try $0.verdicts()[.events]?.nextCursor != nil } > 1)
      try await phone.expectTruth()

      // Changes within the first 500, beyond them, and at the border.
      try await ben.client.events.edit(events[3].id, applying: EventEdit(title: "Changed 3"))
      try await ben.client.events.edit(events[540].id, applying: EventEdit(title: "Changed 540"))
      try await ben.client.events.withdraw(Guest.ID(ana.id), from: events[200].id)
      try await ben.client.events.edit(
        events[550].id, applying: EventEdit(startTime: events[0].startTime.addingTimeInterval(-3600)))
      try phone.relaunch()
      try await phone.store.refresh()
      #expect(phone.store.events.items.count == 559)
      #expect(phone.store.events.items.first?.id == events[550].id)
      try await phone.expectTruth()
      await phone.end()
    }
  }

  @Test(arguments: [
    LongList(events: 1000, requests: 3, bytes: 40_000), LongList(events: 5000, requests: 8, bytes: 170_000),
  ])
  func `one change of many live events costs few requests and bytes`(list: LongList) async throws {
    try await MusterServer.run { @MainActor server in
      let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
      try await server.plan(list.events, by: ben, inviting: ana)
      let transport = LossyTransport()
      let phone = try await Phone(of: ana, at: server) { _ in transport }
      try await phone.store.refresh()
      #expect(phone.store.events.items.count == list.events && phone.store.invitations.items.count == list.events)
      let event = phone.store.events.items[list.events / 2]
      try await ben.client.events.edit(event.id, applying: EventEdit(title: "Changed"))
      _ = try await server.quiet()
      try await expectCost(of: phone, transport, list)
      #expect(phone.store.events.items[list.events / 2].title == "Changed")
      // The user's own answer also changes both lists.
      try await phone.store.perform(.answer(.going, to: phone.store.events.items[7].id))
      _ = transport.takeSent()
      try await phone.store.refresh()
      #expect(cost(transport.takeSent().filter { !$0.isWrite }) <= list.bytes)
      try await phone.expectTruth()
      await phone.end()
    }
  }

  @Test func `one change of 2,000 friends costs few requests and bytes`() async throws {
    try await MusterServer.run { @MainActor server in
      let (ana, ben) = try await TestUser.friends("ana", "ben", at: server.url)
      try await server.befriend(ana, with: 1999)
      let transport = LossyTransport()
      let phone = try await Phone(of: ana, at: server) { _ in transport }
      try await phone.store.refresh()
      #expect(phone.store.friends.items.count == 2000)
      try await ben.client.me.edit(ProfileEdit(displayName: "Benjamin"))
      _ = try await server.quiet()
      try await expectCost(of: phone, transport, LongList(events: 0, requests: 3, bytes: 40_000))
      #expect(phone.store.friends.items.contains { $0.user.displayName == "Benjamin" })
      try await phone.expectTruth()
      await phone.end()
    }
  }

  /// Launches, and expects that the update costs no more than it may.
  private func expectCost(of phone: Phone, _ transport: LossyTransport, _ list: LongList) async throws {
    try phone.relaunch()
    _ = transport.takeSent()
    try await phone.store.refresh()
    let sent = transport.takeSent()
    #expect(sent.count <= list.requests && cost(sent) <= list.bytes, "\(sent.count) requests, \(cost(sent)) bytes")
  }

  @Test(arguments: [4, 40])
  func `a damaged copy is read again`(place: Int) async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    _ = try await ben.createEvents(5, inviting: [ana])
    let phone = try await Phone(of: ana, at: shared)
    try await phone.store.refresh()
    let files = try FileManager.default.subpathsOfDirectory(atPath: phone.folder.path)
    for file in files.map({ phone.folder.appending(path: $0) }) where !file.hasDirectoryPath {
      guard var data = try? Data(contentsOf: file), data.count > 80 else { continue }
      data[data.count * place / 80] ^= 1
      try data.write(to: file)
    }
    try phone.relaunch()
    try await phone.store.refresh()
    #expect(phone.store.events.items.count == 5)
    try await phone.expectTruth()
    await phone.end()
  }

  /// The bytes in both directions, headers included, as if nothing was compressed.
  private func cost(_ sent: [LossyTransport.Sent]) -> Int {
    let headers = sent.flatMap(\.headers).reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 4 }
    // Of a response, and the lines of request and status.
    return bytes(sent) + headers + sent.count * 800
  }

  private func bytes(_ sent: [LossyTransport.Sent]) -> Int {
    sent.reduce(0) { $0 + ($1.body?.count ?? 0) + ($1.response?.count ?? 0) }
  }
}

/// How much one change of a list may cost.
struct LongList: Sendable {
  let events: Int
  let requests: Int
  let bytes: Int
}

extension MusterServer {
  /// Plans events with SQL, an hour after another.
  fileprivate func plan(_ count: Int, by host: TestUser, inviting guest: TestUser) async throws {
    let planned: Int = try await value(
      """
      WITH planned AS (
        INSERT INTO events (
          id, creator_id, title, note, start_time, time_zone, location_name, live_until, start_offset, zone_rules,
          invited_count
        )
        SELECT gen_random_uuid(), \(host.id.rawValue), 'Event ' || place, 'Bring a towel, a ball and something to share.',
          now() + place * interval '1 hour', 'Europe/Lisbon', 'Pedreira Velha', now() + interval '2 years', 3600,
          '2025b', 1
        FROM generate_series(1, \(count)) AS place
        RETURNING id
      ), invited AS (
        INSERT INTO invitations (event_id, user_id) SELECT id, \(guest.id.rawValue) FROM planned RETURNING 1
      )
      SELECT count(*) FROM invited
      """)
    #expect(planned == count)
  }

  /// Gives a user more friends, with SQL.
  fileprivate func befriend(_ user: TestUser, with count: Int) async throws {
    let made: Int = try await value(
      """
      WITH added AS (
        INSERT INTO users (id, username, display_name, email_verified_at)
        SELECT gen_random_uuid(), 'friend' || place, 'Friend ' || place, now()
        FROM generate_series(1, \(count)) AS place
        RETURNING id
      ), stamped AS (
        INSERT INTO user_stamps (user_id) SELECT id FROM added
      ), befriended AS (
        INSERT INTO friendships (user_a, user_b)
        SELECT least(id, \(user.id.rawValue)), greatest(id, \(user.id.rawValue)) FROM added
        RETURNING 1
      )
      SELECT count(*) FROM befriended
      """)
    #expect(made == count)
  }
}

extension LossyTransport.Sent {
  /// The verdicts of a validation; none of another request.
  func verdicts() throws -> [CacheCollection: Verdict] {
    guard path.contains("/cache/validate/"), let response else { return [:] }
    return try response.verdicts()
  }
}

extension Data {
  fileprivate func verdicts() throws -> [CacheCollection: Verdict] {
    let verdicts = try JSONDecoder().decode([String: Verdict].self, from: self)
    let known = verdicts.compactMap { name, verdict in CacheCollection(rawValue: name).map { ($0, verdict) } }
    return Dictionary(uniqueKeysWithValues: known)
  }
}

extension TestUser {
  /// Creates events, some at a time.
  ///
  /// - Returns: the events, in the order of their starts.
  func createEvents(_ count: Int, inviting guests: [TestUser], note: String? = nil) async throws -> [Event] {
    var events: [Event] = []
    try await withThrowingTaskGroup(of: Event.self) { group in
      for number in 0..<count {
        if number >= 8, let event = try await group.next() { events.append(event) }
        var draft = EventDraft.planned("Event \(number)", inviting: guests)
        draft.startTime.addTimeInterval(Double(number) * 60)
        draft.note = note
        group.addTask { [draft] in try await client.events.create(draft) }
      }
      for try await event in group { events.append(event) }
    }
    return events.sorted { $0.startTime < $1.startTime }
  }
}
