import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Refreshes as phones make them. The rules themselves are in ``RefreshMachineTests``.
@Suite struct RefreshTests {
  private func refresh(_ app: TestApp, _ token: String) async throws -> APIResponse {
    try await app.send("POST", "auth/refresh", body: #"{"refreshToken": "\#(token)"}"#)
  }

  /// Sends one token several times at once.
  private func refresh(_ app: TestApp, _ token: String, times: Int) async throws -> [APIResponse] {
    try await withThrowingTaskGroup(of: APIResponse.self) { group in
      for _ in 0..<times { group.addTask { try await refresh(app, token) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
  }

  @Test func `a refresh returns the same members as a login, and its tokens work`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let before = (access: ana.accessToken, refresh: ana.refreshToken)
      let response = try await ana.refresh()
      #expect(response.status == 200)
      #expect(response.json.keys == ["user", "accessToken", "refreshToken", "tokenType", "expiresIn"])
      #expect(response.json["user"]["id"].string == ana.id)
      #expect(response.header("Cache-Control") == "no-store")
      #expect(ana.accessToken != before.access)
      #expect(ana.refreshToken != before.refresh)
      _ = try await ana.get("users/me")
      // An access token is valid until it expires, whatever happened to its refresh token.
      #expect(try await app.send("GET", "users/me", token: before.access).status == 200)
    }
  }

  @Test func `a token with impossible numbers is refused, and so is a token of a damaged row`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let (session, keys) = (try ana.session, app.dependencies.refreshTokenKeys)
      func token(_ counter: Int, _ branch: Int = 0) throws -> String {
        try RefreshToken(session: session, counter: counter, branch: branch, kid: keys.signing.kid).signed(with: keys)
      }
      for (counter, branch) in [(Int.max, 0), (.max, -1), (.min, 0), (-1, 0), (0, -1), (0, Int(Int32.max))] {
        let response = try await refresh(app, try token(counter, branch))
        #expect(
          response.status == 401 && response.problem == "session-ended", "\(counter), \(branch): \(response.body)")
      }
      // None of these counts as theft: the session continues, up to the last possible number.
      let last = try await refresh(app, try token(.max - 1))
      #expect(last.status == 200)
      let beyond = try await refresh(app, try #require(last.json["refreshToken"].string))
      #expect(beyond.status == 401 && beyond.problem == "session-ended")

      for (column, value) in [("branch", Int(Int32.max)), ("counter", Int.min), ("counter", -1), ("branch", -1)] {
        try await app.database.execute(
          """
          UPDATE sessions
          SET counter = 5, branch = 0, parent_branch = 0, rotated_at = rotated_at - interval '11 seconds'
          WHERE id = \(session)
          """)
        try await app.database.execute("UPDATE sessions SET \(unescaped: column) = \(value) WHERE id = \(session)")
        let response = try await refresh(app, try token(4))
        #expect(response.status == 401 && response.problem == "session-ended", "\(column): \(response.body)")
      }
    }
  }

