import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// What a poll of the queue of notices finds, and what it costs.
@Suite struct FanOutPollingTests {
  private func queue(_ title: String, for user: Phone, in app: TestApp) async throws {
    try await app.database.change { $0.notify(user.userID, about: .invitationWithdrawn(.new(), title)) }
  }

  private func titles(of user: Phone) async throws -> [String] {
    try await user.get("notifications")["items"].array.compactMap { $0["title"].string }
  }

  /// Leaves a gap in the ids, as if more notices had been queued and fanned out.
  private func skippingIDs(_ count: Int) -> SQL {
    """
    SELECT setval(sequence, pg_sequence_last_value(sequence) + \(count))
    FROM (SELECT pg_get_serial_sequence('notification_queue', 'id')::regclass AS sequence) AS of_queue
    """
  }

  @Test func `an empty poll finds the newest notices, and a full one finds all`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await queue("Old", for: ana, in: app)
      try await app.database.execute(skippingIDs(FanOut.recentIDs))
      try await queue("New", for: ana, in: app)
      #expect(try await FanOut.step(isFull: false, in: app.database).notices == 1)
      #expect(try await titles(of: ana) == ["New"])
      #expect(try await FanOut.step(isFull: false, in: app.database).notices == 0)
      #expect(try await FanOut.step(in: app.database).notices == 1)
      #expect(try await titles(of: ana) == ["Old", "New"])
    }
  }

  @Test func `a worker finds a notice that only full polls find`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let running = Task { try await app.worker(Recorder()).run() }
      defer { running.cancel() }
      // The worker's first poll is full.
      try await queue("First", for: ana, in: app)
      try await eventually { try await titles(of: ana) == ["First"] }
      try await app.database.transaction { transaction in
        try await transaction.rows(
          NotificationQueue.insert(.invitationWithdrawn(.new(), "Old"), forUsersIn: "SELECT \(ana.userID)"))
        // Before the worker can see the row.
        try await transaction.rows(skippingIDs(2 * FanOut.recentIDs))
      }
      try await eventually { try await titles(of: ana).contains("Old") }
      running.cancel()
      try await running.value
    }
  }

  /// The number of pages that the real statement reads.
  private func pages(where condition: SQL, in app: TestApp) async throws -> Int {
    let statement = FanOut.statement(atMost: FanOut.subjectsPerStep, where: condition)
    let plan = try await app.database.batch(
      LeaseQueue.byIndex, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) \(statement)")[1].map { try $0[0] as String }
    // The first line with buffers is that of the whole statement.
    let line = try #require(plan.first { $0.contains("Buffers: shared") }, "\(plan)")
    return line.matches(of: /(?:hit|read)=(\d+)/).reduce(0) { $0 + (Int($1.1) ?? 0) }
  }

  @Test func `while an old transaction is open, a poll of the newest notices does not read those that are gone`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      try await holder.transaction(isolation: .repeatableRead) { transaction in
        try await transaction.rows("SELECT count(*) FROM users")
        try await app.database.batch(
          """
          INSERT INTO notification_queue (type, subject_id, recipient_ids, payload)
          SELECT 'event-cancelled', uuid_v7(), ARRAY[\(ana.userID)], '{}' FROM generate_series(1, 20000)
          """)
        try await app.database.execute("DELETE FROM notification_queue")
        let (recent, all) = (try await pages(where: FanOut.isRecent, in: app), try await pages(where: "true", in: app))
        #expect(recent * 5 < all, "\(recent) pages, and \(all) of a full poll")
      }
    }
  }
}
