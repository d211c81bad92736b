import Foundation
import Postgres
import Testing

@testable import App

extension TestApp {
  /// Makes friends of a user with SQL, because registering hundreds of users takes long.
  ///
  /// - Parameter prefix: the start of their usernames, which end in numbers from 1.
  func crowd(_ count: Int, around host: Phone, named prefix: String = "guest") async throws -> [Phone] {
    let ids = (0..<count).map { _ in User.ID.new() }
    try await database.batch(
      """
      INSERT INTO users (id, username, display_name, email_verified_at)
      SELECT id, \(prefix) || place, 'Guest ' || place, now()
      FROM unnest(\(ids)) WITH ORDINALITY AS added (id, place)
      """,
      """
      INSERT INTO user_stamps (user_id) SELECT id FROM unnest(\(ids)) AS added (id)
      """,
      """
      INSERT INTO friendships (user_a, user_b)
      SELECT least(id, \(host.userID)), greatest(id, \(host.userID)) FROM unnest(\(ids)) AS added (id)
      """)
    var phones: [Phone] = []
    for (place, id) in ids.enumerated() {
      let token = try await dependencies.accessTokens.sign(user: id, session: .new())
      phones.append(Phone(self, "\(prefix)\(place + 1)", id: id, accessToken: token))
    }
    return phones
  }

  /// Puts strangers on the guest list of an event with SQL. Their usernames begin with `more`.
  func addGuests(_ count: Int, to event: Event.ID) async throws {
    try await database.batch(
      """
      WITH crowd AS (
        INSERT INTO users (id, username, display_name)
        SELECT gen_random_uuid(), 'more' || number, 'More' FROM generate_series(1, \(count)) AS number
        RETURNING id
      ), stamped AS (
        INSERT INTO user_stamps (user_id) SELECT id FROM crowd
      )
      INSERT INTO invitations (event_id, user_id) SELECT \(event), id FROM crowd
      """,
      "UPDATE events SET invited_count = invited_count + \(count) WHERE id = \(event)")
  }

  /// Plans events with SQL, an hour after another, without moving stamps.
  ///
  /// - Returns: their ids in the order of their start.
  func plan(_ count: Int, by host: Phone, inviting guest: Phone? = nil, note: String? = nil) async throws -> [String] {
    let ids = (0..<count).map { _ in Event.ID.new() }
    try await database.execute(
      """
      INSERT INTO events (
        id, creator_id, title, note, start_time, end_time, time_zone, location_name, latitude, longitude, live_until,
        start_offset, end_offset, zone_rules
      )
      SELECT id, \(host.userID), 'Event ' || place, \(note), timestamptz '2030-05-01' + place * interval '1 hour',
        timestamptz '2030-05-01' + (place + 2) * interval '1 hour', 'Europe/Lisbon', 'Pedreira Velha', 38.6979, -9.4215,
        timestamptz '2031-05-01', 3600, 3600, '2025b'
      FROM unnest(\(ids)) WITH ORDINALITY AS planned (id, place)
      """)
    if let guest {
      try await database.batch(
        """
        INSERT INTO invitations (event_id, user_id, invited_at)
        SELECT id, \(guest.userID), timestamptz '2026-05-01' + place * interval '1 second'
        FROM unnest(\(ids)) WITH ORDINALITY AS planned (id, place)
        """,
        "UPDATE events SET invited_count = 1 WHERE id = ANY(\(ids))")
    }
    return ids.map(\.description)
  }

  /// Signs up users who are all friends. Each hosts an event with two places, which all others want.
  func friendsWhoInviteEachOther(_ count: Int) async throws -> [Phone] {
    var phones: [Phone] = []
    for number in 0..<count { phones.append(try await signUp("user\(number)")) }
    for (index, one) in phones.enumerated() {
      for other in phones.dropFirst(index + 1) { try await befriend(one, other) }
    }
    for phone in phones {
      let guests = phones.filter { $0.id != phone.id }
      let id = try await phone.createEvent(inviting: guests, capacity: 2)["id"].string ?? ""
      for guest in guests { try await guest.answer("going", to: id) }
    }
    return phones
  }

  /// Ana, who hosts an event, and her friends Ben and Cleo, whom she has invited.
  func hostAndGuests() async throws -> (ana: Phone, ben: Phone, cleo: Phone, event: String) {
    let (ana, ben) = try await friends("ana", "ben")
    let cleo = try await signUp("cleo")
    try await befriend(ana, cleo)
    return (ana, ben, cleo, try await ana.createEvent(inviting: [ben, cleo])["id"].string ?? "")
  }

  /// Expects which lists of an event's host and guests a change makes stale. Afterwards, the notices that it sent are
  /// fanned out.
  ///
  /// - Parameter notified: the guests whom the change notifies.
  func expectStale(
    of host: Phone, and guests: [Phone], notified: [Phone], sourceLocation: SourceLocation = #_sourceLocation,
    after change: () async throws -> APIResponse
  ) async throws -> APIResponse {
    let hosts = try await host.refreshLists()
    var theirs: [[App.Collection: String]] = []
    for guest in guests { theirs.append(try await guest.refreshLists()) }
    let response = try await change()
    try await fanOut()
    #expect(try await host.stale(hosts) == [.events], sourceLocation: sourceLocation)
    for (guest, stamps) in zip(guests, theirs) {
      let isNotified = notified.contains { $0.id == guest.id }
      let expected: Set<App.Collection> =
        isNotified ? [.events, .invitations, .notifications] : [.events, .invitations]
      #expect(try await guest.stale(stamps) == expected, sourceLocation: sourceLocation)
    }
    return response
  }
}
