import Postgres
import Testing

@testable import App

/// How many sessions a user may have, and how often they may start one.
@Suite struct SessionLimitTests {
  /// Inserts open sessions. The first one was used longest ago.
  private func plant(_ count: Int, of phone: Phone, in app: TestApp) async throws {
    try await app.database.execute(
      """
      INSERT INTO sessions (id, user_id, device, rotated_at, kid, created_at)
      SELECT uuid_v7(), \(phone.userID), 'planted ' || number, now() - (100 - number) * interval '1 hour', 'k',
        now() - number * interval '1 day'
      FROM generate_series(1, \(count)) AS number
      """)
  }

  private func open(_ app: TestApp) async throws -> [String?] {
    try await app.database.rows("SELECT device FROM sessions WHERE ended_at IS NULL ORDER BY rotated_at")
      .map { try $0[0] }
  }

  @Test func `one session more than fifty ends the one that was idle longest, with its devices`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await plant(49, of: ana, in: app)
      try await app.database.execute(
        """
        INSERT INTO devices (id, user_id, session_id, platform, token)
        SELECT uuid_v7(), user_id, id, 'log', device FROM sessions WHERE device IN ('planted 1', 'planted 2')
        """)
      #expect(try await open(app).count == 51)
      let phone = try await ana.signInAgain(device: "new")
      let left = try await open(app)
      #expect(left.count == 51)
      #expect(left.first == "planted 2" && left.contains("new"))
      #expect(try await app.value("SELECT count(*) FROM devices") == 1)
      for one in [phone, ana, ben] { _ = try await one.get("users/me") }
      #expect(try await phone.get("auth/sessions?limit=100")["items"].array.count == Session.maximumCount)
    }
  }

  @Test func `a session that is being refreshed is not the one that ends`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await plant(49, of: ana, in: app)
      let elsewhere = try Database(Database.Configuration(url: app.databaseURL))
      defer { elsewhere.close() }
      let login = try await elsewhere.transaction { transaction in
        try await transaction.rows("UPDATE sessions SET rotated_at = clock_timestamp() WHERE device = 'planted 1'")
        let login = Task { try await ana.signInAgain(device: "new") }
        try await app.waitForLocks(1)
        return login
      }
      _ = try await login.value
      let left = try await open(app)
      #expect(left.contains("planted 1") && left.contains("new"))
    }
  }

  @Test func `concurrent logins do not exceed the limit`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await app.signUp("ana")
      try await plant(45, of: ana, in: app)
      #expect(try await app.race(24) { _ in try await app.logIn("ana", ana.password) } == [200: 24])
      #expect(try await open(app).count == Session.maximumCount)
      let planted = try await open(app).filter { $0?.hasPrefix("planted") == true }
      #expect(planted.count == Session.maximumCount - 25)
    }
  }

  @Test func `repeated logins are also slowed down, before the password is hashed`() async throws {
    try await TestApp.run { app in
      let (ana, _) = (try await app.signUp("ana"), try await app.signUp("ben"))
      func counted() async throws -> Double? {
        try await app.value("SELECT failures FROM throttles WHERE key = sha256('sessions by:ana')")
      }
      #expect(try await app.logIn("ana", ana.password).status == 200)
      #expect(try await app.logIn("ana", "wrong horse").status == 401)
      #expect(try #require(try await counted()).rounded() == 1)
      for _ in 0..<20 { #expect(try await app.logIn("ANA", ana.password).status == 200) }
      // The last login is the first one beyond the free ones, and causes a wait of one second.
      try await app.database.execute(
        "UPDATE throttles SET blocked_until = blocked_until + interval '1 minute' WHERE key = sha256('sessions by:ana')"
      )
      for password in [ana.password, "wrong horse"] {
        let refused = try await app.logIn("ana", password)
        #expect(refused.status == 429)
        #expect(refused.problem == "too-many-attempts")
        #expect((1...62).contains(refused.header("Retry-After").flatMap { Int($0) } ?? 0))
      }
      #expect(try await app.logIn("ben", "correct horse ben").status == 200)
      #expect(try await ana.refresh().status == 200)
    }
  }
}
