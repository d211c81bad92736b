import Postgres
import Testing

@testable import App

/// Ana and all users who are related to her, each in one way only.
struct Neighbours: Sendable {
  let app: TestApp
  let ana: Phone
  /// Ana's friend, who hosts `bensEvent`.
  let ben: Phone
  /// Has a pending request from Ana.
  let cleo: Phone
  /// Has sent Ana a request.
  let dev: Phone
  /// Is invited to `anasEvent`, but no longer a friend.
  let emre: Phone
  /// Sent Ana a request that she declined.
  let finn: Phone
  /// Is invited to `bensEvent`, like Ana.
  let gil: Phone
  /// Was invited to Ana's archived event.
  let hugo: Phone
  let anasEvent: String
  let bensEvent: String

  var others: [Phone] { [ben, cleo, dev, emre, finn, gil, hugo] }

  /// - Parameter ana: Ana's username, and the beginning of her display name.
  static func gather(around ana: String = "ana", in app: TestApp) async throws -> Neighbours {
    let ana = try await app.signUp(ana, displayName: "\(ana) Quux")
    var phones: [Phone] = []
    for name in ["ben", "cleo", "dev", "emre", "finn", "gil", "hugo"] { phones.append(try await app.signUp(name)) }
    let (ben, emre, gil, hugo) = (phones[0], phones[3], phones[5], phones[6])
    for (one, other) in [(ana, ben), (ana, emre), (ana, hugo), (ben, gil)] { try await app.befriend(one, other) }
    let anasEvent = try await ana.createEvent("Picnic", inviting: [emre])["id"].string ?? ""
    _ = try await ana.createEvent("Old", inviting: [hugo], startTime: "2020-01-01T10:00:00Z", endTime: nil)
    let archived = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 10, in: $0) }
    #expect(archived == 1)
    let bensEvent = try await ben.createEvent("Dinner", inviting: [ana, gil])["id"].string ?? ""
    let former = [emre.userID, hugo.userID]
    try await app.database.execute("DELETE FROM friendships WHERE user_a = ANY(\(former)) OR user_b = ANY(\(former))")
    try await ana.sendFriendRequest(to: phones[1])
    try await phones[2].sendFriendRequest(to: ana)
    try await ana.decline(try await phones[4].sendFriendRequest(to: ana))
    try await app.takeNotifications()
    return Neighbours(
      app: app, ana: ana, ben: ben, cleo: phones[1], dev: phones[2], emre: emre, finn: phones[4], gil: gil, hugo: hugo,
      anasEvent: anasEvent, bensEvent: bensEvent)
  }
}

