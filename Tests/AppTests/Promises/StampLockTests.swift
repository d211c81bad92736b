import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Locks of stamps are the last that a transaction takes: in id order, and never across a round trip. `TouchTests` has
/// the same watch for every verb.
@Suite struct StampLockTests {
  // MARK: Round trips

  @Test func `a lock of stamps that is held across a round trip is noticed`() async throws {
    let watch = StampLockWatch()
    try await TestApp.run(logger: watch.logger) { app in
      let ana = try await app.signUp("ana")
      try await watch.run(in: app) {
        for strength in ["FOR UPDATE", "FOR KEY SHARE"] {
          try await app.service.change { change in
            try await change.rows(
              "SELECT FROM user_stamps WHERE user_id = \(ana.userID) \(unescaped: strength)")
            try await change.rows("SELECT 1")
          }
        }
      }
    }
    #expect(watch.looks == 2)
    #expect(watch.faults.count == 2)
  }

  @Test func `marking as read locks the stamps in the round trip of COMMIT`() async throws {
    let watch = StampLockWatch()
    try await TestApp.run(logger: watch.logger) { app in
      let ana = try await app.signUp("ana")
      // Another phone, whose badge changes.
      try await ana.signInAgain().register(.ios, token: String(repeating: "ab", count: 32))
      // With a key, the change has more than one round trip.
      for key in [false, true] {
        // The third needs two changes.
        for (count, body) in [(3, nil), (2, #"{"before": "2100-01-01T00:00:00Z"}"#), (1100, #"{"all": true}"#)] {
          try await app.fileNotifications(count, for: ana)
          let ids = try await ana.get("notifications?limit=3")["items"].array.compactMap { $0["id"].string }
          let these = #"{"ids": [\#(ids.map { "\"\($0)\"" }.joined(separator: ", "))]}"#
          let response = try await watch.run(in: app) {
            try await ana.send(
              "POST", "notifications/read", body ?? these,
              headers: key ? [("Idempotency-Key", UUID().uuidString)] : [])
          }
          #expect(response.status == 200 && response.json["unread"].int == 0, "\(response.body)")
          #expect(watch.faults == [])
        }
      }
      try await app.takeNotifications()
    }
  }

  @Test func `fan-out locks the stamps in the round trip of COMMIT`() async throws {
    let watch = StampLockWatch()
    try await TestApp.run(logger: watch.logger) { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(20, around: ana)
      try await ana.createEvent(inviting: guests)
      try await app.refuseFiling(of: "Bad")
      try await app.service.change { $0.notify(guests[0].userID, about: .invitationWithdrawn(.new(), "Bad")) }
      // Together with the bad one, then each alone, until the bad one is a dead letter.
      try await watch.run(in: app) {
        for _ in 0..<4 { _ = try await FanOut.step(in: app.service) }
        try await Stamps.move(in: app.service)
      }
      #expect(try await app.value("SELECT count(*) FROM notification_queue WHERE died_at IS NOT NULL") == 1)
      #expect(try await app.value("SELECT count(*) FROM notifications") == guests.count)
      try await app.database.execute("DELETE FROM notification_queue")
    }
    #expect(watch.faults == [])
  }

  // MARK: Order

  /// The two ways to name the users of a touch.
  enum Naming: String, CaseIterable, Sendable {
    case list, query

    func touch(_ users: [User.ID], in change: Change) {
      switch self {
      case .list: for user in users { change.touch(.friends, of: user) }
      case .query:
        change.touch(
          .friends, ofUsersIn: "SELECT id FROM unnest(\(users)) WITH ORDINALITY AS u (id, place) ORDER BY place DESC")
      }
    }
  }

  @Test(arguments: Naming.allCases)
  func `a change locks its users' stamps in id order`(naming: Naming) async throws {
    try await TestApp.run { app in
      let users = try await app.crowd(300, around: try await app.signUp("ana")).map(\.userID)
      let ordered = users.sorted { $0.description < $1.description }
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      let changing = try await holder.transaction { transaction in
        try await transaction.rows("SELECT FROM user_stamps WHERE user_id = \(ordered[150]) FOR UPDATE")
        let changing = Task { try await app.service.change { naming.touch(users, in: $0) } }
        try await app.waitForLocks(1)
        let free = try await transaction.rows(
          "SELECT user_id FROM user_stamps WHERE user_id = ANY(\(users)) ORDER BY user_id FOR UPDATE SKIP LOCKED")
        #expect(try free.map { try $0[0] as User.ID } == Array(ordered[150...]))
        return changing
      }
      try await changing.value
    }
  }

  @Test func `fan-out locks its recipients' stamps in id order`() async throws {
    try await TestApp.run { app in
      let users = try await app.crowd(300, around: try await app.signUp("ana")).map(\.userID)
      // The trigger runs for each row in the order of the statement.
      try await ScriptConnection.run(app.databaseURL) {
        try $0.script(
          """
          CREATE TABLE locked (place bigint GENERATED ALWAYS AS IDENTITY, user_id uuid);
          CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            INSERT INTO locked (user_id) VALUES (NEW.user_id);
            RETURN NEW;
          END
          $$;
          CREATE TRIGGER notes BEFORE INSERT ON user_stamps FOR EACH ROW EXECUTE FUNCTION note();
          """)
      }
      for part in [users.prefix(200), users.suffix(200)] {
        try await app.service.change { $0.notify(part.reversed(), about: .invitationWithdrawn(.new(), "Picnic")) }
      }
      #expect(try await FanOut.step(in: app.service).notices == 2)
      let locked: [User.ID] = try await app.database.rows("SELECT user_id FROM locked ORDER BY place").map { try $0[0] }
      // At most 100 recipients of a notice while another waits.
      #expect(locked.count >= 100)
      #expect(locked == locked.sorted { $0.description < $1.description })
      try await app.takeNotifications()
    }
  }

  @Test func `changes that touch the same users in opposite orders do not deadlock`() async throws {
    try await TestApp.run { app in
      let users = try await app.crowd(1500, around: try await app.signUp("ana")).map(\.userID)
      let shared = Array(users.suffix(50))
      // Each lock takes a while.
      try await ScriptConnection.run(app.databaseURL) {
        try $0.script(
          """
          CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            PERFORM pg_sleep(0.002);
            RETURN NEW;
          END
          $$;
          CREATE TRIGGER pauses BEFORE UPDATE ON user_stamps FOR EACH ROW EXECUTE FUNCTION pause();
          """)
      }
      let attempts = Lock(0)
      let changes: [(Naming, [User.ID])] = [
        (.list, shared), (.query, shared), (.list, shared.reversed()), (.query, Array(users.suffix(300))),
      ]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (naming, touched) in changes {
          group.addTask {
            for _ in 0..<3 {
              try await app.service.change { change in
                attempts.withLock { $0 += 1 }
                naming.touch(touched, in: change)
              }
            }
          }
        }
        try await group.waitForAll()
      }
      // A deadlock repeats a change.
      #expect(attempts.withLock { $0 } == 3 * changes.count)
    }
  }
}
