import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The cost of a change in the database: the rows that it writes, and the way that it finds rows.
@Suite struct WriteCostTests {
  /// Counts the rows that are written from now on, by table.
  private func countRows(in app: TestApp) async throws {
    try await ScriptConnection.run(app.databaseURL) {
      try $0.script(
        """
        CREATE TABLE written (name text NOT NULL);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO written VALUES (coalesce(pg_partition_root(TG_RELID)::regclass::text, TG_TABLE_NAME));
          RETURN NULL;
        END
        $$;
        DO $$
        DECLARE
          name text;
        BEGIN
          FOR name IN
            SELECT relname FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'written'
          LOOP
            EXECUTE format(
              'CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION note()', name);
          END LOOP;
        END $$;
        """)
    }
  }

  @Test func `a change writes its own rows, one row of stamps per user, and one row for its notice`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let guests = try await app.crowd(10, around: ana)
      try await countRows(in: app)
      func rows(_ action: () async throws -> Void) async throws -> [String: Int] {
        try await app.database.execute("DELETE FROM written")
        try await action()
        let rows = try await app.database.rows("SELECT name, count(*) FROM written GROUP BY name")
        return try Dictionary(uniqueKeysWithValues: rows.map { (try $0[0], try $0[1]) })
      }
      var (id, request) = ("", "")
      let creating = try await rows { id = try await ana.createEvent(inviting: guests)["id"].string ?? "" }
      // Two writes: the event, then its counts.
      #expect(creating == ["events": 2, "invitations": 10, "user_stamps": 11, "notification_queue": 1])
      try await app.fanOut()
      let editing = try await rows { try await ana.edit(id, #"{"title": "Dinner"}"#) }
      #expect(editing == ["events": 1, "user_stamps": 11, "notification_queue": 1])
      let filing = try await rows { try await app.fanOut() }
      #expect(filing == ["notifications": 10, "user_stamps": 10, "notification_queue": 1])
      let answering = try await rows { try await guests[0].answer("going", to: id) }
      #expect(answering == ["invitations": 1, "events": 1, "user_stamps": 11, "notification_queue": 1])
      let cancelling = try await rows { try await ana.cancelEvent(id) }
      #expect(cancelling == ["events": 1, "user_stamps": 11, "notification_queue": 1])
      let asking = try await rows { request = try await ana.sendFriendRequest(to: ben) }
      #expect(asking == ["friend_requests": 1, "user_stamps": 2, "notification_queue": 1])
      let accepting = try await rows { try await ben.accept(request) }
      #expect(accepting == ["friend_requests": 1, "friendships": 1, "user_stamps": 2, "notification_queue": 1])
      try await app.fileNotifications(3, for: ben)
      let reading = try await rows { try await ben.markRead(#"{"all": true}"#) }
      #expect(reading == ["notifications": 3, "user_stamps": 1])
      // With another iPhone, one more row.
      try await ben.signInAgain().register(.ios, token: String(repeating: "ab", count: 32))
      try await app.fileNotifications(3, for: ben)
      let pushing = try await rows { try await ben.markRead(#"{"all": true}"#) }
      #expect(pushing == ["notifications": 3, "user_stamps": 1, "deliveries": 1])
      try await app.takeNotifications()
    }
  }

  /// The server's statistics. Waits until all other sessions have ended, because they report their statistics at the
  /// end.
  private func counts(_ databaseURL: String) async throws -> (scans: [String: Int], spills: Int) {
    try await ScriptConnection.run(databaseURL) { connection in
      var others = 1
      while others > 0 {
        let rows = try connection.rows(
          """
          SELECT count(*)::integer FROM pg_stat_activity
          WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
          """)
        others = try #require(rows.first)[0]
      }
      let scans = try connection.rows(
        """
        SELECT relname::text, seq_scan FROM pg_stat_user_tables
        UNION ALL
        SELECT indexrelname::text, idx_scan FROM pg_stat_user_indexes
        """)
      let spills = try connection.rows("SELECT temp_files FROM pg_stat_database WHERE datname = current_database()")
      return (
        try Dictionary(uniqueKeysWithValues: scans.map { (try $0[0], try $0[1]) }), try #require(spills.first)[0]
      )
    }
  }

  @Test func `an edit and its fan-out find every row by an index, and sort in memory`() async throws {
    try await TestApp.withDatabase { databaseURL in
      let (host, event) = (User.ID.new(), Event.ID.new())
      let planting = try Database(Database.Configuration(url: databaseURL))
      // With enough other rows, the planner has no reason to read whole tables.
      try await planting.batch(
        """
        INSERT INTO users (id, username, display_name)
        SELECT CASE number WHEN 0 THEN \(host) ELSE uuid_v7() END, 'user' || number, 'User'
        FROM generate_series(0, 3000) AS number
        """,
        "INSERT INTO user_stamps (user_id) SELECT id FROM users",
        """
        INSERT INTO events (
          id, creator_id, title, start_time, time_zone, live_until, invited_count, start_offset, zone_rules
        )
        SELECT CASE number WHEN 0 THEN \(event) ELSE uuid_v7() END, \(host), 'Picnic', now() + interval '1 day', 'UTC',
          now() + interval '3 days', 100, 0, '2025b'
        FROM generate_series(0, 2000) AS number
        """,
        """
        INSERT INTO invitations (event_id, user_id)
        SELECT events.id, guests.id
        FROM (SELECT id FROM events ORDER BY id = \(event) DESC LIMIT 200) AS events
        CROSS JOIN (SELECT id FROM users WHERE id <> \(host) LIMIT 100) AS guests
        """,
        """
        INSERT INTO notification_queue (type, subject_id, recipient_ids, payload, died_at)
        SELECT 'event-cancelled', uuid_v7(), ARRAY[\(host)], '{}', now() FROM generate_series(1, 2000)
        """,
        "ANALYZE")
      planting.close()
      let before = try await counts(databaseURL)
      let database = try Database(Database.Configuration(url: databaseURL))
      try await database.change { change in
        try await Event.edit(event, by: host, ifVersionIn: nil, in: change) { plan, offsets in
          var plan = plan
          plan.title = "Dinner"
          return (plan, offsets)
        }
      }
      #expect(try await FanOut.step(in: database).notices > 0)
      database.close()
      let after = try await counts(databaseURL)
      let counted = after.scans.filter { $0.value > before.scans[$0.key, default: 0] }
      for index in ["user_stamps_pkey", "events_pkey", "notification_queue_in_order"] {
        #expect(counted[index] != nil, "\(index) is not used: \(counted)")
      }
      let inboxes = counted.keys.filter { $0.wholeMatch(of: /notifications(_\d+|_default)?/) != nil }
      for table in ["users", "user_stamps", "events", "invitations", "notification_queue", "devices"] + inboxes {
        #expect(counted[table] == nil, "\(table) is read with a sequential scan")
      }
      #expect(after.spills == before.spills)
    }
  }
}
