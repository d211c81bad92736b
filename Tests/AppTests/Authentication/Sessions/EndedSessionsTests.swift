import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// A process's copy of the ended sessions, and how it is read.
@Suite struct EndedSessionsTests {
  /// A copy that reads only on request.
  private func withCopy(
    of app: TestApp, pageLength: Int = 20_000, logger: Logger? = nil,
    _ body: (EndedSessions) async throws -> Void
  ) async throws {
    let configuration = try await MusterConfiguration.load(
      environment: Muster.environment(app.databaseURL), file: nil)
    let logger = logger ?? app.dependencies.logger
    let copy = try EndedSessions(
      configuration.database("copy", logger: logger), lifetime: 900, maximumAge: .seconds(60), pageLength: pageLength,
      logger: logger)
    defer { copy.close() }
    // It waits only half a second for a connection, which opening one can exceed while many tests start.
    try await eventually { (try? await copy.database.value("SELECT 1") as Int?) == 1 }
    try await body(copy)
  }

  /// Inserts sessions that one transaction has ended, without the cost of ending them.
  private func plant(_ count: Int, in app: TestApp, age: String = "0 s") async throws {
    try await app.database.batch(
      "ALTER TABLE sessions DISABLE TRIGGER session_ends",
      """
      INSERT INTO sessions (id, rotated_at, kid, created_at, ended_at, ended_xid)
      SELECT gen_random_uuid(), moment, 'k', moment, moment, pg_current_xact_id()
      FROM generate_series(1, \(count)) AS number,
        LATERAL (SELECT now() - \(age)::interval - number * interval '1 microsecond' AS moment) AS m
      """,
      "ALTER TABLE sessions ENABLE TRIGGER session_ends")
  }

