import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct DeadLetterTests {
  /// Makes everything in the queue a dead letter.
  private func refuseAll(_ app: TestApp) async throws {
    try await app.worker(Recorder { _, _ in throw DeliveryFailure.refused }).runOnce()
  }

  @Test func `dead letters are retried as if new, and delivered to their own device`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2, devices: 2)
      try await app.enqueue(rounds: 0..<2, to: 2)
      try await refuseAll(app)
      #expect(try await app.countDead() == 8)
      #expect(try await app.countQueue() == 0)
      try await app.database.execute("UPDATE deliveries SET created_at = now() - interval '3 days', deaths = 2")
      let one: Int64 = try #require(try await app.value("SELECT min(id) FROM deliveries"))
      let ids = ["deliveries/\(one)", "deliveries/4711", "mails/\(one)"].compactMap { QueueRow.ID($0) }
      #expect(ids.count == 3)
      #expect(try await DeadLetters.retry(ids, in: app.service) == 1)
      #expect(try await DeadLetters.retry(ofType: "other", in: app.service) == 0)
      #expect(
        try await app.value(
          """
          SELECT count(*) FROM deliveries
          WHERE died_at IS NULL AND attempts = 0 AND deaths = 0 AND last_error IS NULL AND created_at = due_at
          """) == 1)
      #expect(try await DeadLetters.retry(ofType: "test", in: app.service) == 7)
      #expect(try await app.countDead() == 0)
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      for token in ["1-1", "1-2", "2-1", "2-2"] { #expect(recorder.rounds(token) == [0, 1], "\(token)") }
      #expect(try await DeadLetters.retry(in: app.service) == 0)
    }
  }

  @Test func `a retry takes many rows, but none of those that die again meanwhile`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(subjects: 1203, to: 1)
      try await app.database.execute("UPDATE deliveries SET died_at = now()")
      let refusing = Task { try await app.worker(Recorder { _, _ in throw DeliveryFailure.refused }).run() }
      #expect(try await DeadLetters.retry(in: app.service) == 1203)
      try await eventually(within: .seconds(120)) {
        try await app.hurry()
        return try await app.countQueue() == 0
      }
      refusing.cancel()
      try await refusing.value
      #expect(try await app.countDead() == 1203)
      try await app.forgetDeliveries()
    }
  }

  /// Deletes waiting rows, as a block, a cancellation and a deletion do.
  private static let deletion: SQL = """
    DELETE FROM deliveries
    WHERE id IN (SELECT id FROM deliveries WHERE recipient_id = md5('r1')::uuid ORDER BY id FOR UPDATE)
    """

  @Test func `a change that deletes a dead letter wins against its retry, whichever comes first`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      let other = try Database(Database.Configuration(url: app.databaseURL))
      defer { other.close() }
      // The deletion has the row, and the retry skips it.
      try await app.enqueue(rounds: 0..<1, to: 1)
      try await app.database.execute("UPDATE deliveries SET died_at = now()")
      try await other.transaction { transaction in
        try await transaction.rows(Self.deletion)
        #expect(try await DeadLetters.retry(in: app.service) == 0)
      }
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 0)
      // The retry has the row, and the deletion waits for it.
      try await app.enqueue(rounds: 0..<1, to: 1)
      try await app.database.execute("UPDATE deliveries SET died_at = now()")
      try await app.database.execute(
        """
        CREATE FUNCTION pause() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock(1);
          RETURN new;
        END
        $$
        """)
      try await app.database.execute(
        "CREATE TRIGGER pause BEFORE UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION pause()")
      let (retrying, deleting) = try await other.transaction { transaction in
        try await transaction.rows("SELECT pg_advisory_xact_lock(1)")
        let retrying = Task { try await DeadLetters.retry(in: app.service) }
        try await app.waitForLocks(1)
        let deleting = Task { try await app.database.execute(Self.deletion).affected }
        try await app.waitForLocks(2)
        return (retrying, deleting)
      }
      #expect(try await retrying.value == 1)
      #expect(try await deleting.value == 1)
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 0)
    }
  }

  @Test func `dead letters are deleted after 30 days, and inbox items after 120 with a new stamp`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await app.gatherReaders(2)
      try await app.enqueue(rounds: 0..<1, to: 2)
      try await refuseAll(app)
      try await app.database.execute(
        "UPDATE deliveries SET died_at = now() - interval '29 days 23 hours' WHERE recipient_id = md5('r1')::uuid")
      try await app.database.execute(
        "UPDATE deliveries SET died_at = now() - interval '30 days 1 hour' WHERE recipient_id = md5('r2')::uuid")
      // Ben got the request, and Ana his acceptance.
      try await app.worker(Recorder()).runOnce()
      #expect(try await app.value("SELECT count(*) FROM notifications") == 2)
      try await app.database.execute(
        """
        UPDATE notifications
        SET filed_at = now() - make_interval(days => CASE WHEN recipient_id = \(ana.userID) THEN 89 ELSE 121 END)
        """)
      try await app.database.execute("UPDATE user_stamps SET inbox_floor = '-infinity'")
      func stamp(_ phone: Phone) async throws -> Timestamp? {
        try await app.value(
          "SELECT notifications FROM user_stamps WHERE user_id = \(phone.userID)")
      }
      let before = (ana: try await stamp(ana), ben: try await stamp(ben))
      await app.keepHouse()
      #expect(try await app.countDead() == 1)
      let left: User.ID? = try await app.value("SELECT recipient_id FROM notifications")
      #expect(left == ana.userID)
      let after = (ana: try await stamp(ana), ben: try await stamp(ben))
      #expect(after.ana == before.ana)
      #expect(after.ben != before.ben)
      try await app.forgetDeliveries()
    }
  }

  // MARK: Deleted and hidden users

  @Test func `deleting an account also deletes its dead letters, its inbox and items that name it`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for (phone, token) in [(ana, "anas"), (ben, "bens")] { try await phone.addDevice(token) }
      let event = try await ana.createEvent("Picnic", inviting: [ben])["id"].string ?? ""
      try await ben.answer("going", to: event)
      try await refuseAll(app)
      #expect(try await app.countDead() == 2)
      func stamp() async throws -> Timestamp? {
        try await app.value(
          "SELECT notifications FROM user_stamps WHERE user_id = \(ana.userID)")
      }
      let before = try await stamp()
      try await ben.deleteAccount()
      #expect(try await app.countDead() == 0)
      let named: Int? = try await app.value(
        "SELECT count(*) FROM notifications WHERE recipient_id = \(ben.userID) OR person_id = \(ben.userID)")
      #expect(named == 0)
      #expect(try await app.value("SELECT count(*) FROM devices") == 1)
      #expect(try await stamp() != before)
    }
  }

  @Test func `a block deletes the dead letters between the two users, and no others`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ben, cleo)
      for (phone, token) in [(ana, "anas"), (ben, "bens"), (cleo, "cleos")] { try await phone.addDevice(token) }
      let event = try await ben.createEvent("Picnic", inviting: [ana, cleo])["id"].string ?? ""
      try await ana.answer("maybe", to: event)
      try await cleo.answer("going", to: event)
      try await refuseAll(app)
      #expect(try await app.countDead() == 4)
      try await ana.block(ben)
      let left = try await app.database.rows("SELECT recipient_id, person_id FROM deliveries ORDER BY id")
      #expect(left.count == 2)
      for row in left {
        let people: [User.ID?] = [try row["recipient_id"], try row["person_id"]]
        #expect(!people.contains(ana.userID))
      }
      try await app.takeNotifications()
    }
  }

  @Test func `an account that is deleted while its notifications fail leaves nothing behind`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let cleo = try await app.signUp("cleo")
      for round in 0..<8 {
        let ana = try await app.signUp("ana\(round)")
        for device in 0..<3 { try await ana.addDevice("\(round)-\(device)") }
        try await app.befriend(ana, cleo)
        for number in 0..<4 { try await cleo.createEvent("Event \(number)", inviting: [ana]) }
        let recorder = Recorder { _, device in throw device.token.hasSuffix("2") ? DeliveryFailure.refused : .down }
        let workers = (0..<2).map { _ in Task { try await app.worker(recorder).run() } }
        if round.isMultiple(of: 2) { try await eventually { recorder.begun > 0 } }
        try await ana.deleteAccount()
        for worker in workers {
          worker.cancel()
          try await worker.value
        }
        let left: Int? = try await app.value(
          "SELECT count(*) FROM deliveries WHERE recipient_id = \(ana.userID) OR person_id = \(ana.userID)")
        #expect(left == 0, "round \(round)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `the export has waiting notices and dead letters`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ana.addDevice("anas")
      try await ben.createEvent("Given up", inviting: [ana])
      try await refuseAll(app)
      try await ben.createEvent("Waiting", inviting: [ana])
      let export = try await ana.get("users/me/export")
      func titles(_ section: String) -> [String?] { export[section].array.map { $0["payload"]["title"].string } }
      #expect(titles("deliveries") == ["Given up"])
      #expect(export["deliveries"][0]["diedAt"].string?.hasSuffix("Z") == true)
      #expect(titles("queuedNotices") == ["Waiting"])
      try await app.takeNotifications()
    }
  }
}
