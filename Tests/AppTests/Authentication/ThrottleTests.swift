import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct ThrottleTests {
  private func logIn(
    _ app: TestApp, _ login: String = "ana", _ password: String = "wrong horse", from forwarded: String? = nil
  ) async throws -> APIResponse {
    try await app.logIn(login, password, from: forwarded)
  }

  /// - Parameter key: label and subject, as in `login:ana`.
  private func failures(_ app: TestApp, _ key: String) async throws -> Int? {
    try await app.value("SELECT round(failures)::integer FROM throttles WHERE key = sha256(convert_to(\(key), 'UTF8'))")
  }

  /// The wait in seconds that the last failure has caused.
  private func wait(_ app: TestApp, _ key: String) async throws -> Double? {
    try await app.value(
      """
      SELECT extract(epoch FROM blocked_until - (expires_at - interval '24 hours'))::float8
      FROM throttles WHERE key = sha256(convert_to(\(key), 'UTF8'))
      """)
  }

  private func letWaitsPass(_ app: TestApp) async throws {
    try await app.database.execute("UPDATE throttles SET blocked_until = now()")
  }

  private func block(_ app: TestApp, _ key: String) async throws {
    let blocked = try await app.database.execute(
      """
      UPDATE throttles SET blocked_until = now() + interval '10 minutes'
      WHERE key = sha256(convert_to(\(key), 'UTF8'))
      """)
    #expect(blocked.affected == 1, "\(key)")
  }

  private func setFailures(_ app: TestApp, _ key: String, to failures: Int) async throws {
    try await app.database.execute(
      "UPDATE throttles SET failures = \(failures) WHERE key = sha256(convert_to(\(key), 'UTF8'))")
  }

  // MARK: Waits

  @Test func `the first failures cost nothing, and then each doubles the wait, up to a quarter of an hour`()
    async throws
  {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      var waits: [Double?] = []
      for _ in 0..<18 {
        #expect(try await logIn(app).status == 401)
        waits.append(try await wait(app, "login:ana"))
        try await letWaitsPass(app)
      }
      let doubling: [Double?] = [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]
      #expect(waits == doubling)
    }
  }

  @Test func `an address may fail more often, and then also waits, whatever login it tries`() async throws {
    try await TestApp.run { app in
      var waits: [Double?] = []
      for number in 0..<23 {
        #expect(try await logIn(app, "user\(number)").status == 401)
        waits.append(try await wait(app, "logins:127.0.0.1"))
        try await letWaitsPass(app)
      }
      let doubling: [Double?] = Array(repeating: 0, count: 20) + [1, 2, 4]
      #expect(waits.map { $0?.rounded() } == doubling)
      try await block(app, "logins:127.0.0.1")
      #expect(try await logIn(app, "another").status == 429)
    }
  }

  @Test func `a refused attempt gets the time to wait, and does not extend it`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      _ = try await logIn(app)
      try await block(app, "login:ana")
      let before: Timestamp? = try await app.value("SELECT max(blocked_until) FROM throttles")
      // The right password does not help: it may have been guessed.
      for password in ["wrong horse", "correct horse ana"] {
        let response = try await logIn(app, "ana", password)
        #expect(response.status == 429)
        #expect(response.problem == "too-many-attempts")
        let seconds = response.header("Retry-After").flatMap { Int($0) } ?? 0
        #expect((1...600).contains(seconds))
      }
      let after: Timestamp? = try await app.value("SELECT max(blocked_until) FROM throttles")
      #expect(before == after)
      #expect(try await failures(app, "login:ana") == 1)
      #expect(try await failures(app, "logins:127.0.0.1") == 1)
    }
  }

  @Test func `of a hundred concurrent attempts only one passes, if only one may`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      _ = try await logIn(app)
      try await setFailures(app, "login:ana", to: 15)
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<100 { group.addTask { try await logIn(app).status } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(statuses.filter { $0 == 401 }.count == 1)
      #expect(statuses.filter { $0 == 429 }.count == 99)
      #expect(try await failures(app, "login:ana") == 16)
      #expect(try await failures(app, "logins:127.0.0.1") == 2)
    }
  }

  @Test func `attempts on the same keys in any order do not block each other`() async throws {
    try await TestApp.run { app in
      let keys = (1...3).map { Throttle.Key.logins(from: "192.0.2.\($0)") }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<18 {
          group.addTask {
            let turned = number % 2 == 0 ? keys : Array(keys.reversed())
            _ = try await app.dependencies.throttle.attempt(turned[0], turned[1], turned[2]) {
              number % 3 == 0 ? number : Int?.none
            }
          }
        }
        try await group.waitForAll()
      }
      for number in 1...3 { #expect(try await failures(app, "logins:192.0.2.\(number)") == 12) }
    }
  }

  @Test func `two processes count together`() async throws {
    try await TestApp.run { app in
      let configuration = try await MusterConfiguration.load(
        environment: Muster.environment(app.databaseURL), file: nil)
      let other = try await Dependencies(configuration, name: "other", logger: app.dependencies.logger)
      defer { other.database.close() }
      _ = try await logIn(app)
      _ = try await other.throttle.attempt(.login("ana")) { Int?.none }
      #expect(try await failures(app, "login:ana") == 2)
      try await block(app, "login:ana")
      for throttle in [app.dependencies.throttle, other.throttle] {
        await #expect(throws: AppError.self) {
          try await throttle.attempt(.login("ana")) { Int?.none }
        }
      }
    }
  }

  // MARK: The end of a wait

  @Test func `a success clears the failures of the login, but not those of the address`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      for _ in 0..<5 { _ = try await logIn(app) }
      #expect(try await logIn(app, "ana", "correct horse ana").status == 200)
      #expect(try await failures(app, "login:ana") == 0)
      #expect(try await failures(app, "logins:127.0.0.1") == 5)
    }
  }

  @Test func `a success neither clears nor blocks an address that has failed often`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      _ = try await logIn(app)
      try await setFailures(app, "logins:127.0.0.1", to: 30)
      #expect(try await logIn(app, "ana", "correct horse ana").status == 200)
      #expect(try await failures(app, "logins:127.0.0.1") == 30)
      #expect(try await logIn(app).status == 401)
      #expect(try await wait(app, "logins:127.0.0.1").map { $0 > 800 } == true)
    }
  }

  @Test func `an error is neither a failure nor a success`() async throws {
    struct Away: Error {}
    try await TestApp.run { app in
      let throttle = app.dependencies.throttle
      _ = try await throttle.attempt(.login("ana"), .logins(from: "192.0.2.1")) { Int?.none }
      for _ in 0..<10 {
        await #expect(throws: Away.self) {
          try await throttle.attempt(.login("ana"), .logins(from: "192.0.2.1")) { () -> Int? in throw Away() }
        }
      }
      for key in ["login:ana", "logins:192.0.2.1"] {
        #expect(try await failures(app, key) == 1, "\(key)")
      }
    }
  }

  @Test func `an action that needs no proof counts each time`() async throws {
    try await TestApp.run { app in
      let throttle = app.dependencies.throttle
      for _ in 0..<6 { try await throttle.count(.changes(to: "Ana@example.com")) }
      #expect(try await wait(app, "changes to:ana@example.com") == 60)
      await #expect(throws: AppError.self) { try await throttle.count(.changes(to: "ana@example.com")) }
      // Other users' actions with an address do not prevent a change to it.
      for _ in 0..<5 { try await throttle.count(.registrations(with: "ben@example.com")) }
      try await throttle.count(.changes(to: "ben@example.com"))
    }
  }

  @Test func `the count of an address halves in an hour, so that a town behind it is not locked out`() async throws {
    try await TestApp.run { app in
      let throttle = app.dependencies.throttle
      try await throttle.count(.resets(from: "192.0.2.1"), .changes(to: "ana@example.com"))
      try await setFailures(app, "resets from:192.0.2.1", to: 24)
      try await setFailures(app, "changes to:ana@example.com", to: 4)
      try await app.database.execute("UPDATE throttles SET expires_at = expires_at - interval '2 hours'")
      try await throttle.count(.resets(from: "192.0.2.1"), .changes(to: "ana@example.com"))
      #expect(try await failures(app, "resets from:192.0.2.1") == 7)
      #expect(try await failures(app, "changes to:ana@example.com") == 5)
    }
  }

  @Test func `registrations from one client are limited, and so are mails to one address`() async throws {
    try await TestApp.run { app in
      func register(_ name: String, _ email: String) async throws -> Int {
        try await app.send(
          "POST", "auth/register",
          body: #"{"username": "\#(name)", "email": "\#(email)", "password": "correct horse"}"#
        ).status
      }
      for number in 1...5 {
        #expect(try await register("ana-\(number)", "ana@example.com") == 201)
        try await app.database.execute("DELETE FROM sessions")
        try await app.database.execute("DELETE FROM users")
      }
      #expect(try await register("ana-6", "ANA@example.com") == 201)
      #expect(try await register("ana-7", "ana@example.com") == 429)
      try await setFailures(app, "registrations:127.0.0.1", to: 51)
      #expect(try await register("ben", "ben@example.com") == 201)
      #expect(try await register("cleo", "cleo@example.com") == 429)
      #expect(try await app.value("SELECT count(*) FROM users") == 2)
    }
  }

  @Test func `a count expires after a day without a failure, and the worker deletes it`() async throws {
    try await TestApp.run { app in
      _ = try await logIn(app, "ana")
      _ = try await logIn(app, "ben")
      try await app.database.execute(
        """
        UPDATE throttles SET failures = 30, expires_at = now()
        WHERE key <> sha256(convert_to('login:ben', 'UTF8'))
        """)
      _ = try await logIn(app, "ana")
      #expect(try await failures(app, "login:ana") == 1)
      try await app.database.execute(
        "UPDATE throttles SET expires_at = now() WHERE key <> sha256(convert_to('login:ben', 'UTF8'))")
      let worker = NotificationWorker(
        app.dependencies, sender: LogSender(logger: app.dependencies.logger), mailer: NoMailer(), concurrency: 1)
      try await worker.runOnce()
      #expect(try await failures(app, "login:ben") == 1)
      #expect(try await app.value("SELECT count(*) FROM throttles") == 1)
    }
  }

  // MARK: Who is affected

  @Test func `a block ends no open session, and a blocked login blocks no other login`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await logIn(app)
      try await block(app, "login:ana")
      _ = try await app.signUp("ben")
      #expect(try await logIn(app, "ben", "correct horse ben").status == 200)
      try await block(app, "logins:127.0.0.1")
      #expect(try await logIn(app, "ben", "correct horse ben").status == 429)
      _ = try await ana.get("users/me")
      #expect(try await ana.refresh().status == 200)
      _ = try await ana.get("users/me")
    }
  }

  @Test func `an unknown login is treated like a known one`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      var responses: [[APIResponse]] = []
      for login in ["ana", "unknown"] {
        responses.append([])
        for _ in 0..<8 {
          responses[responses.count - 1].append(try await logIn(app, login))
          try await letWaitsPass(app)
        }
        #expect(try await failures(app, "login:\(login)") == 8)
        try await block(app, "login:\(login)")
        responses[responses.count - 1].append(try await logIn(app, login))
      }
      for (known, unknown) in zip(responses[0], responses[1]) {
        #expect(known.status == unknown.status)
        for key in ["type", "title", "detail"] { #expect(known.json[key] == unknown.json[key]) }
      }
      #expect(responses[1].map(\.status) == [401, 401, 401, 401, 401, 401, 401, 401, 429])
    }
  }

  @Test func `all spellings of a login count together, but one login reveals nothing about another`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      for login in ["ana", "ANA", " Ana "] { _ = try await logIn(app, login) }
      #expect(try await failures(app, "login:ana") == 3)
      try await block(app, "login:ana")
      // Otherwise this would show whose address it is.
      #expect(try await logIn(app, "ana@example.com").status == 401)
    }
  }

  @Test func `load tests can switch throttling off`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      _ = try await app.signUp("ana")
      for _ in 0..<30 { #expect(try await logIn(app).status == 401) }
      #expect(try await app.value("SELECT count(*) FROM throttles") == 0)
    }
  }

  // MARK: Addresses

  @Test func `behind trusted proxies, the client's address counts`() async throws {
    try await TestApp.run(["MUSTER_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8"]) { app in
      let cases = [
        ("203.0.113.1", "203.0.113.1"), ("198.51.100.1, 203.0.113.2", "203.0.113.2"),
        ("203.0.113.3, 10.1.2.3", "203.0.113.3"), ("127.0.0.1,203.0.113.4,10.1.2.3,10.1.2.3", "203.0.113.4"),
        ("nonsense, 10.1.2.4", "10.1.2.4"), ("203.0.113.5:4711", "203.0.113.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:0:0:0:0/64"), ("[2001:db8:1:3::1]:443", "2001:db8:1:3:0:0:0:0/64"),
        ("::ffff:203.0.113.6", "203.0.113.6"), ("nonsense", "127.0.0.1"),
      ]
      for (number, (forwarded, client)) in cases.enumerated() {
        _ = try await logIn(app, "user\(number)", from: forwarded)
        #expect(try await failures(app, "logins:\(client)") == 1, "\(forwarded)")
      }
      try await block(app, "logins:203.0.113.1")
      #expect(try await logIn(app, from: "203.0.113.1").status == 429)
      #expect(try await logIn(app, from: "198.51.100.77, 203.0.113.1").status == 429)
      #expect(try await logIn(app, from: "203.0.113.1, 198.51.100.77").status == 401)
      try await block(app, "logins:2001:db8:1:2:0:0:0:0/64")
      #expect(try await logIn(app, from: "2001:db8:1:2::9").status == 429)
      #expect(try await logIn(app, from: "2001:db8:1:4::9").status == 401)
    }
  }

  @Test func `a forwarded address from an untrusted sender is ignored`() async throws {
    let environments: [[String: String]] = [[:], ["MUSTER_TRUSTED_PROXIES": "192.0.2.0/24"]]
    for environment in environments {
      try await TestApp.run(environment) { app in
        for number in 1...3 { _ = try await logIn(app, "user\(number)", from: "203.0.113.\(number), 192.0.2.1") }
        #expect(try await failures(app, "logins:127.0.0.1") == 3)
        #expect(try await app.value("SELECT count(*) FROM throttles WHERE expires_at > now()") == 4)
      }
    }
  }
}
