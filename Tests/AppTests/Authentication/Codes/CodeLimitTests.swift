import Foundation
import Postgres
import Testing

@testable import App

/// Limits on what a caller without the mail can find out or use up. Every user's address is their name at example.com.
@Suite struct CodeLimitTests {
  private let email = "ana@example.com"

  private func uses(_ kind: String, in app: TestApp) async throws -> Int? {
    try await app.value("SELECT count(*) FROM code_uses WHERE kind = \(kind)")
  }

  private func letADayPass(_ app: TestApp) async throws {
    try await app.database.batch(
      "UPDATE code_uses SET used_at = used_at - interval '24 hours'",
      "UPDATE mail_attempts SET asked_at = asked_at - interval '24 hours'")
  }

  // MARK: Secrecy

  @Test func `a request for a code or a reset does not reveal whether there is an account`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      try await app.takeMails()
      for ask in [app.askForReset, app.askForCode] {
        let (known, unknown) = (try await ask(email), try await ask("unknown@example.com"))
        for response in [known, unknown] {
          #expect(response.status == 202 && response.body == "{}")
          #expect(response.header("Cache-Control") == "no-store")
        }
        let names = [known, unknown].map { Set($0.headers.map { $0.name.lowercased() }) }
        #expect(names[0] == names[1])
        #expect(try await app.takeMails().map(\.to) == [email])
      }
    }
  }

  @Test func `every wrong code gets the same response, and so does an unknown address`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      for name in ["ana", "ben", "cleo", "dev", "emre"] { _ = try await app.signUp(name) }
      let anas = try await app.takeCode(of: email).code
      let bens = try await app.takeCode(of: "ben@example.com").code
      #expect(try await app.confirmCode(bens, of: "ben@example.com").status == 200)
      let cleos = try await app.takeCode(of: "cleo@example.com").code
      try await app.database.execute(
        "UPDATE mail_tokens SET expires_at = now() WHERE email = 'cleo@example.com' AND purpose = 'sign-in-code'")
      let devs = try await app.takeCode(of: "dev@example.com").code
      for number in 1...10 { _ = try await app.confirmCode(devs.wrongCode(number), of: "dev@example.com") }
      let responses = [
        try await app.confirmCode("123456", of: "unknown@example.com"),
        // Wrong, used, expired, too late, and never requested.
        try await app.confirmCode(anas.wrongCode(1), of: email),
        try await app.confirmCode(bens, of: "ben@example.com"),
        try await app.confirmCode(cleos, of: "cleo@example.com"),
        try await app.confirmCode(devs, of: "dev@example.com"),
        try await app.confirmCode("123456", of: "emre@example.com"),
        try await app.confirmCode(byToken: "made-up"),
      ]
      let names = responses.map { Set($0.headers.map { $0.name.lowercased() }) }
      #expect(responses[0].status == 401 && responses[0].problem == "invalid-code")
      for (response, name) in zip(responses, names) {
        #expect(
          response.status == 401 && response.withoutRequestID == responses[0].withoutRequestID, "\(response.body)")
        #expect(name == names[0])
      }
    }
  }

  // MARK: Wrong codes

  @Test func `after ten wrong codes the right one is refused for a day, but the mail's token works`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      _ = try await app.signUp("ben")
      let (code, token) = try await app.takeCode(of: email)
      for number in 1...10 { #expect(try await app.confirmCode(code.wrongCode(number), of: email).status == 401) }
      #expect(try await uses("wrong", in: app) == 10)
      #expect(try await app.confirmCode(code, of: email).problem == "invalid-code")
      // A new code does not help, and a code that is not compared does not count.
      let next = try await app.takeCode(of: email)
      #expect(try await app.confirmCode(next.code, of: email).problem == "invalid-code")
      #expect(try await uses("wrong", in: app) == 10)
      #expect(try await app.confirmCode(byToken: token).status == 401)
      #expect(try await app.confirmCode(byToken: next.token).status == 200)
      // Other accounts have counts of their own.
      let bens = try await app.takeCode(of: "ben@example.com").code
      #expect(try await app.confirmCode(bens, of: "ben@example.com").status == 200)
      try await letADayPass(app)
      let last = try await app.takeCode(of: email).code
      #expect(try await app.confirmCode(last, of: email).status == 200)
    }
  }

  @Test func `the tenth guess may be right, and a login does not clear the wrong ones`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let first = try await app.takeCode(of: email).code
      for number in 1...9 { _ = try await app.confirmCode(first.wrongCode(number), of: email) }
      #expect(try await app.confirmCode(first, of: email).status == 200)
      let second = try await app.takeCode(of: email).code
      #expect(try await app.confirmCode(second.wrongCode(1), of: email).status == 401)
      #expect(try await app.confirmCode(second, of: email).status == 401)
    }
  }

  /// As if each came to another process.
  @Test func `of twenty concurrent guesses, ten are compared`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      _ = try await app.signUp("ana")
      let (code, token) = try await app.takeCode(of: email)
      let statuses = try await app.withConnections(20) {
        try await app.race(20) { try await app.confirmCode(code.wrongCode($0 + 1), of: email) }
      }
      #expect(statuses == [401: 20])
      #expect(try await uses("wrong", in: app) == 10)
      #expect(try await app.confirmCode(code, of: email).status == 401)
      #expect(try await app.confirmCode(byToken: token).status == 200)
    }
  }

  @Test func `guesses without a valid code to guess lock no one out`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      _ = try await app.signUp("ana")
      for _ in 0..<20 { #expect(try await app.confirmCode("123456", of: email).status == 401) }
      #expect(try await uses("wrong", in: app) == 0)
      let code = try await app.takeCode(of: email).code
      #expect(try await app.confirmCode(code, of: email).status == 200)
    }
  }

  @Test func `wrong codes from one address have to wait, whatever the account, but tokens do not`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let (code, token) = try await app.takeCode(of: email)
      for number in 0..<20 { #expect(try await app.confirmCode("123456", of: "no\(number)@example.com").status == 401) }
      let key = "codes:127.0.0.1"
      let blocked = try await app.database.execute(
        """
        UPDATE throttles SET blocked_until = now() + interval '10 minutes'
        WHERE key = sha256(convert_to(\(key), 'UTF8')) AND round(failures) = 20
        """)
      #expect(blocked.affected == 1)
      var refused: [APIResponse] = []
      for (code, address) in [(code, email), ("123456", email), ("123456", "unknown@example.com")] {
        refused.append(try await app.confirmCode(code, of: address))
      }
      for response in refused {
        #expect(response.status == 429 && response.problem == "too-many-attempts", "\(response.body)")
        #expect(response.withoutRequestID == refused[0].withoutRequestID)
      }
      #expect(try await app.confirmCode(byToken: token).status == 200)
    }
  }

  // MARK: Mails

  /// Ana, who has verified her address.
  private func verified(_ app: TestApp) async throws -> Phone {
    let ana = try await app.signUp("ana")
    #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
    return ana
  }

  @Test func `a network gets five codes a day for an account, and the caller does not learn of the limit`() async throws
  {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      _ = try await verified(app)
      let statuses = try await app.race(12) { _ in try await app.askForCode(email) }
      #expect(statuses == [202: 12])
      let mails = try await app.takeMails()
      #expect(mails.count == 5)
      #expect(try await app.value("SELECT count(*) FROM mail_attempts WHERE budget = 'known'") == 5)
      // The last one is still good: the requests after it have replaced nothing.
      let last = try #require(mails.last?.token)
      #expect(try await app.confirmCode(byToken: last).status == 200)
      #expect(try await app.askForCode(email).body == "{}")
      #expect(try await app.takeMails().isEmpty)
      // A password reset has limits of its own.
      _ = try await app.askForReset(email)
      #expect(try await app.takeMails().map(\.type) == ["mail-reset-password"])
      try await letADayPass(app)
      _ = try await app.takeCode(of: email)
    }
  }

  @Test func `requests from one address have to wait, known or not`() async throws {
    try await TestApp.run { app in
      let statuses = try await app.race(240) { try await app.askForCode("unknown\($0)@example.com") }
      #expect(Set(statuses.keys) == [202, 429])
      #expect(try await app.value("SELECT count(*) FROM mails") == 0)
    }
  }

  // MARK: Storage

  @Test func `the counts are in the export, and go after a day and with the account`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let code = try await app.takeCode(of: email).code
      _ = try await app.confirmCode(code.wrongCode(1), of: email)
      let exported = try await ana.get("users/me/export")["codeUses"].array
      #expect(exported.map { $0["kind"].string } == ["wrong"])
      #expect(exported.allSatisfy { $0.keys == ["kind", "usedAt"] })
      #expect(try await SignInCode.purge(atMost: 10, in: app.service) == 0)
      try await letADayPass(app)
      #expect(try await SignInCode.purge(atMost: 10, in: app.service) == 1)
      let next = try await app.takeCode(of: email).code
      _ = try await app.confirmCode(next.wrongCode(1), of: email)
      try await ana.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM code_uses") == 0)
    }
  }

  @Test func `the worker forgets codes that have expired, and moves no stamp`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
      let code = try await app.takeCode(of: email).code
      _ = try await app.confirmCode(code.wrongCode(1), of: email)
      try await app.database.execute("UPDATE mail_tokens SET expires_at = now() - interval '1 second'")
      try await letADayPass(app)
      let stale = try await ana.stale {
        await app.keepHouse()
      }
      #expect(stale.isEmpty)
      #expect(try await app.value("SELECT count(*) FROM mail_tokens") == 0)
      #expect(try await app.value("SELECT count(*) FROM code_uses") == 0)
      #expect(try await app.value("SELECT count(*) FROM mail_attempts") == 0)
    }
  }
}
