import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct LoadSeedTests {
  private func plant(_ databaseURL: String, seed: UInt64 = 1, isForced: Bool = false) async throws {
    let configuration = try await MusterConfiguration.load(
      environment: Muster.ownersEnvironment(databaseURL), file: nil)
    let noon = try #require(Timestamp(rfc3339: "2030-05-01T12:00:00Z"))
    try await LoadSeed(users: 300, seed: seed, now: noon).plant(in: configuration, isForced: isForced) { _, _ in }
  }

  /// A hash of all data that the seed determines.
  private func fingerprint(_ databaseURL: String) async throws -> String {
    try await ScriptConnection.run(databaseURL) { connection in
      var words: [String] = []
      for (table, columns) in [
        ("users", "id, username, display_name, bio, created_at"), ("friendships", "user_a, user_b, since"),
        ("events", "id, title, start_time, capacity, going_count"), ("invitations", "event_id, user_id, status"),
        ("user_stamps", "*"),
      ] {
        let sql: SQL = """
          SELECT md5(string_agg(r::text, '' ORDER BY r::text)) FROM (SELECT \(unescaped: columns) FROM \(unescaped: table)) r
          """
        words.append(try #require(try connection.rows(sql).first)[0])
      }
      return words.joined()
    }
  }

  @Test func `the same seed makes the same data, and another seed makes different data`() async throws {
    var prints: [String] = []
    for seed in [1, 1, 2] as [UInt64] {
      try await TestApp.withDatabase { databaseURL in
        try await plant(databaseURL, seed: seed)
        prints.append(try await fingerprint(databaseURL))
      }
    }
    #expect(prints[0] == prints[1])
    #expect(prints[0] != prints[2])
  }

  @Test func `the data is realistic and consistent, and every key and index is in place`() async throws {
    let schema: SQL = """
      SELECT (SELECT string_agg(indexdef, ';' ORDER BY indexdef) FROM pg_indexes WHERE schemaname = 'public')
        || (SELECT string_agg(conname || pg_get_constraintdef(oid), ';' ORDER BY conname, conrelid::regclass::text)
            FROM pg_constraint WHERE connamespace = 'public'::regnamespace)
      """
    try await TestApp.withDatabase { databaseURL in
      let database = try Database(Database.Configuration(url: databaseURL))
      defer { database.close() }
      let before: String? = try await database.value(schema)
      try await plant(databaseURL)
      let after: String? = try await database.value(schema)
      #expect(before == after)
      for (what, query) in [
        ("people", "SELECT count(*) = 300 FROM users"),
        ("friends", "SELECT avg(n) BETWEEN 45 AND 55 FROM (SELECT count(*) n FROM friends GROUP BY user_id) f"),
        ("events", "SELECT count(*) = 600 FROM events"),
        ("guests", "SELECT count(*) BETWEEN 4800 AND 7200 FROM invitations"),
        ("answers", "SELECT count(DISTINCT status) = 5 FROM invitations"),
        ("stamps", "SELECT count(*) = 300 FROM user_stamps"),
        (
          "all guests are friends",
          """
          SELECT NOT EXISTS (
            SELECT 1 FROM invitations i JOIN events e ON e.id = i.event_id
            LEFT JOIN friends f ON f.user_id = e.creator_id AND f.friend_id = i.user_id WHERE f.user_id IS NULL)
          """
        ),
        (
          "counts",
          """
          SELECT NOT EXISTS (
            SELECT 1 FROM events e WHERE (going_count, waitlisted_count) <> (
              SELECT count(*) FILTER (WHERE status = 'going'), count(*) FILTER (WHERE status = 'waitlisted')
              FROM event_guests WHERE event_id = e.id))
          """
        ),
        ("places", "SELECT NOT EXISTS (SELECT 1 FROM events WHERE going_count > capacity)"),
      ] as [(String, SQL)] {
        let holds: Bool? = try await database.value(query)
        #expect(holds == true, "\(what)")
      }
    }
  }

  @Test func `synthetic users are not mixed with existing users by mistake`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let error = await #expect(throws: AppError.self) { try await plant(app.databaseURL) }
      #expect(error == .databaseNotEmpty)
      try await plant(app.databaseURL, isForced: true)
      #expect(try await app.value("SELECT count(*) FROM users") == 301)
      // A synthetic user logs in with the documented password.
      let username: String = try #require(
        try await app.value("SELECT username FROM users WHERE username LIKE '%.7' LIMIT 1"))
      #expect(try await app.logIn(username, LoadSeed.password).status == 200)
    }
  }
}
