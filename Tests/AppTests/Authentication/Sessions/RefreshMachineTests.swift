import Foundation
import Postgres
import Testing

@testable import App

/// The rules of the refresh token, one by one. Tests compare the `counter, branch` of the tokens that are sent and
/// returned, and set the clock.
@Suite struct RefreshMachineTests {
  /// One session. Times are seconds since its start.
  private struct Machine {
    let app: TestApp
    let sessions: StoredSessions
    let keys: SigningKeys
    let first: RefreshToken
    let start: Timestamp

    init(_ app: TestApp) async throws {
      self.app = app
      sessions = StoredSessions(database: app.service, user: try await app.signUp("ana").userID)
      keys = app.dependencies.refreshTokenKeys
      start = .now()
      first = try await sessions.logIn(at: start, keys: keys)
    }

    func show(
      _ token: RefreshToken, at seconds: Int, and microseconds: Int64 = 0, keys: SigningKeys? = nil
    ) async throws -> RefreshOutcome {
      let now = start.adding(seconds: seconds).adding(microseconds: microseconds)
      return try await sessions.show(token, at: now, keys: keys ?? self.keys)
    }

    func token(_ counter: Int, _ branch: Int) -> RefreshToken {
      RefreshToken(session: first.session, counter: counter, branch: branch, kid: first.kid)
    }

    func given(_ counter: Int, _ branch: Int) -> RefreshOutcome {
      .given(token(counter, branch))
    }

