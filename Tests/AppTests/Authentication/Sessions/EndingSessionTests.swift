import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Logging out, listing sessions and ending them. An ended session is soon refused everywhere.
@Suite struct EndingSessionTests {
  private func listed(_ phone: Phone) async throws -> Set<String> {
    Set(try await phone.get("auth/sessions")["items"].array.compactMap { $0["id"].string })
  }

  /// Waits until both of its tokens are refused.
  private func expectEnded(_ phone: Phone, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await eventually { try await phone.send("GET", "users/me").problem == "session-ended" }
    let response = try await phone.send("GET", "users/me")
    #expect(response.status == 401, sourceLocation: sourceLocation)
    #expect(response.header("WWW-Authenticate") != nil, sourceLocation: sourceLocation)
    #expect(try await phone.refresh().problem == "session-ended", sourceLocation: sourceLocation)
  }

  @Test func `logging out ends this session, and no other`() async throws {
    try await TestApp.run { app in
      let (phone, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let tablet = try await phone.signInAgain(device: "tablet")
      let response = try await phone.send("POST", "auth/logout")
      #expect(response.status == 204)
      #expect(response.body.isEmpty)
      try await expectEnded(phone)
      #expect(try await phone.send("POST", "auth/logout").problem == "session-ended")
      for other in [tablet, ben] {
        _ = try await other.get("users/me")
        #expect(try await other.refresh().status == 200)
      }
      // Logging in again is another session.
      _ = try await phone.signInAgain(device: "phone").get("users/me")
    }
  }

  @Test func `after a concurrent logout and refresh, no token works`() async throws {
    try await TestApp.run { app in
      for number in 1...8 {
        let phone = try await app.signUp("person\(number)")
        async let refreshed = phone.refresh()
        async let left = phone.send("POST", "auth/logout")
        let (refresh, logout) = try await (refreshed, left)
        #expect(logout.status == 204)
        // Either may be first: a refresh that comes too late is refused.
        #expect([200, 401].contains(refresh.status))
        #expect(try await phone.refresh().status == 401)
      }
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == 0)
    }
  }

