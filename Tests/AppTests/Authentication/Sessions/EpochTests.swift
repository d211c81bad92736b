import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Ending the sessions of everyone.
@Suite struct EpochTests {
  private func endEveryones(_ app: TestApp) async throws -> Int {
    try await Session.endEveryones(in: app.service) {}
  }

  @Test func `one row ends the sessions of everyone on every process, and new sessions work`() async throws {
    try await TestApp.run(isShared: false) { app in
      try await ServiceProcess.run(of: app) { other in
        let phones = [try await app.signUp("ana"), try await app.signUp("ben")]
        let places = [app, other]
        try await app.service.change { try Session.endEveryones(in: $0) }
        for phone in phones {
          // A refresh reads the row, so it fails at once.
          #expect(try await phone.refresh().problem == "session-ended")
          for place in places {
            try await eventually {
              try await place.send("GET", "users/me", token: phone.accessToken).problem == "session-ended"
            }
          }
          let again = try await phone.signInAgain()
          for place in places {
            #expect(try await place.send("GET", "users/me", token: again.accessToken).status == 200)
          }
          #expect(try await again.get("auth/sessions")["items"].array.count == 1)
          #expect(try await again.refresh().status == 200)
        }
        // No process reads the rows of the ended sessions.
        #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_xid IS NOT NULL") == 0)
        #expect(app.dependencies.endedSessions.count == 0)
      }
    }
  }

  @Test func `the rows and devices of ended sessions are cleaned up, and no process reads them`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for phone in [ana, ben] {
        #expect(try await phone.send("PUT", "devices", #"{"platform": "log", "token": "\#(phone.id)"}"#).status == 201)
      }
      #expect(try await endEveryones(app) == 2)
      let again = try await ana.signInAgain()
      _ = try await again.send("PUT", "devices", #"{"platform": "log", "token": "new"}"#)
      #expect(try await app.value("SELECT count(*) FROM devices") == 1)
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == 1)
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_xid IS NOT NULL") == 0)
      // A worker finishes the cleanup that a command has left.
      try await app.service.change { try Session.endEveryones(in: $0) }
      #expect(try await Session.purge(atMost: 100, in: app.service) == 1)
      #expect(try await app.value("SELECT count(*) FROM devices") == 0)
      #expect(try await endEveryones(app) == 0)
    }
  }

  @Test func `a process that starts afterwards refuses the old tokens`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await endEveryones(app)
      let again = try await ana.signInAgain()
      try await ServiceProcess.run(of: app) { other in
        let refused = try await other.send("GET", "users/me", token: ana.accessToken)
        #expect(refused.problem == "session-ended")
        #expect(try await other.send("GET", "users/me", token: again.accessToken).status == 200)
      }
    }
  }

  @Test func `a login while the sessions of everyone end is either valid or ended everywhere`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await app.signUp("ana")
      for _ in 0..<4 {
        let phones = try await withThrowingTaskGroup(of: Phone?.self) { group in
          for place in 0..<9 {
            group.addTask {
              if place != 4 { return try await ana.signInAgain() }
              try await app.service.change { try Session.endEveryones(in: $0) }
              return nil
            }
          }
          return try await group.reduce(into: [Phone]()) { if let phone = $1 { $0.append(phone) } }
        }
        let epoch: Int = try #require(try await app.value("SELECT number FROM session_epoch"))
        try await eventually { app.dependencies.endedSessions.copy.withLock { $0.epoch } == epoch }
        for phone in phones {
          let session = try phone.session
          let started: Int? = try await app.value("SELECT epoch FROM sessions WHERE id = \(session)")
          let status = started == epoch ? 200 : 401
          #expect(try await phone.send("GET", "users/me").status == status)
          #expect(try await phone.refresh().status == status)
        }
        let after = try await ana.signInAgain()
        #expect(try await after.send("GET", "users/me").status == 200)
        #expect(try await after.refresh().status == 200)
      }
    }
  }

  @Test func `an epoch that a restored backup has lost is not used again`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await endEveryones(app)
      let lost = try await ana.signInAgain()
      // Yesterday's dump has neither that epoch nor that session.
      let session = try lost.session
      try await app.database.execute("UPDATE session_epoch SET number = 0")
      try await app.database.execute("DELETE FROM sessions WHERE id = \(session)")
      _ = try await endEveryones(app)
      try await eventually { try await lost.send("GET", "users/me").problem == "session-ended" }
      #expect(try await lost.refresh().problem == "session-ended")
      _ = try await ana.signInAgain().get("users/me")
    }
  }

  @Test func `the command ends the sessions of one user or of everyone`() async throws {
    try await TestApp.run { app in
      func muster(_ arguments: String...) async throws -> Program {
        let program = try await Program(
          Program.path("muster"), ["sessions", "end"] + arguments,
          environment: ["DATABASE_URL": app.databaseURL], in: "/tmp")
        _ = try await program.exitStatus()
        return program
      }
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let tablet = try await ana.signInAgain()
      let one = try await muster("--user", "Ana")
      #expect(one.standardOutput == "ended 2 sessions of Ana\n", "\(one.standardError)")
      for phone in [ana, tablet] {
        try await eventually { try await phone.send("GET", "users/me").problem == "session-ended" }
      }
      _ = try await ben.get("users/me")
      let all = try await muster("--all")
      #expect(all.standardOutput.hasPrefix("ended all sessions\n"), "\(all.standardError)")
      try await eventually { try await ben.send("GET", "users/me").problem == "session-ended" }
      let unknown = try await muster("--user", "unknown")
      #expect(try await unknown.exitStatus() == 1)
      #expect(unknown.standardError.split(separator: "\n").count == 1)
      #expect(try await muster().exitStatus() == 64)
      #expect(try await muster("--all", "--user", "ana").exitStatus() == 64)
    }
  }
}