    /// Counter, branch, parent's branch, and the time of the last rotation.
    func row() async throws -> [Int] {
      let row = try #require(
        try await app.database.first(
          "SELECT counter, branch, parent_branch, rotated_at FROM sessions WHERE id = \(first.session)"))
      let rotatedAt: Timestamp = try row["rotated_at"]
      let seconds = Int((rotatedAt.microseconds - start.microseconds) / 1_000_000)
      return [try row["counter"], try row["branch"], try row["parent_branch"], seconds]
    }
  }

  // MARK: The current token, and its parent

  @Test func `each refresh issues the next token, and updates the session's one row`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      #expect(try await machine.row() == [0, 0, 0, 0])
      #expect(try await machine.show(machine.first, at: 1) == machine.given(1, 0))
      #expect(try await machine.row() == [1, 0, 0, 1])
      #expect(try await machine.show(machine.token(1, 0), at: 2) == machine.given(2, 0))
      #expect(try await machine.row() == [2, 0, 0, 2])
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE id = \(machine.first.session)") == 1)
    }
  }

  @Test func `a lost response is repeated, and after a while replaced`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      _ = try await machine.show(machine.first, at: 0)
      #expect(try await machine.show(machine.first, at: 9, and: 999_999) == machine.given(1, 0))
      #expect(try await machine.row() == [1, 0, 0, 0])
      #expect(try await machine.show(machine.first, at: 10) == machine.given(1, 1))
      #expect(try await machine.row() == [1, 1, 0, 10])
      // Within 10 s of that, the same token again; then another one.
      #expect(try await machine.show(machine.first, at: 19, and: 999_999) == machine.given(1, 1))
      #expect(try await machine.show(machine.first, at: 20) == machine.given(1, 2))
      #expect(try await machine.show(machine.token(1, 2), at: 30) == machine.given(2, 0))
      #expect(try await machine.row() == [2, 0, 2, 30])
    }
  }

  @Test func `a clock that is set back loses no response`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      _ = try await machine.show(machine.first, at: 100)
      #expect(try await machine.show(machine.first, at: 50) == machine.given(1, 0))
      #expect(try await machine.show(machine.token(1, 0), at: 40) == machine.given(2, 0))
      #expect(try await machine.show(machine.token(1, 0), at: 49) == machine.given(2, 0))
      #expect(try await machine.show(machine.token(1, 0), at: 50) == machine.given(2, 1))
    }
  }

  // MARK: Theft

  @Test func `a superseded branch counts as theft, but the true parent does not`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      _ = try await machine.show(machine.first, at: 0)  // (1,0), lost
      _ = try await machine.show(machine.first, at: 11)  // (1,1)
      _ = try await machine.show(machine.token(1, 1), at: 12)  // (2,0), lost
      #expect(try await machine.show(machine.token(1, 1), at: 13) == machine.given(2, 0))
      #expect(try await machine.show(machine.token(1, 0), at: 14) == .theft)
      // The session has ended for everyone.
      #expect(try await machine.show(machine.token(2, 0), at: 15) == .ended)
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["session-revoked"])
      #expect(received.first?.payload["sessionId"].string == machine.first.session.description)
    }
  }

  @Test func `a superseded branch counts as theft even while its replacement is unused`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      _ = try await machine.show(machine.first, at: 0)  // (1,0)
      _ = try await machine.show(machine.first, at: 11)  // (1,1)
      #expect(try await machine.show(machine.token(1, 0), at: 12) == .theft)
      #expect(try await machine.show(machine.token(1, 1), at: 13) == .ended)
      #expect(try await app.takeNotifications().count == 1)
    }
  }

  @Test func `an older token counts as theft, even within seconds`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      _ = try await machine.show(machine.first, at: 0)
      _ = try await machine.show(machine.token(1, 0), at: 1)
      #expect(try await machine.show(machine.first, at: 2) == .theft)
      #expect(try await machine.show(machine.token(2, 0), at: 3) == .ended)
      #expect(try await app.takeNotifications().count == 1)
    }
  }

  @Test func `a theft is recorded with its notification or not at all`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      _ = try await machine.show(machine.first, at: 0)
      _ = try await machine.show(machine.token(1, 0), at: 1)
      try await app.database.execute(
        "ALTER TABLE notification_queue ADD CONSTRAINT no_news CHECK (type <> 'session-revoked')")
      await #expect(throws: PostgresError.self) { _ = try await machine.show(machine.first, at: 2) }
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL") == 0)
      try await app.database.execute("ALTER TABLE notification_queue DROP CONSTRAINT no_news")
      #expect(try await machine.show(machine.first, at: 2) == .theft)
      #expect(try await app.value("SELECT count(*) FROM sessions WHERE ended_at IS NOT NULL") == 1)
      #expect(try await app.takeNotifications().map(\.type) == ["session-revoked"])
    }
  }

  // MARK: Restored backups

  @Test func `a token ahead of the row is genuine, and becomes current`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      #expect(try await machine.show(machine.token(7, 2), at: 1) == machine.given(8, 0))
      #expect(try await machine.row() == [8, 0, 2, 1])
      #expect(try await machine.show(machine.token(7, 2), at: 2) == machine.given(8, 0))
      // Ahead only by its branch.
      #expect(try await machine.show(machine.token(8, 3), at: 3) == machine.given(9, 0))
      #expect(try await machine.show(machine.token(8, 3), at: 14) == machine.given(9, 1))
      // From then on, the tokens that it has overtaken count as older.
      #expect(try await machine.show(machine.token(8, 0), at: 15) == .theft)
      #expect(try await app.takeNotifications().count == 1)
    }
  }

  // MARK: Lifetime

  @Test func `a session ends after 60 idle days`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      let day = 86_400
      #expect(try await machine.show(machine.first, at: 60 * day, and: -1) == machine.given(1, 0))
      // A retry counts as use; a repeated response does not.
      #expect(try await machine.show(machine.first, at: 60 * day + 9) == machine.given(1, 0))
      #expect(try await machine.show(machine.first, at: 119 * day) == machine.given(1, 1))
      #expect(try await machine.show(machine.token(1, 1), at: 179 * day) == .ended)
      #expect(try await machine.show(machine.token(1, 1), at: 179 * day, and: -1) == machine.given(2, 0))
    }
  }

  @Test func `a session ends after a year, however busy`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      let day = 86_400
      for step in 0..<9 { _ = try await machine.show(machine.token(step, 0), at: 40 * (step + 1) * day) }
      #expect(try await machine.show(machine.token(9, 0), at: 365 * day) == .ended)
      #expect(try await machine.show(machine.token(9, 0), at: 365 * day, and: -1) == machine.given(10, 0))
      // The session has expired, it was not stolen: there is no notification, whatever token is sent.
      #expect(try await machine.show(machine.first, at: 365 * day) == .ended)
    }
  }

  // MARK: Keys

  @Test func `tokens of a rotated key are accepted, and a repeated response keeps its signing key`() async throws {
    try await TestApp.run { app in
      let machine = try await Machine(app)
      let (old, fresh) = (TestApp.refreshTokenKeys, SigningKeys.generate())
      let new = try SigningKeys("\(fresh),\(old)")
      func signedAnew(_ counter: Int, _ branch: Int) -> RefreshToken {
        RefreshToken(session: machine.first.session, counter: counter, branch: branch, kid: new.signing.kid)
      }
      #expect(try await machine.show(machine.first, at: 0) == machine.given(1, 0))
      #expect(try await machine.show(machine.first, at: 5, keys: new) == machine.given(1, 0))
      #expect(try await machine.show(machine.token(1, 0), at: 6, keys: new) == .given(signedAnew(2, 0)))
      #expect(try await machine.show(machine.token(1, 0), at: 7, keys: new) == .given(signedAnew(2, 0)))
      // A process that still signs with the old key.
      let appended = try SigningKeys("\(old),\(fresh)")
      #expect(try await machine.show(machine.token(1, 0), at: 8, keys: appended) == .given(signedAnew(2, 0)))
      #expect(try await machine.show(machine.token(1, 0), at: 20, keys: appended) == machine.given(2, 1))
      #expect(try await machine.show(machine.token(2, 1), at: 21, keys: new) == .given(signedAnew(3, 0)))
      #expect(try await app.value("SELECT kid FROM sessions WHERE id = \(machine.first.session)") == new.signing.kid)
    }
  }
}
