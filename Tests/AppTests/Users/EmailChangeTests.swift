import Postgres
import Testing

@testable import App

@Suite struct EmailChangeTests {
  private func change(_ phone: Phone, to email: String, expecting status: Int = 200) async throws -> APIResponse {
    try await phone.editProfile(
      #"{"email": "\#(email)", "currentPassword": "\#(phone.password)"}"#, expecting: status)
  }

  @Test func `a new address needs the password`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let unproven = try await ana.editProfile(#"{"email": "new@example.com"}"#, expecting: 422)
      #expect(unproven.badFields == ["currentPassword"])
      let wrong = try await ana.editProfile(
        #"{"email": "new@example.com", "currentPassword": "wrong", "bio": "x"}"#, expecting: 403)
      #expect(wrong.problem == "wrong-password")
      let me = try await ana.get("users/me")
      #expect(me["bio"] == .null && me["pendingEmail"] == .null)
    }
  }

  @Test func `a new address takes effect when it is verified, and each step moves the profile's stamp`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      try await app.takeMails()
      let stale = try await ana.stale {
        let asked = try await change(ana, to: "new@example.com")
        #expect(asked.json["email"].string == "ana@example.com")
        #expect(asked.json["pendingEmail"].string == "new@example.com")
      }
      #expect(stale == [.profile])
      let asking = try await app.takeMails()
      #expect(asking.map(\.type) == ["mail-verify-email"])
      #expect(asking.first?.to == "new@example.com")
      let token: String = try #require(asking.first?.token)
      let staleWhenVerified = try await ana.stale {
        let verified = try await ana.verify(token)
        #expect(verified.status == 204)
      }
      #expect(staleWhenVerified == [.profile])
      let me = try await ana.get("users/me")
      #expect(me["email"].string == "new@example.com")
      #expect(me["emailVerified"].bool == true)
      #expect(me["pendingEmail"] == .null)
      #expect(try await app.logIn("new@example.com", ana.password).status == 200)
      try await app.takeMails()
    }
  }

  @Test func `the old address gets a mail, and a token that was sent there before no longer works`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      _ = try await app.askForReset("ana@example.com")
      let reset = try await app.takeToken("mail-reset-password")
      _ = try await change(ana, to: "new@example.com")
      #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
      let received = try await app.takeMails()
      #expect(received.map(\.type) == ["mail-email-changed"])
      #expect(received.first?.to == "ana@example.com" && received.first?.token == nil)
      #expect(try await app.confirmReset(reset, "another horse ana").badFields == ["token"])
    }
  }

  @Test func `a former address that no one has proven gets no more mails than the gate lets through`() async throws {
    try await TestApp.run { app in
      // Anyone can register with others' addresses, and leave them again.
      func leave(_ name: String, _ address: String) async throws -> [String] {
        let phone = try await app.signUp(name, isVerified: false)
        _ = try await app.takeMails()
        try await app.database.execute("UPDATE users SET email = \(address) WHERE id = \(phone.userID)")
        _ = try await change(phone, to: "new.\(name)@example.com")
        #expect(try await phone.verify(try await app.takeToken("mail-verify-email")).status == 204)
        return try await app.takeMails().map { "\($0.type) \($0.to)" }
      }
      #expect(try await leave("ana", "zoe@x.org") == ["mail-email-changed zoe@x.org"])
      let counted: Int64? = try await app.value("SELECT count(*) FROM mail_attempts WHERE kind = 'email-changed'")
      #expect(counted == 1)
      let optOuts = app.dependencies.mailGate.optOuts
      try await optOuts.add(try #require(optOuts.keys.fingerprints(of: Mailbox("zoe@x.org")).first), in: app.database)
      #expect(try await leave("bob", "zoe+bob@x.org").isEmpty)
      // Others' mailboxes are not concerned.
      #expect(try await leave("cleo", "yan@x.org") == ["mail-email-changed yan@x.org"])
    }
  }

  @Test func `a request for the current address cancels the change`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let token = try await app.takeToken("mail-verify-email")
      #expect(try await ana.verify(token).status == 204)
      _ = try await change(ana, to: "new@example.com")
      #expect(try await change(ana, to: "ana@example.com").json["pendingEmail"] == .null)
      #expect(try await app.value("SELECT count(*) FROM mail_tokens") == 0)
      #expect(try await ana.get("users/me")["email"].string == "ana@example.com")
      // No change is pending now.
      #expect(try await ana.stale { _ = try await change(ana, to: "ana@example.com") } == [])
    }
  }

  @Test func `a request for the current address mails its link again while it is unverified`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      _ = try await change(ana, to: "new@example.com")
      try await app.takeMails()
      let back = try await change(ana, to: "ana@example.com")
      #expect(back.json["pendingEmail"] == .null)
      #expect(back.json["emailVerified"].bool == false)
      let token = try await app.takeToken("mail-verify-email")
      #expect(try await ana.verify(token).status == 204)
      #expect(try await ana.get("users/me")["emailVerified"].bool == true)
    }
  }

  @Test func `another spelling of the verified address needs no proof, and another mailbox does`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
      func set(_ email: String) async throws -> JSON {
        try await ana.editProfile(#"{"email": "\#(email)", "currentPassword": "\#(ana.password)"}"#)
        return try await ana.get("users/me")
      }
      // A pending change ends with it.
      var me = try await set("new@example.com")
      #expect(me["email"].string == "ana@example.com" && me["pendingEmail"].string == "new@example.com")
      let pending = try await app.takeToken("mail-verify-email")
      me = try await set("Ana@Example.com")
      #expect(me["email"].string == "Ana@example.com" && me["emailVerified"].bool == true)
      #expect(me["pendingEmail"] == .null)
      #expect(try await app.takeMails().isEmpty)
      #expect(try await ana.verify(pending).badFields == ["token"])
      // A tag may lead to another reader, so it is another address.
      me = try await set("ana+shop@example.com")
      #expect(me["email"].string == "Ana@example.com" && me["pendingEmail"].string == "ana+shop@example.com")
      #expect(try await ana.verify(try await app.takeToken("mail-verify-email")).status == 204)
      #expect(try await ana.get("users/me")["email"].string == "ana+shop@example.com")
      try await app.takeMails()
    }
  }

  @Test func `another account's address is refused, both when requested and when verified`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      #expect(try await change(ana, to: "BEN@example.com", expecting: 409).problem == "email-taken")
      try await app.takeMails()
      _ = try await change(ana, to: "new@example.com")
      let token = try await app.takeToken("mail-verify-email")
      try await app.database.execute("UPDATE users SET email = 'New@example.com' WHERE id = \(ben.userID)")
      #expect(try await ana.verify(token).problem == "email-taken")
      #expect(try await ana.get("users/me")["email"].string == "ana@example.com")
      // That has not spent the token.
      try await app.database.execute("UPDATE users SET email = 'ben@example.com' WHERE id = \(ben.userID)")
      #expect(try await ana.verify(token).status == 204)
      #expect(try await ana.get("users/me")["email"].string == "new@example.com")
    }
  }

  @Test func `wrong passwords are slowed down`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var statuses: [Int] = []
      for _ in 0..<20 {
        let response = try await ana.send(
          "PATCH", "users/me", #"{"email": "new@example.com", "currentPassword": "wrong horse"}"#)
        statuses.append(response.status)
        if response.status == 429 { #expect(response.header("Retry-After") != nil) }
      }
      #expect(statuses.first == 403)
      #expect(statuses.contains(429))
      // A throttled password ends no session.
      _ = try await ana.get("users/me")
    }
  }

  @Test func `many changes are slowed down`() async throws {
    try await TestApp.run { app in
      let ben = try await app.signUp("ben")
      var mailed: [Int] = []
      for number in 0..<8 {
        let body = #"{"email": "ben\#(number)@example.com", "currentPassword": "\#(ben.password)"}"#
        mailed.append(try await ben.send("PATCH", "users/me", body).status)
      }
      #expect(mailed.first == 200)
      #expect(mailed.last == 429)
    }
  }

  @Test func `an expired pending address leaves the profile only together with a new stamp`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await change(ana, to: "new@example.com")
      try await app.database.execute("UPDATE mail_tokens SET expires_at = now() - interval '1 second'")
      let me = try await ana.get("users/me")
      #expect(me["pendingEmail"].string == "new@example.com")
      let stale = try await ana.stale { try await app.worker(Recorder()).runOnce() }
      #expect(stale == [.profile])
      #expect(try await ana.get("users/me")["pendingEmail"] == .null)
      #expect(try await app.value("SELECT count(*) FROM mail_tokens") == 0)
    }
  }
}