  @Test func `a transaction that commits late is not missed, however many reads happen meanwhile`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let late = try ana.session
      let others = [try await app.signUp("ben"), try await app.signUp("cleo"), try await app.signUp("dev")]
      try await withCopy(of: app) { copy in
        try await copy.read()
        try await app.database.transaction { open in
          try await open.rows("UPDATE sessions SET ended_at = clock_timestamp() WHERE id = \(late)")
          // Each of these begins and commits while that transaction is open.
          for phone in others {
            #expect(try await phone.send("POST", "auth/logout").status == 204)
            try await copy.read()
            #expect(copy.knows(try phone.session))
            #expect(!copy.knows(late))
          }
          try await copy.read()
        }
        try await copy.read()
        #expect(copy.knows(late))
        #expect(copy.count == 4)
        // Nothing is read twice.
        let position = try #require(copy.copy.withLock { $0.position })
        let news = try await app.database.rows(EndedSessions.ended(since: position.snapshot, atMost: 10))
        #expect(news.isEmpty)
      }
    }
  }

  @Test func `many ended sessions are read in pages, at the start and when they end at once`() async throws {
    try await TestApp.run { app in
      try await plant(2500, in: app)
      try await plant(50, in: app, age: "37 minutes")
      try await withCopy(of: app, pageLength: 100) { copy in
        try await copy.read()
        #expect(copy.count == 2500)
        #expect(copy.isFresh)
        for (added, known) in [(1, 2501), (100, 2601), (101, 2702), (1500, 4202)] {
          try await plant(added, in: app)
          try await copy.read()
          #expect(copy.count == known)
        }
      }
    }
  }

  @Test func `both reads use index ranges, with and without statistics of the table`() async throws {
    try await TestApp.run(isShared: false) { app in
      try await app.database.execute("ANALYZE sessions")
      let before: String = try #require(try await app.value("SELECT pg_current_snapshot()::text"))
      try await plant(20_000, in: app)
      let after: String = try #require(try await app.value("SELECT pg_current_snapshot()::text"))
      for _ in 0..<2 {
        for snapshot in [before, after] {
          let plan = try await explain(EndedSessions.ended(since: snapshot, atMost: 20_001), in: app)
          #expect(plan.contains("ended_sessions_by_transaction"), "\(plan)")
          #expect(plan.contains("Index Cond: ((ended_xid >= "), "\(plan)")
          #expect(!plan.contains("Seq Scan") && !plan.contains("ended_sessions_by_use"), "\(plan)")
        }
        let all = EndedSessions.ended(
          afterUse: Timestamp.now().adding(seconds: -1020), id: .new(), atMost: 20_000)
        let plan = try await explain(all, EndedSessions.onlyByIndex, in: app)
        #expect(plan.contains("Index Scan using ended_sessions_by_use"), "\(plan)")
        #expect(plan.contains("Index Cond: (ROW(GREATEST(rotated_at, ended_at), id) > ROW("), "\(plan)")
        try await app.database.execute("ANALYZE sessions")
      }
    }
  }

  private func explain(_ statement: SQL, _ settings: [SQL] = [], in app: TestApp) async throws -> String {
    try await app.database.transaction { transaction in
      for setting in settings { try transaction.write(setting) }
      let lines = try await transaction.rows("EXPLAIN \(statement)")
      return try lines.map { try $0[0] as String }.joined(separator: "\n")
    }
  }

  @Test func `a position from another server is not used`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await withCopy(of: app) { copy in
        try await copy.read()
        // As if read from a primary that was ahead when it was lost.
        copy.copy.withLock {
          $0.position = EndedSessions.Position(snapshot: "900000000:900000000:", server: "another")
        }
        #expect(try await ana.send("POST", "auth/logout").status == 204)
        try await copy.read()
        #expect(copy.knows(try ana.session))
      }
      // The rows of a restored backup carry numbers from the future. They are not new.
      try await app.database.execute("UPDATE sessions SET ended_xid = '900000000'")
      let now: String = try #require(try await app.value("SELECT pg_current_snapshot()::text"))
      #expect(try await app.database.rows(EndedSessions.ended(since: now, atMost: 10)).isEmpty)
    }
  }

  @Test func `after a restored backup a logout stops the access tokens, however old its row is`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.database.execute("UPDATE sessions SET rotated_at = rotated_at - interval '1 day'")
      #expect(try await ana.send("POST", "auth/logout").status == 204)
      try await eventually { try await ana.send("GET", "users/me").problem == "session-ended" }
      // A process that starts now also reads it.
      try await withCopy(of: app) { copy in
        try await copy.read()
        #expect(copy.knows(try ana.session))
      }
    }
  }

  @Test func `an ended session is known while its access tokens may be valid`() async throws {
    try await TestApp.run { app in
      try await plant(10, in: app)
      try await withCopy(of: app) { copy in
        // Clocks may be off by 10 minutes, each in another direction.
        #expect(copy.seconds == 900 + 1260)
        try await copy.read()
        // Its half of the set is dropped only after two such periods.
        for known in [10, 0] {
          copy.copy.withLock { $0.turnedAt -= .seconds(copy.seconds + 1) }
          try await copy.read()
          #expect(copy.count == known)
        }
      }
    }
  }

  @Test func `requests that are refused for lack of a copy are logged in one line with their number`() async throws {
    let log = CapturedLog()
    try await TestApp.run { app in
      try await withCopy(of: app, logger: log.logger()) { copy in
        let caller = AccessTokens.Caller(user: .new(), session: .new(), epoch: 0, expires: .now())
        for _ in 0..<50 { #expect(throws: AppError.databaseUnavailable) { try copy.check(caller) } }
        let lines = log.lines.filter { $0.message.contains("refusing") }
        #expect(lines.count == 1)
        #expect(lines.first?.metadata["requests"] == "1")
        #expect(lines.first?.metadata["age_seconds"] != nil)
        #expect(copy.age > .zero)
        try await copy.read()
        #expect(throws: Never.self) { try copy.check(caller) }
      }
    }
  }
}

extension EndedSessions {
  fileprivate func knows(_ session: Session.ID) -> Bool {
    copy.withLock { $0.recent.contains(session) || $0.earlier.contains(session) }
  }
}
