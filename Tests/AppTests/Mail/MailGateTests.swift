import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Mails that anyone can cause: how many leave, who may cause them, and who is never stopped.
@Suite struct MailGateTests {
  private static let proxied = ["MUSTER_TRUSTED_PROXIES": "127.0.0.1"]

  /// A host's event with a link whose form asks for an address.
  private func link(_ app: TestApp, by host: Phone, title: String = "Swim") async throws -> String {
    let event = try await host.createEvent(title)["id"].string ?? ""
    return try await host.createLink(to: event, #"{"kind": "answer"}"#).token
  }

  /// The mails that ask for a confirmation, which the queue holds now.
  private func asked(_ app: TestApp) async throws -> Int {
    try await app.takeMails().count { $0.type == "mail-visitor-confirm" }
  }

  /// Adds attempts of the last hour, as other forms would.
  ///
  /// - Parameter columns: SQL for the host, mailbox, domain and network; by default each attempt has its own.
  private func add(
    _ count: Int, host: SQL = "uuid_v7()", mailbox: SQL = "sha256(n::text::bytea)",
    domain: SQL = "sha256(n::text::bytea)",
    network: SQL = "sha256(n::text::bytea)", to app: TestApp
  ) async throws {
    try await app.database.execute(
      """
      INSERT INTO mail_attempts (id, ordinal, budget, kind, mailbox, domain, network, host_id)
      SELECT uuid_v7(), 1, 'stranger', 'visitor-confirm', \(mailbox), \(domain), \(network), \(host)
      FROM generate_series(1, \(count)) AS n
      """)
  }

  private func judge(
    _ app: TestApp, _ address: String, from origin: String = "192.0.2.1", host: Phone? = nil,
    budget: MailGate.Budget = .stranger, id: UUID = UUID(), ordinal: Int = 1
  ) async throws -> String {
    let attempt = MailGate.Attempt(
      id: id, ordinal: ordinal, kind: .visitorConfirm, mailbox: Mailbox(address), origin: origin, budget: budget,
      host: host?.userID)
    return switch try await app.dependencies.mailGate.decide(on: attempt, in: app.database) {
    case .open: "open"
    case .held(let limit): limit.rawValue
    case .optedOut: "opted out"
    }
  }

  // MARK: Nothing is booked ahead

  @Test func `200 forms to one mailbox cause three mails now and none later, and no link is shut`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let token = try await link(app, by: ana)
      try await app.takeMails()
      for number in 0..<40 { try await app.visit(token, email: "mal+\(number)@Bogus.example") }
      let first: Int? = try await app.value(
        "SELECT count(*) FROM mails WHERE type = 'mail-visitor-confirm' AND due_at > clock_timestamp()")
      let late: Int? = try await app.value(
        """
        SELECT count(*) FROM visitors
        WHERE confirmed_at IS NULL AND email IS NOT NULL AND lapses_at > clock_timestamp() + interval '24 hours'
        """)
      #expect(first == 0 && late == 0)
      #expect(try await asked(app) == 3)
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE held_at IS NOT NULL") == 37)
      // Another guest of the same link is not held up.
      let zoe = try await app.visit(token, email: "zoe@x.org")
      #expect(try await zoe.page().body.contains("We sent an e-mail to your address."))
      #expect(try await asked(app) == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `beyond a limit the page says that no mail was sent and when the answer ends, and asks again`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let token = try await link(app, by: ana)
      try await app.takeMails()
      for _ in 0..<3 { try await app.visit(token, email: "zoe@x.org") }
      let visit = try await app.visit(token, email: "zoe@x.org")
      #expect(try await asked(app) == 3)
      let page = try await visit.page().body
      #expect(page.contains("We have not sent you an e-mail") && page.contains("Your answer is deleted on "), "\(page)")
      #expect(page.contains(#"name="asked" value="1""#) && page.contains("Send it again"))
      // The first time, the limit still holds, and asking counts.
      try await visit.act("send-again", ["asked": "1"])
      #expect(try await visit.page().body.contains(#"name="asked" value="2""#))
      #expect(try await asked(app) == 0)
      try await app.database.execute("UPDATE mail_attempts SET asked_at = asked_at - interval '24 hours'")
      // A form that is sent twice asks once; so does one of an old page.
      for _ in 1...2 { try await visit.act("send-again", ["asked": "2"]) }
      try await visit.act("send-again", ["asked": "1"])
      try await visit.act("send-again")
      #expect(try await asked(app) == 1)
      #expect(try await app.value("SELECT count(*) FROM mail_attempts WHERE asked_at > now() - interval '1 hour'") == 1)
      #expect(try await visit.page().body.contains("We sent an e-mail to your address."))
      // The deadline is the first one.
      #expect(
        try await app.value(
          "SELECT lapses_at - created_at < interval '24 hours 1 second' FROM visitors WHERE id = \(visit.id)") == true)
      try await app.takeNotifications()
    }
  }

  @Test func `hosts see that a limit is reached, and an approval keeps the answer`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      for _ in 0..<3 { try await app.visit(link.token, email: "zoe@x.org") }
      #expect(try await ana.get("events/\(event)/links/\(link.id)")["unmailed"].int == 0)
      let visit = try await app.visit(link.token, name: "Zoe", email: "zoe@x.org")
      #expect(try await ana.get("events/\(event)/links")["items"][0]["unmailed"].int == 1)
      let path = "events/\(event)/invitations/\(visit.id)/approve"
      #expect(try await ana.send("POST", path).status == 200)
      #expect(try await ana.get("events/\(event)/links/\(link.id)")["unmailed"].int == 0)
      #expect(try await !visit.page().body.contains("is deleted on"))
      try await app.database.execute(
        "UPDATE visitors SET lapses_at = now() - interval '1 second' WHERE lapses_at IS NOT NULL")
      _ = try await app.database.change { try await Visitor.endLapsed(atMost: 100, in: $0) }
      #expect(try await visit.state == "going 0")
      #expect(try await app.value("SELECT count(*) FROM visitors") == 1)
      // The same for a visitor who waits for approval by the link's rules.
      let other = try await ana.createLink(to: event, #"{"kind": "answer", "approval": true}"#)
      let pending = try await app.visit(other.token, email: "yan@x.org")
      #expect(try await ana.send("POST", "events/\(event)/invitations/\(pending.id)/approve").status == 200)
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE lapses_at IS NOT NULL") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `a repeated form counts once, and one that is refused does not count`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#).token
      try await app.takeMails()
      let counted: SQL = "SELECT count(*) FROM mail_attempts WHERE kind = 'visitor-confirm'"
      let fields = ["form": try await app.formToken(of: link), "name": "Zoe", "answer": "going", "email": "zoe@x.org"]
      // At once: each asks the gate before the first one has made its visitor.
      let statuses = try await app.race(6) { _ in try await app.submit("/e/\(link)", fields) }
      #expect(statuses == [303: 6])
      #expect(try await app.value(counted) == 1)
      #expect(try await asked(app) == 1)
      let id = UUID()
      #expect(try await judge(app, "yan@x.org", id: id) == "open")
      #expect(try await judge(app, "Yan@x.org", id: id) == "open")
      #expect(try await app.value(counted) == 2)
      // With another address, it is still one form, and gets no second mail.
      #expect(try await judge(app, "other@x.org", id: id) == "mailbox")
      #expect(try await app.value(counted) == 2)
      #expect(try await judge(app, "other@x.org", id: id, ordinal: 2) == "open")
      // The link is changed between the page and the form.
      try await app.database.execute("UPDATE share_links SET max_plus_ones = 3")
      let form = try await app.formToken(of: link)
      try await app.database.execute("UPDATE events SET capacity = 2")
      let refused = try await app.submit(
        "/e/\(link)", ["form": form, "name": "Xia", "answer": "going", "plusOnes": "3", "email": "xia@x.org"])
      #expect(refused.status == 422, "\(refused.body)")
      #expect(try await app.value(counted) == 3)
      try await app.takeNotifications()
    }
  }

  @Test func `concurrent forms of one token with many addresses count once, and mail one of them`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let token = try await link(app, by: try await app.signUp("ana"))
      try await app.takeMails()
      try await app.database.execute("DELETE FROM mail_attempts")
      for round in 0..<4 {
        let form = try await app.formToken(of: token)
        let statuses = try await app.race(6) { number in
          try await app.submit(
            "/e/\(token)", ["form": form, "name": "Zoe", "answer": "going", "email": "zoe\(number)@x\(round).org"])
        }
        // One that comes after the visitor exists hears that the form was sent before.
        #expect(Set(statuses.keys).isSubset(of: [303, 422]), "\(statuses)")
        #expect(try await app.value("SELECT count(*) FROM mail_attempts") == round + 1)
        #expect(try await app.value("SELECT count(*) FROM visitors") == round + 1)
        #expect(try await asked(app) <= 1)
      }
      try await app.takeNotifications()
    }
  }

  // MARK: Limits

  @Test func `a mailbox has one limit under all its spellings, and one network takes a part of it`() async throws {
    try await TestApp.run { app in
      for spelling in ["Vic.Tim+1@gmail.com", "victim@GMAIL.com", "v.i.c.t.i.m+x+y@googlemail.com"] {
        #expect(try await judge(app, spelling) == "open")
      }
      #expect(try await judge(app, "victim@gmail.com") == "mailbox")
      #expect(try await judge(app, "victim@gmail.com", from: "192.0.2.200") == "mailbox")
      for _ in 0..<2 { #expect(try await judge(app, "victim@gmail.com", from: "198.51.100.1") == "open") }
      #expect(try await judge(app, "victim@gmail.com", from: "203.0.113.1") == "mailbox")
      // A day later, it starts over.
      try await app.database.execute("UPDATE mail_attempts SET asked_at = asked_at - interval '24 hours'")
      #expect(try await judge(app, "victim@gmail.com") == "open")
      #expect(try await MailGate.purge(atMost: 100, in: app.database) == 5)
    }
  }

  @Test func `mailboxes differ by what their providers tell apart`() {
    func same(_ one: String, _ other: String) -> Bool { Mailbox(one) == Mailbox(other) }
    #expect(same("zoe+a@x.org", "ZOE@X.org") && same("a.b@googlemail.com", "ab@gmail.com"))
    #expect(same("zoe-shop@yahoo.com", "zoe@yahoo.com") && same("a.b@pm.me", "ab@proton.me"))
    #expect(!same("a.b@x.org", "ab@x.org") && !same("zoe-a@x.org", "zoe@x.org") && !same("+a@x.org", "+b@x.org"))
    #expect(Mailbox("a@b.mail.example.co.uk").domain == "example.co.uk" && Mailbox("a@x.y.org").domain == "y.org")
    #expect(Mailbox("a@localhost").domain == "localhost" && Mailbox("a@co.uk").domain == "co.uk")
  }

  @Test func `the networks of an address`() {
    let six = ClientNetworks("2001:db8:12:3456:1::1")
    #expect(six.network == "2001:db8:12:0:0:0:0:0/48" && six.site == "2001:db8:12:3400:0:0:0:0/56")
    #expect(six.subnet == "2001:db8:12:3456:0:0:0:0/64")
    let four = ClientNetworks("192.0.2.77")
    #expect(four == ClientNetworks("192.0.2.1") && four != ClientNetworks("192.0.3.1") && four.site == nil)
    #expect(ClientNetworks("unknown") == ClientNetworks("also unknown"))
  }

  @Test func `one host, domain, network and installation each have a limit, and one network a tenth of it`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      func clear() async throws { try await app.database.execute("DELETE FROM mail_attempts") }
      try await clear()
      let prints = app.dependencies.mailGate.optOuts.keys
      let network = prints.fingerprint("network", ClientNetworks("192.0.2.1").network)
      let domain = prints.fingerprint("domain", "x.org")
      let host: SQL = "\(ana.userID)"

      try await add(MailGate.maximumPerHost / 10, host: host, network: "\(network)", to: app)
      #expect(try await judge(app, "zoe@x.org", host: ana) == "host")
      #expect(try await judge(app, "zoe@x.org", from: "198.51.100.1", host: ana) == "open")
      #expect(try await judge(app, "yan@x.org", host: ben) == "open")
      try await clear()
      try await add(MailGate.maximumPerHost, host: host, to: app)
      #expect(try await judge(app, "zoe@x.org", from: "198.51.100.1", host: ana) == "host")

      try await clear()
      try await add(MailGate.maximumPerDomain / 10, domain: "\(domain)", network: "\(network)", to: app)
      #expect(try await judge(app, "zoe@mail.x.org") == "domain")
      #expect(try await judge(app, "zoe@y.org") == "open")
      try await add(MailGate.maximumPerDomain, domain: "\(domain)", to: app)
      #expect(try await judge(app, "zoe@x.org", from: "198.51.100.1") == "domain")
      // Made-up names at a large provider must not stop the mails of all who have a mailbox there.
      try await add(MailGate.maximumPerDomain, domain: "\(prints.fingerprint("domain", "gmail.com"))", to: app)
      #expect(try await judge(app, "zoe@gmail.com", from: "198.51.100.1") == "open")

      try await clear()
      try await add(MailGate.maximumPerNetwork, network: "\(network)", to: app)
      #expect(try await judge(app, "zoe@x.org") == "network")
      #expect(try await judge(app, "zoe@x.org", from: "198.51.100.1") == "open")
      #expect(MailGate.maximumPerNetwork * 10 <= MailGate.maximumPerInstallation)

      try await clear()
      try await add(MailGate.maximumPerInstallation, to: app)
      #expect(try await judge(app, "zoe@x.org") == "installation")
      let text = try await MetricsText.of(app)
      for limit in ["host", "domain", "network", "installation"] {
        #expect(text.contains(#"muster_mails_held_total{limit="\#(limit)"}"#), "\(limit): \(text)")
      }
    }
  }

  @Test func `a request that is refused takes back only what it has counted itself, and no one has asked for since`()
    async throws
  {
    try await TestApp.run { app in
      let gate = app.dependencies.mailGate
      func counted() async throws -> Int? {
        try await app.value("SELECT count(*) FROM mail_attempts WHERE kind = 'verify-email'")
      }
      func attempt(_ id: UUID) -> MailGate.Attempt {
        MailGate.Attempt(
          id: id, kind: .verifyEmail, mailbox: Mailbox("zoe@x.org"), origin: "192.0.2.1", budget: .stranger)
      }
      func refused(_ id: UUID, after change: () async throws -> Void = {}) async throws {
        await #expect(throws: AppError.eventNotFound) {
          try await gate.passing(attempt(id), in: app.database) { _ in
            try await change()
            throw AppError.eventNotFound
          }
        }
      }
      try await refused(UUID())
      #expect(try await counted() == 0)
      // The second request with the same key queues the mail while the first one is still at work.
      let id = UUID()
      try await refused(id) { try await gate.passing(attempt(id), in: app.database) { _ in } }
      #expect(try await counted() == 1)
      try await refused(id)
      #expect(try await counted() == 1)
    }
  }

  @Test func `an IPv6 client has narrower networks, which have lower limits`() async throws {
    try await TestApp.run { app in
      let prints = app.dependencies.mailGate.optOuts.keys
      let networks = ClientNetworks("2001:db8:12:3456::1")
      func fill(_ count: Int, site: String?, subnet: String?) async throws {
        let fingerprints = [networks.network, site ?? "-", subnet ?? "-"].map { prints.fingerprint("network", $0) }
        try await app.database.execute("DELETE FROM mail_attempts")
        try await app.database.execute(
          """
          INSERT INTO mail_attempts (id, ordinal, budget, kind, mailbox, domain, network, site, subnet)
          SELECT uuid_v7(), 1, 'stranger', 'verify-email', sha256(n::text::bytea), sha256(n::text::bytea),
            \(fingerprints[0]), \(fingerprints[1]), \(fingerprints[2])
          FROM generate_series(1, \(count)) AS n
          """)
      }
      try await fill(MailGate.maximumPerSubnet, site: networks.site, subnet: networks.subnet)
      #expect(try await judge(app, "zoe@x.org", from: "2001:db8:12:3456::9") == "network")
      #expect(try await judge(app, "zoe@x.org", from: "2001:db8:12:3457::9") == "open")
      try await fill(MailGate.maximumPerSite, site: networks.site, subnet: nil)
      #expect(try await judge(app, "zoe@x.org", from: "2001:db8:12:3457::9") == "network")
      #expect(try await judge(app, "zoe@x.org", from: "2001:db8:12:3557::9") == "open")
    }
  }

  @Test func `the first mail of a day to a mailbox comes from a reserve`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await judge(app, "yan@x.org", from: "198.51.100.1", host: ana) == "open")
      try await add(MailGate.maximumPerHost / 4 * 3, host: "\(ana.userID)", to: app)
      #expect(try await judge(app, "yan@x.org", from: "198.51.100.1", host: ana) == "host")
      #expect(try await judge(app, "zoe@x.org", from: "198.51.100.1", host: ana) == "open")
    }
  }

  @Test func `a party whose guests scan a code in one Wi-Fi gets in`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let token = try await link(app, by: ana, title: "Party")
      try await app.takeMails()
      let statuses = try await app.withConnections(8) {
        try await app.race(80) { number in
          let form = try await app.formToken(of: token)
          return try await app.submit(
            "/e/\(token)", ["form": form, "name": "Guest", "answer": "going", "email": "g\(number)@company.example"])
        }
      }
      #expect(statuses == [303: 80])
      #expect(try await asked(app) == 80)
      try await app.takeNotifications()
    }
  }

  @Test func `of many forms at once no more pass than one after the other`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      try await app.database.execute("DELETE FROM mail_attempts")
      let verdicts = try await withThrowingTaskGroup(of: String.self) { group in
        for _ in 0..<20 { group.addTask { try await judge(app, "zoe@x.org", host: ana) } }
        return try await group.reduce(into: [String: Int]()) { $0[$1, default: 0] += 1 }
      }
      #expect(verdicts == ["open": 3, "mailbox": 17])
    }
  }

  @Test func `counting waits for no event`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      try await app.database.transaction { holder in
        _ = try await holder.rows("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        // Detached: in this task, the transaction is open.
        let verdict = try await Task.detached { try await judge(app, "zoe@x.org", host: ana) }.value
        #expect(verdict == "open")
      }
    }
  }

  // MARK: Who may cause mails

  @Test func `a host without a verified address causes mails to strangers only after a day`() async throws {
    try await TestApp.run(hostAge: 86_400) { app in
      let ana = try await app.signUp("ana", isVerified: false)
      let token = try await link(app, by: ana)
      let verification = try await app.takeToken("mail-verify-email")
      let visit = try await app.visit(token, email: "zoe@x.org")
      #expect(try await asked(app) == 0)
      #expect(try await visit.page().body.contains("We have not sent you an e-mail"))
      try await app.database.execute("UPDATE users SET created_at = now() - interval '25 hours'")
      try await app.visit(token, email: "zoe@x.org")
      #expect(try await asked(app) == 1)
      try await app.database.execute("UPDATE users SET created_at = now()")
      try await app.visit(token, email: "zoe@x.org")
      #expect(try await asked(app) == 0)
      #expect(try await ana.verify(verification).status == 204)
      try await visit.act("send-again", ["asked": "1"])
      #expect(try await asked(app) == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `without mails to visitors, forms ask for no address, and answers stay`() async throws {
    try await TestApp.run(["MUSTER_VISITOR_MAILS": "off"]) { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "email": "required"}"#)
      try await app.takeMails()
      #expect(try await !app.send("GET", "/e/\(link.token)").body.contains(#"name="email""#))
      for email in [nil, "zoe@x.org"] { try await app.visit(link.token, email: email) }
      #expect(try await app.value("SELECT count(*) FROM visitors WHERE email IS NULL AND lapses_at IS NULL") == 2)
      #expect(try await app.takeMails().isEmpty)
      try await app.takeNotifications()
    }
  }

  // MARK: Other mails to addresses that someone has typed

  @Test func `registrations, changes of the address, codes and resets share the mailbox's limit`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      try await app.takeMails()
      // The first mail was the registration's.
      let change = #"{"email": "ana+new@example.com", "currentPassword": "correct horse ana"}"#
      #expect(try await ana.send("PATCH", "users/me", change).status == 200)
      #expect(try await app.askForCode("ana@example.com").status == 202)
      #expect(try await app.takeMails().map(\.type) == ["mail-verify-email", "mail-sign-in-code"])
      // Three are the limit for one network.
      #expect(try await app.askForReset("ana@example.com").status == 202)
      #expect(try await app.askForCode("ana@example.com").status == 202)
      let refused = try await ana.send("PATCH", "users/me", change)
      #expect(refused.status == 429 && refused.problem == "too-many-attempts" && refused.header("Retry-After") != nil)
      let other = try await app.send(
        "POST", "auth/register",
        body: #"{"username": "anna", "email": "ana+2@example.com", "password": "correct horse anna"}"#)
      #expect(other.status == 201)
      #expect(try await app.takeMails().isEmpty)
      // The token of the held mail is as good as none, and the account is not.
      #expect(try await app.logIn("anna", "correct horse anna").status == 200)
    }
  }

  @Test func `strangers use up nothing of a proven owner's codes and resets`() async throws {
    try await TestApp.run(Self.proxied) { app in
      let ana = try await app.signUp("ana")
      #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
      let token = try await link(app, by: ana)
      for number in 1...6 { try await app.visit(token, email: "ana@example.com", from: "203.0.\(number).1") }
      try await app.takeMails()
      func ask(_ path: String, from address: String, as phone: Phone? = nil) async throws -> Int {
        let response = try await app.send(
          "POST", path, body: #"{"email": "ana@example.com"}"#, headers: [("X-Forwarded-For", address)],
          token: phone?.accessToken)
        #expect(response.status == 202)
        return try await app.takeMails().count
      }
      for path in ["auth/code", "auth/password-reset"] {
        #expect(try await ask(path, from: "192.0.2.1") == 1)
        // A flood from one network leaves five for others.
        var mails = 0
        for _ in 0..<8 { mails += try await ask(path, from: "198.51.100.1") }
        #expect(mails == 5)
        #expect(try await ask(path, from: "192.0.2.1") == 1)
      }
      // Many networks together exhaust what anyone may ask for, but not what the owner's session may.
      for number in 1...6 { _ = try await ask("auth/code", from: "203.0.\(number).1") }
      #expect(try await ask("auth/code", from: "192.0.2.1") == 0)
      #expect(try await ask("auth/code", from: "192.0.2.1", as: ana) == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `where an account has had a session, requests from elsewhere use up nothing of its codes and resets`()
    async throws
  {
    try await TestApp.run(Self.proxied) { app in
      let ana = try await app.signUp("ana")
      #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
      func from(_ address: String) -> [(String, String)] { [("X-Forwarded-For", address)] }
      func ask(_ path: String, from address: String, as phone: Phone? = nil) async throws -> Int {
        let response = try await app.send(
          "POST", path, body: #"{"email": "ana@example.com"}"#, headers: from(address), token: phone?.accessToken)
        #expect(response.status == 202)
        return try await app.takeMails().count
      }
      // One network by a login, and one by a refresh.
      let login = #"{"login": "ana", "password": "\#(ana.password)"}"#
      let phone = try Phone(
        app, "ana", try await app.send("POST", "auth/login", body: login, headers: from("192.0.2.1")))
      let refresh = #"{"refreshToken": "\#(phone.refreshToken)"}"#
      #expect(try await app.send("POST", "auth/refresh", body: refresh, headers: from("198.18.0.1")).status == 200)
      for path in ["auth/code", "auth/password-reset"] {
        for network in 1...2 { for _ in 1...5 { #expect(try await ask(path, from: "203.0.\(network).1") == 1) } }
        #expect(try await ask(path, from: "203.0.113.1") == 0)
        // Another address of the same network. A network has five, and all of these together ten.
        for address in ["192.0.2.77", "198.18.0.77"] {
          for number in 1...6 { #expect(try await ask(path, from: address) == (number == 6 ? 0 : 1), "\(path)") }
        }
        // The account's own token asks from anywhere.
        #expect(try await ask(path, from: "203.0.113.1", as: ana) == 1)
      }
      // What all owners share is not used up either by requests that anyone can make.
      try await app.database.execute("DELETE FROM mail_attempts")
      try await app.database.execute(
        """
        INSERT INTO mail_attempts (id, ordinal, budget, kind, mailbox, domain, network)
        SELECT uuid_v7(), 1, 'owner', 'sign-in-code', sha256(n::text::bytea), '', ''
        FROM generate_series(1, \(MailGate.maximumForOwners)) AS n
        """)
      #expect(try await ask("auth/code", from: "203.0.113.1") == 0)
      #expect(try await ask("auth/code", from: "192.0.2.1") == 1)
      // A network is forgotten after half a year, or when someone may have had a session there who is no longer welcome.
      #expect(try await app.value("SELECT count(*) FROM known_networks") == 3)
      let former = try await app.send("POST", "auth/login", body: login, headers: from("198.51.100.1"))
      #expect(try await app.value("SELECT count(*) FROM known_networks") == 4)
      let thief = try Phone(app, "ana", former)
      #expect(try await ana.send("DELETE", "auth/sessions/\(thief.session)").status == 204)
      #expect(try await app.value("SELECT count(*) FROM known_networks") == 0)
      for address in ["203.0.113.2", "203.0.114.1"] {
        #expect(try await app.send("POST", "auth/login", body: login, headers: from(address)).status == 200)
      }
      try await app.database.execute("UPDATE known_networks SET seen_at = seen_at - interval '183 days'")
      _ = try await app.send("POST", "auth/login", body: login, headers: from("192.0.2.1"))
      #expect(try await KnownNetwork.purge(atMost: 10, in: app.database) == 2)
      _ = try await Session.endAll(ofUserNamed: "ana", in: app.service)
      #expect(try await app.value("SELECT count(*) FROM known_networks") == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `mails that only inform go to proven addresses`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      let verification = try await app.takeToken("mail-verify-email")
      func change(_ old: String, _ new: String) async throws -> [String] {
        let body = #"{"currentPassword": "\#(old)", "newPassword": "\#(new)"}"#
        #expect(try await ana.send("POST", "auth/password", body).status == 204)
        return try await app.takeMails().map(\.type)
      }
      #expect(try await change("correct horse ana", "correct horse two").isEmpty)
      #expect(try await ana.verify(verification).status == 204)
      #expect(try await change("correct horse two", "correct horse three") == ["mail-password-changed"])
    }
  }
}

extension MetricsText {
  /// The counters that this process reports.
  fileprivate static func of(_ app: TestApp) async throws -> String {
    var text = MetricsText()
    app.dependencies.metrics.write(to: &text)
    return text.text
  }
}
