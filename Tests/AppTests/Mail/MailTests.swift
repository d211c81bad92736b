import Foundation
import HTTPServer
import Logging
import NIOCore
import Postgres
import Testing
import TestSupport

@testable import App

@Suite struct MailTests {
  private struct NoPushes: PushSender {
    func send(_ push: Push, to device: Device) async throws {}
  }

  private func worker(_ app: TestApp, _ mailer: (any MailSender)? = nil) -> NotificationWorker {
    NotificationWorker(
      app.dependencies, sender: NoPushes(), mailer: mailer ?? app.dependencies.webhookMailer ?? NoMailer(),
      concurrency: 4)
  }

  /// Makes waiting mails due now.
  private func hurry(_ app: TestApp) async throws {
    try await app.database.execute("UPDATE mails SET due_at = now()")
  }

  // MARK: The webhook

  @Test func `a mail reaches the webhook, signed and with a token that works`() async throws {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment) { app in
        let ana = try await app.signUp("ana")
        try await worker(app).runOnce()
        let delivery = try #require(sink.deliveries.first)
        #expect(sink.deliveries.count == 1)
        #expect(sink.isGenuine(delivery))
        #expect(delivery.headers["content-type"] == "application/json")
        #expect(delivery.json.keys == ["type", "timestamp", "data"])
        #expect(delivery.json["type"].string == "mail.verify-email")
        #expect(Timestamp(rfc3339: delivery.json["timestamp"].string ?? "") != nil)
        let data = delivery.json["data"]
        #expect(
          data.keys == [
            "to", "username", "displayName", "code", "token", "expiresAt", "proves", "url", "unsubscribeUrl",
          ])
        #expect(data["code"] == .null && data["proves"].string == "registration")
        #expect(data["to"].string == "ana@example.com")
        #expect(data["username"].string == "ana")
        // The account has not proven the address: anyone may have typed it, and the name.
        #expect(data["displayName"] == .null)
        let expiry = try #require(Timestamp(rfc3339: data["expiresAt"].string ?? ""))
        #expect(expiry > Timestamp.now().adding(seconds: 23 * 3600))
        let token = try #require(data["token"].string)
        #expect(data["url"].string?.hasSuffix("/verify/\(token)") == true)
        let response = try await ana.verify(token)
        #expect(response.status == 204)
        let profile = try await ana.get("users/me")
        #expect(profile["emailVerified"].bool == true)
        #expect(try await app.value("SELECT count(*) FROM mails") == 0)
      }
    }
  }

  @Test func `the mail with a code has its token too, and both expire in ten minutes`() async throws {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment) { app in
        let ana = try await app.signUp("ana")
        try await app.takeMails()
        #expect(try await app.askForCode("ANA@example.com").status == 202)
        try await worker(app).runOnce()
        let mail = try #require(sink.deliveries.first?.json)
        #expect(sink.deliveries.count == 1)
        #expect(mail["type"].string == "mail.sign-in-code")
        let data = mail["data"]
        #expect(data["to"].string == "ana@example.com" && data["username"].string == "ana")
        let expiry = try #require(Timestamp(rfc3339: data["expiresAt"].string ?? ""))
        let limit = Timestamp.now().adding(seconds: 10 * 60)
        #expect(expiry <= limit && expiry > limit.adding(seconds: -60))
        let (code, token) = (try #require(data["code"].string), try #require(data["token"].string))
        #expect(code.wholeMatch(of: /[0-9]{6}/) != nil)
        let response = try await app.confirmCode(code, of: "ana@example.com")
        #expect(response.status == 200 && response.json["user"]["id"].string == ana.id, "\(response.body)")
        #expect(try await app.confirmCode(byToken: token).status == 401)
      }
    }
  }

  @Test func `the signature equals that of the standard's own libraries`() throws {
    let secret = try #require(WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
    let headers = secret.headers(
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek", body: ByteBuffer(string: #"{"test": 2432232314}"#),
      now: Timestamp(microseconds: 1_614_265_330_999_999))
    #expect(
      headers.map { "\($0.name): \($0.value)" } == [
        "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp: 1614265330",
        "webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
      ])
  }

  @Test func `only secrets of the standard's form and length are accepted`() {
    func secret(_ bytes: Int) -> String { "whsec_" + Data(repeating: 7, count: bytes).base64EncodedString() }
    for good in [secret(24), secret(32), secret(64)] { #expect(WebhookSecret(good) != nil, "\(good)") }
    let bare = secret(32).dropFirst(6)
    for bad in ["", "whsec_", secret(23), secret(65), String(bare), "whsec_\(bare)=", "WHSEC_\(bare)"] {
      #expect(WebhookSecret(bad) == nil, "\(bad)")
    }
  }

  @Test func `a failing webhook gets the mail again, with the same id`() async throws {
    let responses: [HTTPResponse.Status] = [.serviceUnavailable, .found, .badRequest, .accepted]
    try await WebhookSink.run(status: { responses[min($0, responses.count) - 1] }) { sink in
      try await TestApp.run(sink.environment) { app in
        _ = try await app.signUp("ana")
        for attempt in 1...3 {
          _ = try await worker(app).step(OutgoingMail.queue)
          let row = try #require(
            try await app.database.first(
              "SELECT attempts, last_error, due_at > now() AS waits, lease FROM mails"))
          #expect(try row["attempts"] == attempt)
          #expect(try row["waits"] == true)
          #expect(try row["lease"] == UUID?.none)
          let error: String = try row["last_error"]
          #expect(error.contains(["503", "302", "400"][attempt - 1]))
          try await hurry(app)
        }
        try await worker(app).runOnce()
        #expect(sink.deliveries.count == 4)
        #expect(Set(sink.deliveries.map(\.id)).count == 1)
        #expect(Set(sink.deliveries.map(\.body)).count == 1)
        let areGenuine = sink.deliveries.allSatisfy { sink.isGenuine($0) }
        #expect(areGenuine)
        #expect(try await app.value("SELECT count(*) FROM mails") == 0)
      }
    }
  }

  @Test func `an unreachable webhook is retried`() async throws {
    let environment = [
      "MUSTER_MAIL_WEBHOOK": "http://127.0.0.1:1/", "MUSTER_WEBHOOK_ALLOW_PRIVATE": "on",
      "MUSTER_MAIL_WEBHOOK_SECRET": "whsec_" + Data(repeating: 7, count: 32).base64EncodedString(),
    ]
    try await TestApp.run(environment) { app in
      _ = try await app.signUp("ana")
      _ = try await worker(app).step(OutgoingMail.queue)
      #expect(try await app.value("SELECT attempts FROM mails") == 1)
    }
  }

  @Test func `a slow webhook does not delay notifications, and its mail is not sent twice`() async throws {
    let latch = Latch()
    try await WebhookSink.run(status: { _ in
      await latch.wait()
      return .ok
    }) { sink in
      defer { latch.open() }
      try await TestApp.run(sink.environment) { app in
        let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
        let workers = (0..<2).map { _ in Task { try await worker(app).run() } }
        try await eventually { sink.deliveries.count == 2 }
        try await ana.sendFriendRequest(to: ben)
        try await eventually { try await app.value("SELECT count(*) FROM notifications") == 1 }
        // The claim is renewed until the webhook has responded, so the other worker leaves the mails alone.
        let claims: SQL = "SELECT min(leased_until) FROM mails WHERE leased_until > now()"
        let first: Timestamp = try #require(try await app.database.value(claims))
        try await eventually {
          let next: Timestamp? = try await app.database.value(claims)
          return next.map { $0 > first } ?? false
        }
        #expect(sink.deliveries.count == 2)
        latch.open()
        try await eventually {
          let mails: Int? = try await app.value("SELECT count(*) FROM mails")
          return mails == 0
        }
        #expect(sink.deliveries.count == 2)
        for worker in workers {
          worker.cancel()
          try await worker.value
        }
      }
    }
  }

  @Test func `a claim outlives a failed renewal, and no mail is sent twice`() async throws {
    let latch = Latch()
    try await WebhookSink.run(status: { _ in
      await latch.wait()
      return .ok
    }) { sink in
      defer { latch.open() }
      try await TestApp.run(sink.environment) { app in
        _ = try await app.signUp("ana")
        try await app.database.execute("CREATE SEQUENCE renewals")
        try await app.database.execute(
          """
          CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            IF new.lease IS NOT DISTINCT FROM old.lease THEN
              IF nextval('renewals') = 1 THEN RAISE EXCEPTION 'not this time'; END IF;
            END IF;
            RETURN new;
          END
          $$
          """)
        try await app.database.execute(
          "CREATE TRIGGER fail_once BEFORE UPDATE ON mails FOR EACH ROW EXECUTE FUNCTION fail_once()")
        let workers = (0..<2).map { _ in Task { try await worker(app).run() } }
        try await eventually { sink.deliveries.count == 1 }
        let claim: SQL = "SELECT leased_until FROM mails"
        let first: Timestamp = try #require(try await app.database.value(claim))
        // Longer than the claim would have lasted.
        try await eventually(within: .seconds(120)) {
          let next: Timestamp? = try await app.database.value(claim)
          return next.map { $0 > first.adding(seconds: 6) } ?? false
        }
        #expect(sink.deliveries.count == 1)
        latch.open()
        try await eventually {
          let mails: Int? = try await app.value("SELECT count(*) FROM mails")
          return mails == 0
        }
        #expect(sink.deliveries.count == 1)
        for worker in workers {
          worker.cancel()
          try await worker.value
        }
      }
    }
  }

  @Test func `a worker process delivers mails, and needs the keys that their tokens are made with`() async throws {
    try await WebhookSink.run { sink in
      try await TestApp.run { app in
        _ = try await app.signUp("ana")
        func work(_ more: [String: String]) async throws -> Program {
          let environment = Muster.environment(app.databaseURL).merging(sink.environment) { $1 }.merging(more) { $1 }
          let program = try await Program(
            Program.path("muster"), ["worker", "--once"], environment: environment, in: "/tmp")
          _ = try await program.exitStatus()
          return program
        }
        let keyless = try await work(["MUSTER_REFRESH_TOKEN_KEYS": ""])
        #expect(try await keyless.exitStatus() != 0)
        #expect(keyless.standardError.contains("MUSTER_REFRESH_TOKEN_KEYS"))

        let another = try await work(["MUSTER_REFRESH_TOKEN_KEYS": SigningKeys.generate()])
        #expect(another.standardError.contains("MUSTER_REFRESH_TOKEN_KEYS lacks the key"))
        #expect(sink.deliveries.isEmpty)

        let mute = try await work(["MUSTER_MAIL_WEBHOOK": ""])
        #expect(mute.standardError.contains("MUSTER_MAIL_WEBHOOK is not set"))

        try await hurry(app)
        let good = try await work([:])
        #expect(try await good.exitStatus() == 0, "\(good.standardError)")
        #expect(sink.deliveries.map { $0.json["data"]["to"].string } == ["ana@example.com"])
        let token = try #require(sink.deliveries.first?.json["data"]["token"].string)
        for program in [another, mute, good] {
          for secret in ["@", "mm1.", token, sink.secret] { #expect(!program.standardError.contains(secret)) }
        }
      }
    }
  }

  @Test func `a token that expires before its mail is sent leaves a dead letter, and a replaced one leaves nothing`()
    async throws
  {
    try await TestApp.run { app in
      // Its mail verifies the address, which may take a day.
      _ = try await app.signUp("ana")
      #expect(try await app.askForCode("ana@example.com").status == 202)
      try await app.database.execute("UPDATE mails SET created_at = created_at - interval '11 minutes'")
      try await app.database.execute("DELETE FROM mail_tokens")
      try await worker(app).runOnce()
      let dead = try await app.database.rows("SELECT type, last_error FROM mails WHERE died_at IS NOT NULL")
      #expect(try dead.map { try $0["type"] as String } == ["mail-sign-in-code"])
      #expect(try dead.first?["last_error"] == "the token expired before the mail was sent")
      #expect(try await app.value("SELECT count(*) FROM mails") == 1)
      try await app.database.execute("DELETE FROM mails")
    }
  }

  // MARK: The queue

  @Test func `without a webhook, mails wait and their rows say why`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      try await worker(app).runOnce()
      let row = try #require(try await app.database.first("SELECT attempts, last_error FROM mails"))
      #expect(try row["attempts"] == 1)
      #expect(try row["last_error"] == "MUSTER_MAIL_WEBHOOK is not set")
      #expect(try await app.takeMails().map(\.type) == ["mail-verify-email"])
    }
  }

  @Test func `a mail without a token does not delay others, and is given up after a week`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      try await app.database.execute("UPDATE users SET email_verified_at = now()")
      for _ in 0..<2 { try await app.service.change { $0.mail(.passwordChanged(ana.userID)) } }
      _ = try await worker(app).step(OutgoingMail.queue)
      let tried: Int? = try await app.value("SELECT count(*) FROM mails WHERE attempts = 1")
      #expect(tried == 2)
      for (days, left) in [(6, 2), (8, 0)] {
        try await app.database.execute(
          "UPDATE mails SET created_at = now() - make_interval(days => \(Int32(days)))")
        try await hurry(app)
        _ = try await worker(app).step(OutgoingMail.queue)
        #expect(try await app.value("SELECT count(*) FROM mails WHERE died_at IS NULL") == left, "after \(days) days")
      }
    }
  }

  @Test func `nothing is mailed for a change that is rolled back`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      let keys = app.dependencies.refreshTokenKeys
      let attempt = MailGate.Attempt(
        id: UUID(), kind: .verifyEmail, mailbox: Mailbox("new@example.com"), origin: "127.0.0.1", budget: .stranger)
      let pass = try #require(try await app.dependencies.mailGate.decide(on: attempt, in: app.database).pass)
      await #expect(throws: AppError.notYours) {
        try await app.service.change { change in
          let token = try MailToken.issue(
            .verifyEmail, email: "new@example.com", for: ana.userID, keys: keys, in: change)
          change.mail(.token(token, pass))
          change.mail(.passwordChanged(ana.userID))
          throw AppError.notYours
        }
      }
      // Refused by a rule after its mail was queued.
      let taken = try await app.send(
        "POST", "auth/register",
        body: #"{"username": "anna", "email": "ana@example.com", "password": "correct horse anna"}"#)
      #expect(taken.problem == "email-taken")
      #expect(try await app.takeMails().isEmpty)
    }
  }

  @Test func `a mail is not sent when its token is no longer valid`() async throws {
    try await WebhookSink.run { sink in
      try await TestApp.run(sink.environment) { app in
        for name in ["ana", "ben", "cleo", "dev"] { _ = try await app.signUp(name) }
        // Expired, used, replaced.
        try await app.database.execute(
          "UPDATE mail_tokens SET expires_at = now() - interval '1 second' WHERE email = 'ana@example.com'")
        try await app.database.execute("DELETE FROM mail_tokens WHERE email = 'ben@example.com'")
        try await app.database.execute("UPDATE mail_tokens SET id = uuid_v7() WHERE email = 'cleo@example.com'")
        try await worker(app).runOnce()
        #expect(sink.deliveries.map { $0.json["data"]["to"].string } == ["dev@example.com"])
        #expect(try await app.value("SELECT count(*) FROM mails") == 0)
      }
    }
  }

  @Test func `neither the database nor its queue holds the text of a token`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let rows = try await app.database.rows(
        """
        SELECT to_jsonb(t)::text FROM mail_tokens AS t
        UNION ALL
        SELECT to_jsonb(m)::text FROM mails AS m
        """)
      let stored = try rows.map { try $0[0] as String }.joined()
      let token = try await app.takeToken("mail-verify-email")
      let code = try #require(token.split(separator: ".").last)
      #expect(code.count == 43)
      #expect(rows.count == 2 && !stored.contains(code) && !stored.contains("mm1"))
    }
  }

  @Test func `in development the log is the mailbox`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let log = CapturedLog()
      try await worker(app, LogMailer(logger: log.logger())).runOnce()
      let line = try #require(log.lines.first)
      #expect(log.lines.count == 1)
      #expect(line.level == .notice)
      let fields = line.metadata.mapValues { "\($0)" }
      #expect(fields["to"] == "ana@example.com" && fields["type"] == "verify-email")
      let token = try #require(fields["token"])
      #expect(fields["code"] == nil)
      let response = try await ana.verify(token)
      #expect(response.status == 204)
      _ = try await app.askForCode("ana@example.com")
      try await worker(app, LogMailer(logger: log.logger())).runOnce()
      let code = try #require(log.lines.last?.metadata["code"])
      #expect(try await app.confirmCode("\(code)", of: "ana@example.com").status == 200)
    }
  }
}
