import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The plans of the statements that run most often, in a database with thousands of rows: they find rows by an index,
/// and sort in memory.
@Suite(.serialized) struct PlanTests {
  /// Tables that are large in this test. Nothing reads one of them from end to end.
  private static let largeTables = [
    "users", "user_stamps", "friendships", "friend_requests", "blocks", "events", "invitations", "notification_queue",
    "notifications", "deliveries", "devices", "sessions", "idempotency_keys",
  ]

  /// The expected parts of an action's plans.
  private struct Expected {
    let action: String
    let indexes: [String]
    let plans: [String]
    /// The partition of `notifications` with all rows. The planner may scan one that is empty.
    let month: String

    func check() {
      #expect(!plans.isEmpty, "\(action)")
      for plan in plans {
        for scan in plan.matches(of: /Seq Scan on (\w+)/) {
          #expect(!(largeTables + [month]).contains(String(scan.1)), "\(action): \(plan)")
        }
        // Of a sort, a hash table of groups, and a hash join.
        #expect(!plan.contains("Disk"), "\(action): \(plan)")
        for batches in plan.matches(of: /Batches: (\d+)/) { #expect(batches.1 == "1", "\(action): \(plan)") }
      }
      for index in indexes {
        #expect(
          plans.contains { $0.contains("\(index)") }, "\(action) does not use \(index): \(plans.joined())")
      }
    }
  }

  private static func plant(in app: TestApp, configuration: MusterConfiguration) async throws {
    try await LoadSeed(users: 12_000, seed: 7).plant(in: configuration, isForced: false) { _, _ in }
    try await app.database.batch(
      "CREATE TEMPORARY TABLE numbered ON COMMIT DROP AS SELECT id, row_number() OVER () AS number FROM users",
      """
      INSERT INTO sessions (id, user_id, rotated_at, kid, created_at)
      SELECT uuid_v7(), id, now(), 'k', now() FROM numbered
      """,
      """
      INSERT INTO devices (id, user_id, session_id, platform, token)
      SELECT uuid_v7(), user_id, id, 'log', id::text FROM sessions
      """,
      """
      INSERT INTO friend_requests (id, sender_id, receiver_id)
      SELECT uuid_v7(), one.id, other.id
      FROM numbered AS one JOIN numbered AS other ON other.number BETWEEN one.number + 1 AND one.number + 3
      """,
      """
      INSERT INTO blocks (blocker_id, blocked_id, created_at)
      SELECT one.id, other.id, now()
      FROM numbered AS one JOIN numbered AS other ON other.number = one.number + 10
      """,
      """
      INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, person_id, payload, created_at, read_at)
      SELECT id, now() - place * interval '1 minute', uuid_v7(), 'event-cancelled', uuid_v7(), id,
        '{"type": "event-cancelled", "title": "Picnic"}', now(), CASE WHEN place > 3 THEN now() END
      FROM numbered CROSS JOIN generate_series(1, 10) AS place
      """,
      """
      INSERT INTO notification_queue (type, subject_id, recipient_ids, payload, died_at)
      SELECT 'event-cancelled', uuid_v7(), ARRAY[id], '{}', now() FROM numbered
      """,
      """
      INSERT INTO deliveries (notification_id, recipient_id, device_id, type, subject_id, payload, created_at, due_at)
      SELECT uuid_v7(), user_id, id, 'event-cancelled', uuid_v7(), '{}', now(), now() + interval '1 hour' FROM devices
      """,
      """
      INSERT INTO idempotency_keys (digest, user_id, kid, fingerprint)
      SELECT decode(md5(id::text), 'hex'), id, 'k', 'x' FROM numbered
      """,
      "ANALYZE")
  }