  @Test func `parallel refreshes get the same refresh token, and each gets a working access token`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let session = try ana.session
      var shown = ana.refreshToken
      // First at once; then three times as retries of a response that was lost more than 10 s ago.
      for rounds in [1, 3] {
        let isLate = rounds > 1
        if isLate { _ = try await refresh(app, shown) }
        var next: String?
        for _ in 0..<rounds {
          if isLate {
            try await app.database.execute(
              "UPDATE sessions SET rotated_at = rotated_at - interval '11 seconds' WHERE id = \(session)")
          }
          let given = try await refresh(app, shown, times: 20)
          #expect(given.allSatisfy { $0.status == 200 })
          #expect(Set(given.map { $0.json["refreshToken"].string }).count == 1)
          let accessTokens = Set(given.compactMap { $0.json["accessToken"].string })
          #expect(accessTokens.count == 20)
          for token in accessTokens { #expect(try await app.send("GET", "users/me", token: token).status == 200) }
          next = given.first?.json["refreshToken"].string
        }
        shown = try #require(next)
      }
      #expect(try await refresh(app, shown).status == 200)
    }
  }

  @Test func `a stolen token is always refused, reported once, and ends the access tokens`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let stolen = ana.refreshToken
      let tablet = try await ana.signInAgain()
      for _ in 0..<2 { #expect(try await ana.refresh().status == 200) }
      let responses = try await refresh(app, stolen, times: 20)
      #expect(responses.allSatisfy { $0.status == 401 && $0.problem == "session-ended" })
      let received = try await app.takeNotifications()
      #expect(received.count == 1)
      #expect(received.allSatisfy { $0 == ("session-revoked", ana) })
      #expect(received.first?.payload.keys == ["type", "message", "locKey", "locArgs", "sessionId"])
      #expect(try received.first?.payload["sessionId"].string == ana.session.description)
      #expect(try await ana.refresh().problem == "session-ended")
      try await eventually { try await ana.send("GET", "users/me").problem == "session-ended" }
      // The user's other sessions continue.
      #expect(try await tablet.refresh().status == 200)
    }
  }

  @Test func `a tampered token is refused, and changes no session`() async throws {
    let (signing, other) = (SigningKeys.generate(), SigningKeys.generate())
    try await TestApp.run(["MUSTER_REFRESH_TOKEN_KEYS": "\(signing),\(other)"]) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for phone in [ana, ben] { for _ in 0..<3 { #expect(try await phone.refresh().status == 200) } }
      func rows() async throws -> String? {
        try await app.value("SELECT string_agg(s::text, ' ' ORDER BY id) FROM sessions AS s")
      }
      let before = try await rows()
      let parts = ana.refreshToken.split(separator: ".").map(String.init)
      let bensParts = ben.refreshToken.split(separator: ".").map(String.init)
      let content: Data = try #require(Data(base64URL: parts[2]))
      let mac: Data = try #require(Data(base64URL: parts[3]))
      let bensContent: Data = try #require(Data(base64URL: bensParts[2]))
      let bensMAC: Data = try #require(Data(base64URL: bensParts[3]))
      // Ben's session with the counter and branch of Ana's.
      let movedContent: Data = bensContent.prefix(16) + content.dropFirst(16)
      func token(version: String = "mr1", kid: String? = nil, content: Data, mac: Data) -> String {
        [version, kid ?? parts[1], content.base64URL, mac.base64URL].joined(separator: ".")
      }
      #expect(token(content: content, mac: mac) == ana.refreshToken)
      // 256 bits cannot be guessed.
      #expect(mac.count == 32)
      var forged = ["x", "mr1.a.b.c", "mr1...", "\(ana.refreshToken)A", "\(ana.refreshToken)."]
      forged.append(token(version: "mr2", content: content, mac: mac))
      for kid in [String(other.prefix { $0 != ":" }), "unknown", ""] {
        forged.append(token(kid: kid, content: content, mac: mac))
      }
      for changed in [movedContent, content + Data([0]), content.dropLast(), Data()] {
        forged.append(token(content: changed, mac: mac))
      }
      for changed in [bensMAC, mac + Data([0]), mac.dropLast(), Data()] {
        forged.append(token(content: content, mac: changed))
      }
      // Each byte of the session (0 to 15), counter (16 to 23), branch (24 to 27) and MAC, up and down by one.
      for place in content.indices {
        for change: UInt8 in [1, 255] {
          var changed = content
          changed[place] &+= change
          forged.append(token(content: changed, mac: mac))
        }
      }
      for place in mac.indices {
        var changed = mac
        changed[place] ^= 1
        forged.append(token(content: content, mac: changed))
      }
      // A token ahead of her session's row, signed by another key with the same id.
      let name = app.dependencies.refreshTokenKeys.signing.kid
      let sameName = try SigningKeys("\(name):\(SigningKeys.generate().split(separator: ":")[1])")
      let ahead = RefreshToken(session: try ana.session, counter: 5, branch: 0, kid: name)
      forged.append(try ahead.signed(with: sameName))
      for text in forged {
        let response = try await refresh(app, text)
        #expect(response.status == 401, "\(text)")
        #expect(response.problem == "session-ended", "\(text)")
      }
      #expect(try await rows() == before)
      for phone in [ana, ben] { #expect(try await phone.refresh().status == 200) }
    }
  }

  @Test func `a genuine token of a session that is gone gets session-ended`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      // One session outlived its account, and the other was deleted.
      try await app.database.execute(
        "UPDATE sessions SET ended_at = now(), user_id = NULL WHERE id = \(try ana.session)")
      try await app.database.execute("DELETE FROM sessions WHERE id = \(try ben.session)")
      for phone in [ana, ben] {
        let response = try await phone.refresh()
        #expect(response.status == 401)
        #expect(response.problem == "session-ended")
      }
    }
  }

  @Test func `phones continue after a backup is restored, and an old token still counts as theft`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await ana.refresh().status == 200)
      let stolen = ana.refreshToken
      try await app.database.execute("CREATE TABLE backup AS SELECT * FROM sessions")
      for _ in 0..<3 { #expect(try await ana.refresh().status == 200) }
      try await app.database.execute(
        """
        UPDATE sessions AS s
        SET counter = b.counter, branch = b.branch, parent_branch = b.parent_branch, rotated_at = b.rotated_at,
          kid = b.kid
        FROM backup AS b
        WHERE b.id = s.id
        """)
      for _ in 0..<2 { #expect(try await ana.refresh().status == 200) }
      #expect(try await refresh(app, stolen).status == 401)
      #expect(try await app.takeNotifications().map(\.type) == ["session-revoked"])
    }
  }

  @Test func `keys are rotated process by process, and everyone stays logged in`() async throws {
    let (old, new) = (SigningKeys.generate(), SigningKeys.generate())
    try await TestApp.run(["MUSTER_REFRESH_TOKEN_KEYS": "\(old),\(new)"]) { app in
      try await ServiceProcess.run(of: app, ["MUSTER_REFRESH_TOKEN_KEYS": "\(new),\(old)"]) { restarted in
        let ana = try await app.signUp("ana")
        var (held, kids) = (ana.refreshToken, Set<Substring>())
        for step in 0..<12 {
          // Every other response is lost, and the request is repeated at the other process.
          let (one, other) = step % 4 < 2 ? (app, restarted) : (restarted, app)
          let lost = try await refresh(one, held)
          let response = step % 2 == 0 ? lost : try await refresh(other, held)
          #expect(response.json["refreshToken"] == lost.json["refreshToken"])
          held = try #require(response.json["refreshToken"].string)
          kids.insert(held.split(separator: ".")[1])
        }
        #expect(kids.count == 2)
        // The old key is dropped once no phone holds a token that it signed.
        let current = try #require(try await refresh(restarted, held).json["refreshToken"].string)
        try await ServiceProcess.run(of: app, ["MUSTER_REFRESH_TOKEN_KEYS": new]) { last in
          let next = try await refresh(last, current)
          #expect(next.status == 200)
          let older = try await refresh(last, ana.refreshToken)
          #expect(older.problem == "session-ended")
        }
      }
    }
  }
}