  @Test func `the list shows each session's device and times, and which one is current`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let tablet = try await ana.signInAgain(device: "Ana’s iPad")
      try await app.database.execute(
        """
        UPDATE sessions
        SET created_at = date_trunc('second', now()) - interval '3 days',
          rotated_at = date_trunc('second', now()) - interval '2 days'
        WHERE device IS NOT NULL
        """)
      let list = try await ana.get("auth/sessions")
      #expect(list.keys == ["items", "nextCursor", "timestamp"])
      #expect(list["nextCursor"] == .null)
      #expect(list["timestamp"] == .null)
      let items = list["items"].array
      #expect(items.count == 2)
      for item in items { #expect(item.keys == ["id", "device", "createdAt", "lastUsedAt", "current"]) }
      let own = try #require(items.first { $0["current"].bool == true })
      #expect(try own["id"].string == ana.session.description)
      #expect(own["device"] == .null)
      let other = try #require(items.first { $0["current"].bool == false })
      #expect(try other["id"].string == tablet.session.description)
      #expect(other["device"].string == "Ana’s iPad")
      let times = try await app.database.rows(
        """
        SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS text
        FROM sessions, unnest(ARRAY[created_at, rotated_at]) AS moment
        WHERE device IS NOT NULL
        ORDER BY moment
        """)
      let (createdAt, lastUsedAt): (String, String) = (try times[0]["text"], try times[1]["text"])
      #expect(other["createdAt"].string == createdAt)
      #expect(other["lastUsedAt"].string == lastUsedAt)
      // A refresh is a use.
      #expect(try await tablet.refresh().status == 200)
      let later = try await tablet.get("auth/sessions")["items"].array.first { $0["current"].bool == true }
      #expect(later?["createdAt"] == other["createdAt"])
      #expect(later != nil && later?["lastUsedAt"] != other["lastUsedAt"])
      #expect(try await listed(ben) == [try ben.session.description])
    }
  }

  @Test func `sessions that have ended or expired are not listed`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for device in ["ended", "idle", "old"] { _ = try await ana.signInAgain(device: device) }
      try await app.database.execute("UPDATE sessions SET ended_at = now() WHERE device = 'ended'")
      try await app.database.execute(
        "UPDATE sessions SET rotated_at = now() - interval '61 days' WHERE device = 'idle'")
      try await app.database.execute(
        "UPDATE sessions SET created_at = now() - interval '366 days' WHERE device = 'old'")
      #expect(try await listed(ana) == [try ana.session.description])
    }
  }

  @Test func `a user can end one of their sessions, and the others continue`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let tablet = try await ana.signInAgain(device: "tablet")
      let lost = try await ana.signInAgain(device: "lost")
      let path = "auth/sessions/\(try lost.session)"
      let response = try await ana.send("DELETE", path)
      #expect(response.status == 204)
      #expect(response.body.isEmpty)
      try await expectEnded(lost)
      #expect(try await ana.send("DELETE", path).problem == "session-not-found")
      #expect(try await listed(ana) == [try ana.session.description, try tablet.session.description])
      #expect(try await tablet.refresh().status == 200)
      // The current session can also end itself.
      #expect(try await ana.send("DELETE", "auth/sessions/\(try ana.session.description.uppercased())").status == 204)
      try await expectEnded(ana)
    }
  }

  @Test func `every process refuses a session one second after its end`() async throws {
    try await TestApp.run { app in
      try await ServiceProcess.run(of: app) { other in
        for round in 0..<3 {
          let ana = try await app.signUp("ana\(round)")
          #expect(try await other.send("GET", "users/me", token: ana.accessToken).status == 200)
          #expect(try await ana.send("POST", "auth/logout").status == 204)
          try await Task.sleep(for: .seconds(1))
          // A process that has not read about it by now knows that its copy is too old.
          for place in [app, other] {
            let status = try await place.send("GET", "users/me", token: ana.accessToken).status
            #expect([401, 503].contains(status), "\(status)")
          }
          for place in [app, other] {
            try await eventually {
              try await place.send("GET", "users/me", token: ana.accessToken).problem == "session-ended"
            }
          }
        }
      }
    }
  }

  @Test func `a process that cannot read ended sessions returns 503 until it can, and never 401`() async throws {
    try await TestApp.run(endedSessionsAge: .seconds(5), pastPooler: true) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      #expect(try await ben.send("POST", "auth/logout").status == 204)
      try await eventually { try await ben.send("GET", "users/me").status == 401 }

      try await setConnections(app, allowed: false)
      var seen: Set<Int> = []
      try await eventually {
        let status = try await ana.send("GET", "users/me").status
        seen.insert(status)
        return status == 503
      }
      #expect(seen.isSubset(of: [200, 503]), "\(seen)")
      for phone in [ana, ben] {
        let response = try await phone.send("GET", "users/me")
        #expect(response.status == 503, "\(response.body)")
        #expect(response.header("Retry-After") != nil)
      }
      #expect(try await app.send("GET", "/health/ready").status == 503)
      #expect(try await app.send("GET", "/health/live").status == 200)
      // The other connections to the database work, and a refresh is checked against its row.
      #expect(try await ana.refresh().status == 200)

      try await setConnections(app, allowed: true)
      try await eventually { try await ana.send("GET", "users/me").status == 200 }
      try await eventually { try await app.send("GET", "/health/ready").status == 200 }
      #expect(try await ben.send("GET", "users/me").status == 401)
    }
  }

  /// Forbids new connections to the database, and ends those that read the ended sessions.
  private func setConnections(_ app: TestApp, allowed: Bool) async throws {
    let name: String = try #require(try await app.value("SELECT current_database()::text"))
    try await ScriptConnection.run(try await TestCluster.administrationURL()) { connection in
      try connection.script("ALTER DATABASE \(name) ALLOW_CONNECTIONS \(allowed)")
      guard !allowed else { return }
      let ended = try connection.rows(
        """
        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = \(name) AND query LIKE '%ended_xid%'
        """)
      #expect(!ended.isEmpty)
    }
  }
}