  @Test func `the statements that run most often find their rows by an index, and sort in memory`() async throws {
    let log = try await PlanLog()
    // Past a pooler, whose sessions may be older.
    try await TestApp.run(pastPooler: true, prepare: { try await PlanLog.begin(in: $0) }) { app in
      let configuration = try await MusterConfiguration.load(
        for: .dev, environment: Muster.ownersEnvironment(app.databaseURL), file: nil)
      try await Self.plant(in: app, configuration: configuration)
      let ana = try await app.signUp("ana")
      let friends = try await app.crowd(40, around: ana)
      let strangers = try await app.crowd(10, around: friends[0], named: "stranger")
      for friend in friends.prefix(3) { try await friend.addSessionAndDevice() }
      try await app.fileNotifications(100, for: ana)
      try await app.database.execute("ANALYZE")
      let month: String = try #require(
        try await app.value(
          "SELECT name FROM notification_partitions JOIN pg_class ON relname = name ORDER BY reltuples DESC LIMIT 1"))
      // Often enough that PostgreSQL keeps a plan for all parameters, where that is cheaper.
      func check(
        _ action: String, times: Int = 12, _ indexes: String..., body: (Int) async throws -> Void
      ) async throws {
        let plans = try await log.plans { for time in 0..<times { try await body(time) } }
        Expected(action: action, indexes: indexes, plans: plans, month: month).check()
      }
      var (events, requests): ([String], [String]) = ([], [])
      try await check("creating an event with invitees", "events_pkey", "user_stamps_pkey") {
        let event = try await ana.createEvent("Picnic \($0)", inviting: Array(friends.prefix(10)))
        events.append(event["id"].string ?? "")
      }
      try await check("editing", "events_pkey", "invitations_in_order", "user_stamps_pkey") {
        try await ana.edit(events[0], #"{"title": "Dinner \#($0)"}"#)
      }
      try await check("answering", "events_pkey", "invitations_pkey", "user_stamps_pkey") {
        try await friends[0].answer($0.isMultiple(of: 2) ? "going" : "maybe", to: events[1])
      }
      for stranger in strangers { requests.append(try await stranger.sendFriendRequest(to: ana)) }
      try await check("accepting", times: 10, "friend_requests_pkey", "users_pkey", "user_stamps_pkey") {
        try await ana.accept(requests[$0])
      }
      try await check("fan-out", "notification_queue_pkey", "notification_queue_in_order", "user_stamps_pkey") { time in
        try await ana.edit(events[2], #"{"title": "Lunch \#(time)"}"#)
        _ = try await FanOut.step(time.isMultiple(of: 2) ? .oldest : .recent, in: app.service)
      }
      try await check("delivering", "deliveries_due", "deliveries_in_order", "devices_of_user", "deliveries_pkey") {
        time in
        try await ana.edit(events[3], #"{"title": "Tea \#(time)"}"#)
        try await app.worker(Recorder()).step()
      }
      try await check("validating", "user_stamps_pkey") { _ in
        _ = try await ana.send("POST", "cache/validate/\(ana.id)", "{}")
      }
      try await check("the feed", "events_of_creator", "invitations_of_user", "user_stamps_pkey") { _ in
        _ = try await ana.get("events")
        _ = try await friends[0].get("events")
      }
      try await check("the invitations", "invitations_of_user") { _ in _ = try await friends[0].get("invitations") }
      try await check("the friend list", "friendships_pkey", "friendships_reversed", "users_pkey") { _ in
        _ = try await ana.get("friends")
        _ = try await friends[0].get("friends")
      }
      let people = (friends + strangers).map(\.id).joined(separator: ",")
      try await check("people by their ids", "users_pkey", "friendships_pkey", "one_pending_friend_request_per_pair") {
        _ in
        _ = try await ana.get("users?ids=\(people)")
      }
      try await check("the requests", "friend_requests_received") { _ in
        _ = try await ana.get("friend-requests?direction=incoming")
      }
      let unread = "\(month)_recipient_id_filed_at_idx"
      try await check("the inbox", "\(month)_pkey", unread) { _ in
        _ = try await ana.get("notifications")
      }
      try await check("marking as read", unread, "user_stamps_pkey") { _ in
        try await app.fileNotifications(1, for: ana)
        try await ana.markRead(#"{"all": true}"#)
      }
      try await app.database.execute("DELETE FROM notification_queue WHERE died_at IS NOT NULL")
      try await app.takeNotifications()
    }
  }
}

extension Phone {
  /// For a user who was planted with SQL.
  fileprivate func addSessionAndDevice() async throws {
    let session = Session.ID.new()
    try await app.database.batch(
      """
      INSERT INTO sessions (id, user_id, rotated_at, kid, created_at)
      VALUES (\(session), \(userID), now(), 'k', now())
      """,
      """
      INSERT INTO devices (id, user_id, session_id, platform, token)
      VALUES (uuid_v7(), \(userID), \(session), 'log', \(username))
      """)
  }
}
