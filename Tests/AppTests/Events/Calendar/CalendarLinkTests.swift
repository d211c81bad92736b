import Foundation
import Logging
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct CalendarLinkTests {
  @Test func `a link is shown again until it is replaced or revoked`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let none = try await ana.get("users/me/calendar")
      #expect(none["url"] == .null && none["webcalUrl"] == .null && none["createdAt"] == .null)
      let first = try await ana.makeCalendarLink()
      let shown = try await ana.get("users/me/calendar")
      #expect(shown["url"].string == app.url + first)
      #expect(shown["webcalUrl"].string == app.url.replacing("http:", with: "webcal:") + first)
      #expect(shown["createdAt"].string != nil)
      _ = try await app.calendarFeed(first)
      let second = try await ana.makeCalendarLink()
      #expect(first != second)
      #expect(try await app.send("GET", first).problem == "calendar-not-found")
      // Some calendars append parameters of their own.
      #expect(try await app.send("GET", second + "?nocache=1&nocache=2").status == 200)
      let head = try await app.send("HEAD", second)
      #expect(head.status == 200 && head.body.isEmpty)
      #expect(head.header("Content-Type") == "text/calendar; charset=utf-8")
      for _ in 1...2 {
        #expect(try await ana.send("DELETE", "users/me/calendar").status == 204)
        #expect(try await app.send("GET", second).status == 404)
      }
      #expect(try await ana.get("users/me/calendar")["url"] == .null)
    }
  }

  @Test func `only the server's key makes a link`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let ana = try await app.signUp("ana")
      let path = try await ana.makeCalendarLink()
      let parts = path.dropLast(".ics".count).split(separator: ".")
      let others = try SigningKeys(SigningKeys.generate())
      let content = try #require(Data(base64URL: String(parts[2])))
      let forged = try #require(others.token("mc1", content, kid: others.signing.kid))
      let other = "\(parts[0]).\(parts[1]).\(Data(repeating: 7, count: 16).base64URL).\(parts[3]).ics"
      let wrong = [
        "/calendars/\(forged).ics", other, String(path.dropLast(4)), path.replacing(".ics", with: ".ICS"),
        path.replacing("mc1.", with: "mr1."), "/calendars/.ics", "/calendars/" + String(repeating: "a", count: 5000),
      ]
      for path in wrong {
        let statements = try await log.statements {
          let response = try await app.send("GET", path)
          #expect(response.problem == "calendar-not-found", "\(path)")
        }
        // A guess costs no statement.
        #expect(statements == [])
      }
      // Nothing in the database is a part of the link.
      let row: String? = try await app.database.value("SELECT to_jsonb(l)::text FROM calendar_links AS l")
      #expect(row?.contains(parts[3]) == false)
    }
  }

  @Test func `what ends the user's sessions revokes the link`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var password = ana.password
      func expectRevoked(_ what: String, _ phone: Phone, _ action: () async throws -> Void) async throws {
        let path = try await phone.makeCalendarLink()
        _ = try await app.calendarFeed(path)
        try await action()
        #expect(try await app.send("GET", path).problem == "calendar-not-found", "\(what)")
      }
      // Made in the session that is ended.
      try await expectRevoked("another password", try await ana.signInAgain()) {
        let body = #"{"currentPassword": "\#(password)", "newPassword": "\#(password) 2"}"#
        let response = try await ana.send("POST", "auth/password", body)
        #expect(response.status == 204)
        password += " 2"
      }
      try await expectRevoked("a password reset", ana) {
        try await app.takeMails()
        _ = try await app.askForReset("ana@example.com")
        let token = try await app.takeToken("mail-reset-password")
        password += " 3"
        #expect(try await app.confirmReset(token, password).status == 204)
      }
      let again = try Phone(app, "ana", try await app.logIn("ana", password))
      try await expectRevoked("a stolen refresh token", again) {
        let old = again.refreshToken
        let fresh = [try await again.refresh(), try await again.refresh()]
        let replayed = try await again.refresh(old)
        #expect(fresh.map(\.status) == [200, 200] && replayed.status == 401)
        let notices = try await app.takeNotifications()
        #expect(notices.map(\.type) == ["session-revoked"])
      }
      let phone = try Phone(app, "ana", try await app.logIn("ana", password))
      try await expectRevoked("an operator", phone) {
        _ = try await Session.endAll(ofUserNamed: "ana", in: app.service)
      }
      let last = try Phone(app, "ana", try await app.logIn("ana", password))
      try await expectRevoked("deleting the account", last) {
        let response = try await last.send("DELETE", "users/me", #"{"password": "\#(password)"}"#)
        #expect(response.status == 204)
      }
      #expect(try await app.value("SELECT count(*) FROM calendar_links") == 0)
    }
  }

  @Test func `the end of another session revokes the link that it has made or read, and no other`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      func end(_ phone: Phone) async throws {
        #expect(try await ana.send("DELETE", "auth/sessions/\(try phone.session)").status == 204)
      }
      let (maker, reader, stranger) = (
        try await ana.signInAgain(), try await ana.signInAgain(), try await ana.signInAgain()
      )
      let path = try await maker.makeCalendarLink()
      try await end(stranger)
      _ = try await app.calendarFeed(path)
      try await end(maker)
      #expect(try await app.send("GET", path).problem == "calendar-not-found")
      let next = try await ana.makeCalendarLink()
      // It reads the link twice, and is known once.
      for _ in 1...2 { #expect(try await reader.get("users/me/calendar")["url"].string?.hasSuffix(next) == true) }
      #expect(try await app.value("SELECT cardinality(session_ids) FROM calendar_links", as: Int32.self) == 2)
      try await end(reader)
      #expect(try await app.send("GET", next).problem == "calendar-not-found")
      #expect(try await ana.get("users/me/calendar")["url"] == .null)
    }
  }

  @Test func `a link goes with the end of any other session if a session that knew it has ended by itself`()
    async throws
  {
    for end in ["logout", "surplus", "purge"] {
      try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
        let ana = try await app.signUp("ana")
        let (thief, other) = (try await ana.signInAgain(), try await ana.signInAgain())
        let path = try await ana.makeCalendarLink()
        #expect(try await thief.get("users/me/calendar")["url"] != .null)
        switch end {
        case "logout": #expect(try await thief.send("POST", "auth/logout").status == 204)
        case "surplus":
          try await app.database.execute(
            "UPDATE sessions SET rotated_at = rotated_at - interval '1 day' WHERE id = \(thief.session)")
          for _ in 3...Session.maximumCount { _ = try await ana.signInAgain() }
          #expect(try await thief.refresh().status == 401)
        default:
          #expect(try await thief.send("POST", "auth/logout").status == 204)
          try await app.database.execute("DELETE FROM sessions WHERE id = \(thief.session)")
        }
        // A session that ends itself keeps the calendars that the user has subscribed.
        _ = try await app.calendarFeed(path)
        #expect(try await ana.send("DELETE", "auth/sessions/\(try other.session)").status == 204)
        #expect(try await app.send("GET", path).problem == "calendar-not-found", "\(end)")
        try await app.takeNotifications()
      }
    }
  }

  @Test func `a new password keeps a link that no other session has ever known`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var password = ana.password
      func changePassword() async throws {
        let body = #"{"currentPassword": "\#(password)", "newPassword": "\#(password) 2"}"#
        password += " 2"
        #expect(try await ana.send("POST", "auth/password", body).status == 204)
      }
      let path = try await ana.makeCalendarLink()
      _ = try Phone(app, "ana", try await app.logIn("ana", password))
      try await changePassword()
      _ = try await app.calendarFeed(path)
      // One that has read it, and has logged out since. The next reader takes its place in the row.
      let reader = try Phone(app, "ana", try await app.logIn("ana", password))
      #expect(try await reader.get("users/me/calendar")["url"] != .null)
      #expect(try await reader.send("POST", "auth/logout").status == 204)
      _ = try await app.calendarFeed(path)
      let next = try Phone(app, "ana", try await app.logIn("ana", password))
      #expect(try await next.get("users/me/calendar")["url"] != .null)
      #expect(try await next.send("POST", "auth/logout").status == 204)
      try await app.database.execute("UPDATE calendar_links SET session_ids = ARRAY[\(ana.session)]")
      try await changePassword()
      #expect(try await app.send("GET", path).problem == "calendar-not-found")
      // Another link starts over.
      let fresh = try await ana.makeCalendarLink()
      try await changePassword()
      _ = try await app.calendarFeed(fresh)
      try await app.takeMails()
    }
  }

  @Test func `a stolen token revokes the link that its session knew, and no other`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let stolen = try await ana.signInAgain()
      let path = try await ana.makeCalendarLink()
      let old = stolen.refreshToken
      for _ in 1...2 { #expect(try await stolen.refresh().status == 200) }
      #expect(try await stolen.refresh(old).status == 401)
      _ = try await app.calendarFeed(path)
      try await app.takeNotifications()
    }
  }

  @Test func `ending everyone's sessions revokes everyone's links at once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let paths = [try await ana.makeCalendarLink(), try await ben.makeCalendarLink()]
      // Before the rows of the sessions say so.
      try await app.database.change { try Session.endEveryones(in: $0) }
      for path in paths { #expect(try await app.send("GET", path).problem == "calendar-not-found") }
      let again = try Phone(app, "ana", try await app.logIn("ana", ana.password))
      #expect(try await again.get("users/me/calendar")["url"] == .null)
      _ = try await app.calendarFeed(try await again.makeCalendarLink())
    }
  }

  @Test func `a repeated request of another session does not get the link, but makes its own`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let other = try await ana.signInAgain()
      let key = [("Idempotency-Key", "a-key")]
      let made = try await ana.send("POST", "users/me/calendar", headers: key)
      #expect(try await ana.send("POST", "users/me/calendar", headers: key).json == made.json)
      #expect(try await ana.get("users/me/calendar")["url"] == made.json["url"])
      #expect(try await other.send("POST", "users/me/calendar", headers: key).json["url"] != made.json["url"])
      #expect(try await ana.send("DELETE", "auth/sessions/\(try other.session)").status == 204)
      #expect(try await ana.get("users/me/calendar")["url"] == .null)
    }
  }

  @Test func `a link that is read while the session ends is revoked`() async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      for _ in 0..<8 {
        let other = try await ana.signInAgain()
        let path = try await ana.makeCalendarLink()
        async let read = other.send("GET", "users/me/calendar")
        async let ended = ana.send("DELETE", "auth/sessions/\(try other.session)")
        let (link, end) = (try await read, try await ended)
        #expect(end.status == 204)
        let isKnown = link.status == 200 && link.json["url"] != .null
        #expect(try await app.send("GET", path).status == (isKnown ? 404 : 200), "\(link.body)")
      }
    }
  }

  @Test func `logging out and refreshing keep the link`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let path = try await ana.makeCalendarLink()
      #expect(try await ana.refresh().status == 200)
      #expect(try await ana.send("POST", "auth/logout").status == 204)
      _ = try await app.calendarFeed(path)
    }
  }

  @Test func `no log line has the token`() async throws {
    let log = CapturedLog()
    try await TestApp.run(["MUSTER_LOG_REQUESTS": "all"], logger: log.logger(.debug)) { app in
      let ana = try await app.signUp("ana")
      let path = try await ana.makeCalendarLink()
      _ = try await app.calendarFeed(path)
      #expect(try await app.send("GET", path + "x").status == 404)
      try await eventually { log.text.contains("/calendars/{file}") }
      let secret = try #require(path.split(separator: ".").dropLast().last)
      #expect(!log.text.contains(secret))
    }
  }
}