extension Phone {
  @discardableResult
  func editProfile(
    _ body: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "editMe", [:], body, expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func deleteAccount(
    expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(
      act: "deleteMe", [:], #"{"password": "\#(password)"}"#, expecting: status, sourceLocation: sourceLocation)
  }

  /// Reads a list repeatedly while `action` runs, and once more afterwards. Every copy with the stamp of the last read
  /// must equal the last read.
  func expectNoStaleCopyCalledFresh(
    of path: String, during action: @escaping @Sendable () async throws -> Void,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    async let acted: Void = action()
    var copies: [JSON] = []
    for _ in 0..<6 { copies.append(try await get(path)) }
    try await acted
    let last = try await get(path)
    for copy in copies where copy["timestamp"] == last["timestamp"] {
      #expect(copy == last, sourceLocation: sourceLocation)
    }
  }
}

extension TestApp {
  /// The collections that `action` makes stale, by username, after a worker has fanned out its notices. Users without
  /// stale collections are left out.
  func stale(
    among phones: [Phone], after action: () async throws -> Void
  ) async throws -> [String: Set<App.Collection>] {
    try await fanOut()
    var before: [(Phone, [App.Collection: String])] = []
    for phone in phones { before.append((phone, try await phone.refreshLists())) }
    try await action()
    try await fanOut()
    var stale: [String: Set<App.Collection>] = [:]
    for (phone, stamps) in before {
      let collections = try await phone.stale(stamps)
      if !collections.isEmpty { stale[phone.username] = collections }
    }
    return stale
  }

  /// Expects that every event's counts are right, and that the first group that waits does not fit, unless the event is
  /// over.
  func expectCounts(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let wrong: Int? = try await value(
      """
      SELECT count(*) FROM events AS e
      WHERE (invited_count, going_count, maybe_count, declined_count, waitlisted_count, pending_count, plus_ones_count) <> (
        SELECT coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'invited'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'going'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'maybe'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'declined'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'waitlisted'), 0),
          coalesce(sum(1 + plus_ones) FILTER (WHERE status = 'pending'), 0), coalesce(sum(plus_ones), 0)
        FROM event_guests WHERE event_id = e.id
      )
      """)
    #expect(wrong == 0, "counts", sourceLocation: sourceLocation)
    let miscounted: Int? = try await value(
      """
      SELECT count(*) FROM events AS e
      WHERE visitor_count <> (SELECT count(*) FROM visitors WHERE event_id = e.id)
      """)
    #expect(miscounted == 0, "visitors", sourceLocation: sourceLocation)
    let hidden: Int? = try await value(
      "SELECT count(*) FROM event_co_hosts AS h JOIN events AS e ON e.id = h.event_id WHERE NOT e.may_have_co_hosts")
    #expect(hidden == 0, "co-hosts", sourceLocation: sourceLocation)
    let unfair: Int? = try await value(
      """
      SELECT count(*) FROM events AS e
      WHERE status = 'scheduled' AND live_until > now() + interval '24 hours' AND (
        -- A group that is larger than the whole event is skipped.
        SELECT capacity IS NULL OR going_count + 1 + plus_ones <= capacity
        FROM event_guests
        WHERE event_id = e.id AND status = 'waitlisted' AND (capacity IS NULL OR plus_ones < capacity)
        ORDER BY answered_at, id
        LIMIT 1
      )
      """)
    #expect(unfair == 0, "free places", sourceLocation: sourceLocation)
  }

  /// Expects consistent data. Counts are right, and no event has more guests than places, which does not hold after a
  /// capacity was lowered. The queue names no deleted user. After fan-out, no inbox and no delivery belongs to a
  /// deleted user or names one.
  ///
  /// - Parameter lowersCapacities: whether hosts have done so.
  func expectConsistency(
    lowersCapacities: Bool = false, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    try await expectCounts(sourceLocation: sourceLocation)
    let crowded: Int? = try await value("SELECT count(*) FROM events WHERE going_count > capacity")
    #expect(crowded == 0 || lowersCapacities, "places", sourceLocation: sourceLocation)
    let orphans: Int? = try await value(
      """
      SELECT count(*) FROM notification_queue AS q
      WHERE person_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users WHERE id = q.person_id)
        OR EXISTS (SELECT 1 FROM unnest(q.recipient_ids) AS recipient (id) JOIN users ON users.id = recipient.id)
          AND payload ? 'userId' AND NOT EXISTS (SELECT 1 FROM users WHERE id = (payload->>'userId')::uuid)
      """)
    #expect(orphans == 0, "queue", sourceLocation: sourceLocation)
    try await fanOut()
    for table in ["notifications", "deliveries"] {
      let unowned: Int? = try await value(
        """
        SELECT count(*) FROM \(unescaped: table) AS n
        WHERE NOT EXISTS (SELECT 1 FROM users WHERE id = n.recipient_id)
          OR n.person_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users WHERE id = n.person_id)
          OR payload ? 'userId' AND NOT EXISTS (SELECT 1 FROM users WHERE id = (payload->>'userId')::uuid)
        """)
      #expect(unowned == 0, "\(table)", sourceLocation: sourceLocation)
    }
    let hosted: Int? = try await value(
      """
      SELECT count(*) FROM events
      WHERE creator_id IS NULL AND status = 'scheduled' AND live_until > now() + interval '24 hours'
      """)
    #expect(hosted == 0, "future events without a host", sourceLocation: sourceLocation)
  }
}
