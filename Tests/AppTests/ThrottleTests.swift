import Foundation
import Postgres
import Testing

@testable import App

@Suite struct ThrottleTests {
  /// - Parameter key: label and subject, as in `account:ana`.
  private func failures(_ app: TestApp, _ key: String) async throws -> Int? {
    try await app.value("SELECT failures FROM throttles WHERE key = sha256(convert_to(\(key), 'UTF8'))")
  }

  /// Seconds that the last failure has brought.
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
        #expect(try await app.logIn("ana", "wrong horse").status == 401)
        waits.append(try await wait(app, "account:ana"))
        try await letWaitsPass(app)
      }
      let doubling: [Double?] = [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]
      #expect(waits == doubling)
    }
  }

  @Test func `an address may fail more often, and then waits too, whatever it tries`() async throws {
    try await TestApp.run { app in
      var waits: [Double?] = []
      for number in 0..<23 {
        #expect(try await app.logIn("user\(number)", "wrong horse").status == 401)
        waits.append(try await wait(app, "address:127.0.0.1"))
        try await letWaitsPass(app)
      }
      let doubling: [Double?] = Array(repeating: 0, count: 20) + [1, 2, 4]
      #expect(waits == doubling)
      try await block(app, "address:127.0.0.1")
      #expect(try await app.logIn("another", "wrong horse").status == 429)
    }
  }

  @Test func `who is refused hears for how long, and is not made to wait longer`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      _ = try await app.logIn("ana", "wrong horse")
      try await block(app, "account:ana")
      let before: Timestamp? = try await app.value("SELECT max(blocked_until) FROM throttles")
      // The right password does not help: it may have been guessed.
      for password in ["wrong horse", "correct horse ana"] {
        let answer = try await app.logIn("ana", password)
        #expect(answer.status == 429)
        #expect(answer.problem == "too-many-attempts")
        let seconds = answer.header("Retry-After").flatMap { Int($0) } ?? 0
        #expect((1...600).contains(seconds))
      }
      let after: Timestamp? = try await app.value("SELECT max(blocked_until) FROM throttles")
      #expect(before == after)
      #expect(try await failures(app, "account:ana") == 1)
      #expect(try await failures(app, "address:127.0.0.1") == 1)
    }
  }

  @Test func `of a hundred attempts at once one passes, where only one may`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      _ = try await app.logIn("ana", "wrong horse")
      try await setFailures(app, "account:ana", to: 15)
      let statuses = try await app.race(100) { _ in try await app.logIn("ana", "wrong horse") }
      #expect(statuses == [401: 1, 429: 99])
      #expect(try await failures(app, "account:ana") == 16)
      #expect(try await failures(app, "address:127.0.0.1") == 2)
    }
  }

  @Test func `attempts on the same keys in any order do not get into each other's way`() async throws {
    try await TestApp.run { app in
      let keys: [Throttle.Key] = [.address("192.0.2.1"), .address("192.0.2.2"), .address("192.0.2.3")]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<18 {
          group.addTask {
            let turned = number % 2 == 0 ? keys : Array(keys.reversed())
            _ = try await Throttle.attempt(turned, in: app.database) { number % 3 == 0 ? number : Int?.none }
          }
        }
        try await group.waitForAll()
      }
      for number in 1...3 { #expect(try await failures(app, "address:192.0.2.\(number)") == 12) }
    }
  }

  @Test func `two processes count together`() async throws {
    try await TestApp.run { app in
      let configuration = try await MusterConfiguration.load(
        environment: TestApp.environment(app.databaseURL), file: nil)
      let other = try await Dependencies(configuration, name: "other", logger: app.dependencies.logger)
      defer { other.database.close() }
      _ = try await app.logIn("ana", "wrong horse")
      _ = try await Throttle.attempt([.account("ana")], in: other.database) { Int?.none }
      #expect(try await failures(app, "account:ana") == 2)
      try await block(app, "account:ana")
      for database in [app.database, other.database] {
        await #expect(throws: AppError.self) {
          try await Throttle.attempt([.account("ana")], in: database) { Int?.none }
        }
      }
    }
  }

  // MARK: What ends them

  @Test func `a success forgets the failures of the account, and of the address only itself`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      for _ in 0..<5 { _ = try await app.logIn("ana", "wrong horse") }
      #expect(try await app.logIn("ana", "correct horse ana").status == 200)
      #expect(try await failures(app, "account:ana") == 0)
      #expect(try await failures(app, "address:127.0.0.1") == 5)
    }
  }

  @Test func `a success leaves an address that failed often as it was, and unblocked`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      _ = try await app.logIn("ana", "wrong horse")
      try await setFailures(app, "address:127.0.0.1", to: 30)
      #expect(try await app.logIn("ana", "correct horse ana").status == 200)
      #expect(try await failures(app, "address:127.0.0.1") == 30)
      #expect(try await app.logIn("ana", "wrong horse").status == 401)
      #expect(try await wait(app, "address:127.0.0.1") == 900)
    }
  }

  @Test func `an error is neither a failure nor a success`() async throws {
    struct Away: Error {}
    try await TestApp.run { app in
      let keys: [Throttle.Key] = [.account("ana"), .address("192.0.2.1"), .mail("ana@example.com")]
      _ = try await Throttle.attempt(keys, in: app.database) { Int?.none }
      for _ in 0..<10 {
        await #expect(throws: Away.self) {
          try await Throttle.attempt(keys, in: app.database) { () -> Int? in throw Away() }
        }
      }
      for key in ["account:ana", "address:192.0.2.1", "mail:ana@example.com"] {
        #expect(try await failures(app, key) == 1, "\(key)")
      }
    }
  }

  @Test func `mails count whatever comes of them`() async throws {
    try await TestApp.run { app in
      for _ in 0..<6 { _ = try await Throttle.attempt([.mail("Ana@example.com")], in: app.database) { true } }
      #expect(try await wait(app, "mail:ana@example.com") == 60)
    }
  }

  @Test func `after a day without a failure nothing is held against anybody, and the worker forgets`() async throws {
    try await TestApp.run { app in
      _ = try await app.logIn("ana", "wrong horse")
      _ = try await app.logIn("ben", "wrong horse")
      try await app.database.execute(
        """
        UPDATE throttles SET failures = 30, expires_at = now()
        WHERE key <> sha256(convert_to('account:ben', 'UTF8'))
        """)
      _ = try await app.logIn("ana", "wrong horse")
      #expect(try await failures(app, "account:ana") == 1)
      try await app.database.execute(
        "UPDATE throttles SET expires_at = now() WHERE key <> sha256(convert_to('account:ben', 'UTF8'))")
      let worker = NotificationWorker(
        app.dependencies, sender: LogSender(logger: app.dependencies.logger), mailer: NoMailer(), concurrency: 1)
      try await worker.runOnce()
      #expect(try await failures(app, "account:ben") == 1)
      #expect(try await app.value("SELECT count(*) FROM throttles") == 1)
    }
  }

  // MARK: Whom it concerns

  @Test func `nobody is shut out of what they have open, nor others of theirs`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.logIn("ana", "wrong horse")
      try await block(app, "account:ana")
      _ = try await app.signUp("ben")
      #expect(try await app.logIn("ben", "correct horse ben").status == 200)
      try await block(app, "address:127.0.0.1")
      #expect(try await app.logIn("ben", "correct horse ben").status == 429)
      _ = try await ana.get("users/me")
      #expect(try await ana.refresh().status == 200)
      _ = try await ana.get("users/me")
    }
  }

  @Test func `a login that nobody has is treated as one that somebody has`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      var answers: [[Answer]] = []
      for login in ["ana", "nobody"] {
        answers.append([])
        for _ in 0..<8 {
          answers[answers.count - 1].append(try await app.logIn(login, "wrong horse"))
          try await letWaitsPass(app)
        }
        #expect(try await failures(app, "account:\(login)") == 8)
        try await block(app, "account:\(login)")
        answers[answers.count - 1].append(try await app.logIn(login, "wrong horse"))
      }
      for (known, unknown) in zip(answers[0], answers[1]) {
        #expect(known.status == unknown.status)
        for key in ["type", "title", "detail"] { #expect(known.json[key] == unknown.json[key]) }
      }
      #expect(answers[1].map(\.status) == [401, 401, 401, 401, 401, 401, 401, 401, 429])
    }
  }

  @Test func `a login counts as one however it is written, but no login tells of another`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      for login in ["ana", "ANA", " Ana "] { _ = try await app.logIn(login, "wrong horse") }
      #expect(try await failures(app, "account:ana") == 3)
      try await block(app, "account:ana")
      // Else it would show whose address this is.
      #expect(try await app.logIn("ana@example.com", "wrong horse").status == 401)
    }
  }

  @Test func `load tests may switch it off`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "off"]) { app in
      _ = try await app.signUp("ana")
      for _ in 0..<30 { #expect(try await app.logIn("ana", "wrong horse").status == 401) }
      #expect(try await app.value("SELECT count(*) FROM throttles") == 0)
    }
  }

  // MARK: Addresses

  @Test func `behind trusted proxies it is the client's address that counts`() async throws {
    try await TestApp.run(["MUSTER_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8"]) { app in
      let cases = [
        ("203.0.113.1", "203.0.113.1"), ("198.51.100.1, 203.0.113.2", "203.0.113.2"),
        ("203.0.113.3, 10.1.2.3", "203.0.113.3"), ("127.0.0.1,203.0.113.4,10.1.2.3,10.1.2.3", "203.0.113.4"),
        ("nonsense, 10.1.2.4", "10.1.2.4"), ("203.0.113.5:4711", "203.0.113.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2:0:0:0:0/64"), ("[2001:db8:1:3::1]:443", "2001:db8:1:3:0:0:0:0/64"),
        ("::ffff:203.0.113.6", "203.0.113.6"), ("nonsense", "127.0.0.1"),
      ]
      for (number, (forwarded, client)) in cases.enumerated() {
        _ = try await app.logIn("user\(number)", "wrong horse", from: forwarded)
        #expect(try await failures(app, "address:\(client)") == 1, "\(forwarded)")
      }
      try await block(app, "address:203.0.113.1")
      #expect(try await app.logIn("ana", "wrong horse", from: "203.0.113.1").status == 429)
      #expect(try await app.logIn("ana", "wrong horse", from: "198.51.100.77, 203.0.113.1").status == 429)
      #expect(try await app.logIn("ana", "wrong horse", from: "203.0.113.1, 198.51.100.77").status == 401)
      try await block(app, "address:2001:db8:1:2:0:0:0:0/64")
      #expect(try await app.logIn("ana", "wrong horse", from: "2001:db8:1:2::9").status == 429)
      #expect(try await app.logIn("ana", "wrong horse", from: "2001:db8:1:4::9").status == 401)
    }
  }

  @Test func `what anybody else says of addresses is not believed`() async throws {
    let environments: [[String: String]] = [[:], ["MUSTER_TRUSTED_PROXIES": "192.0.2.0/24"]]
    for environment in environments {
      try await TestApp.run(environment) { app in
        for number in 1...3 {
          _ = try await app.logIn("user\(number)", "wrong horse", from: "203.0.113.\(number), 192.0.2.1")
        }
        #expect(try await failures(app, "address:127.0.0.1") == 3)
        #expect(try await app.value("SELECT count(*) FROM throttles") == 4)
      }
    }
  }
}
