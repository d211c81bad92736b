import Foundation
import Logging
import Postgres
import Testing

@testable import App

/// Attacks on accounts, and the contents of logs. `docs/asvs.tsv` names these tests.
@Suite struct AccountSecurityTests {
  @Test func `any 8 to 256 characters make a password, and are used exactly as they are`() async throws {
    try await TestApp.run { app in
      let passwords = [
        "zyxqwvut", "84629173", "  two spaces around  ", "пароль-с-кашей", "🍓🍐🍓🍐🍓🍐🍓🍐", "Ünïcödé & \\\" all",
        String(repeating: "abcdefgh", count: 32),
      ]
      for (index, password) in passwords.enumerated() {
        let text = "\"" + password.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        let registered = try await app.send(
          "POST", "auth/register",
          body: #"{"username": "p-\#(index)", "email": "p\#(index)@example.com", "password": \#(text)}"#)
        #expect(registered.status == 201, "\(password): \(registered.body)")
        let login = try await app.send("POST", "auth/login", body: #"{"login": "p-\#(index)", "password": \#(text)}"#)
        #expect(login.status == 200, "\(password)")
      }
      // Nothing is cut off, trimmed or lowercased on the way.
      for (index, other) in [
        (0, "ZYXQWVUT"), (2, "two spaces around"), (6, String(repeating: "abcdefgh", count: 31) + "abcdefgX"),
      ] {
        #expect(try await app.logIn("p-\(index)", other).status == 401, "\(other)")
      }
    }
  }

  @Test func `a new database has no accounts`() async throws {
    try await TestApp.run { app in
      #expect(try await app.value("SELECT count(*) FROM users") == 0)
      // The demo accounts are created only on request.
      let response = try await app.logIn("ana", "plans-with-friends")
      #expect(response.status == 401)
    }
  }

  @Test func `no token, password, address, query, body or id in a path is ever logged`() async throws {
    let log = CapturedLog()
    try await TestApp.run(["MUSTER_LOG_REQUESTS": "all"], logger: log.logger(.trace)) { app in
      let ana = try await app.signUp("ana")
      let event = try #require(try await ana.createEvent("Secret picnic")["id"].string)
      _ = try await ana.get("events/\(event)")
      _ = try await ana.send("GET", "events/\(event)?from=in-the-query")
      try await ana.refresh()
      let wrong = #"{"login": "ana@example.com", "password": "wrong horse"}"#
      _ = try await app.send("POST", "auth/login", body: wrong)
      _ = try await app.send("POST", "auth/login", body: wrong + "not JSON")
      _ = try await app.askForReset("ana@example.com")
      _ = try await app.verify("made-up-token")
      _ = try await app.send("GET", "in-a-path", token: "made-up-token")
      _ = try await ana.send("PATCH", "events/\(event)", #"{"title": ""}"#)
      // An unforeseen error is logged with its cause, and the database's message quotes the row.
      try await app.database.execute("ALTER TABLE users ADD CONSTRAINT surprise CHECK (username <> 'cleo')")
      let failed = try await app.send(
        "POST", "auth/register",
        body: #"{"username": "cleo", "email": "cleo@example.com", "password": "correct horse cleo"}"#)
      #expect(failed.status == 500)
      let text = log.text
      // The log was captured.
      for part in ["events/{id}", "auth/login", "PATCH", "500", "surprise"] {
        #expect(text.contains(part), "\(part)")
      }
      let tokens = [ana.accessToken, ana.refreshToken].flatMap { $0.split(separator: ".").map(String.init) }
      for secret in tokens.filter({ $0.count > 12 }) + [
        "horse", "@", "scrypt", "in-the-query", "in-a-path", "picnic", event, "made-up-token", "eyJ", "mr1.",
      ] {
        #expect(!text.contains(secret), "\(secret)")
      }
    }
  }
}
