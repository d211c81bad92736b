import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The results of polling the queue of notices, and their cost.
@Suite struct FanOutPollingTests {
  private func queue(_ title: String, for user: Phone, in app: TestApp) async throws {
    try await app.service.change { $0.notify(user.userID, about: .invitationWithdrawn(.new(), title)) }
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
      #expect(try await FanOut.step(.recent, in: app.service).notices == 1)
      #expect(try await titles(of: ana) == ["New"])
      #expect(try await FanOut.step(.recent, in: app.service).notices == 0)
      #expect(try await FanOut.step(in: app.service).notices == 1)
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

  /// The number of pages that a step reads.
  private func pages(_ scope: FanOut.Scope, in app: TestApp) async throws -> Int {
    try await pages(of: FanOut.statement(scope), in: app)
  }

  private func plan(of statement: SQL, in app: TestApp) async throws -> String {
    try await app.database.batch(
      LeaseQueue.byIndex, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) \(statement)")[1]
      .map { try $0[0] as String }.joined(separator: "\n")
  }

  private func pages(of statement: SQL, in app: TestApp) async throws -> Int {
    let plan = try await plan(of: statement, in: app)
    // The first line with buffers is that of the whole statement.
    let line = try #require(plan.split(separator: "\n").first { $0.contains("Buffers: shared") }, "\(plan)")
    return line.matches(of: /(?:hit|read)=(\d+)/).reduce(0) { $0 + (Int($1.1) ?? 0) }
  }

  @Test func `while an old transaction is open, a poll of the newest notices does not read those that are gone`()
    async throws
  {
    try await TestApp.run(isShared: false) { app in
      let ana = try await app.signUp("ana")
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      try await holder.transaction(isolation: .repeatableRead) { transaction in
        try await transaction.rows("SELECT count(*) FROM users")
        try await app.database.batch(
          """
          INSERT INTO notification_queue (type, subject_id, recipient_ids, payload)
          SELECT 'event-cancelled', uuid_v7(), ARRAY[\(ana.userID)], '{}' FROM generate_series(1, 40000)
          """)
        try await app.database.execute("DELETE FROM notification_queue")
        let (recent, all) = (
          try await pages(.recent, in: app), try await pages(.oldest, in: app)
        )
        #expect(recent * 5 < all, "\(recent) pages, and \(all) of a full poll")
      }
    }
  }

  /// Queues notices without a worker, in turns about each subject.
  private func queue(_ notices: Int, aboutEachOf subjects: Int, for user: Phone, in app: TestApp) async throws {
    try await app.database.batch(
      """
      INSERT INTO notification_queue (type, subject_id, recipient_ids, payload)
      SELECT 'event-cancelled', subject, ARRAY[\(user.userID)], '{"title": "Picnic"}'
      FROM generate_series(1, \(notices)) AS notice
      CROSS JOIN (SELECT uuid_v7() AS subject FROM generate_series(1, \(subjects))) AS each
      ORDER BY notice
      """)
  }

  @Test func `a step reads few pages, however many notices wait about a few subjects`() async throws {
    try await TestApp.run(isShared: false) { app in
      let ana = try await app.signUp("ana")
      try await queue(500, aboutEachOf: 16, for: ana, in: app)
      // A thousand notices, each with a search for an older one about its subject, and the items of a hundred.
      for scope in [.oldest, .after(3000)] as [FanOut.Scope] {
        let read = try await pages(scope, in: app)
        #expect(read < 10_000, "\(read) pages")
      }
      try await app.database.execute("DELETE FROM notification_queue")
    }
  }

  @Test(arguments: [(1, 3_000), (FanOut.deliveriesPerSubject, 15_000)])
  func `a claim reads few pages, however many deliveries wait`(perSubject count: Int, limit: Int) async throws {
    try await TestApp.run(isShared: false) { app in
      try await app.gatherReaders(8)
      try await app.database.batch(
        """
        INSERT INTO deliveries (notification_id, recipient_id, device_id, type, subject_id, payload, created_at)
        SELECT uuid_v7(), user_id, id, 'event-cancelled', md5((place / \(count))::text)::uuid, '{}', now()
        FROM generate_series(0, 499) AS place CROSS JOIN devices
        ORDER BY place
        """,
        "ANALYZE deliveries")
      let claiming = Delivery.queue.claiming(.all, atMost: 100, for: UUID(), lease: UUID())
      let read = try await pages(of: claiming, in: app)
      #expect(read < limit, "\(read) pages")
    }
  }

  @Test func `without statistics, PostgreSQL looks devices up by user, and sessions by device`() async throws {
    try await TestApp.run(isShared: false) { app in
      try await app.gatherReaders(2000)
      let plan = try await plan(of: FanOut.statement(.oldest), in: app)
      #expect(plan.contains("devices_of_user") && plan.contains("sessions_pkey"), "\(plan)")
      #expect(!plan.contains("open_sessions_by_epoch"), "\(plan)")
    }
  }

  @Test func `a step knows whether it left notices that it could have taken`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await queue(300, aboutEachOf: 1, for: ana, in: app)
      try await queue(1, aboutEachOf: 1, for: ana, in: app)
      let first = try await FanOut.step(in: app.service)
      // A step takes up to 50 notices about each of two subjects, and the second one has a single notice.
      #expect(first.notices < FanOut.subjectsPerStep && first.isAtLimit)
      try await FanOut.drain(app.database)
      #expect(try await !FanOut.step(in: app.service).isAtLimit)
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE recipient_id = \(ana.userID)") == 301)
    }
  }

  @Test func `a notice does not wait for a thousand older ones about another subject`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let count = 2 * FanOut.window
      try await queue(count, aboutEachOf: 1, for: ana, in: app)
      try await queue("Middle", for: ben, in: app)
      try await app.database.execute(skippingIDs(2 * FanOut.recentIDs))
      // Neither among the oldest nor among the newest.
      let oldest = try await FanOut.step(in: app.service)
      #expect(oldest.notices > 0 && oldest.end != nil)
      #expect(try await FanOut.step(.recent, in: app.service).notices == 0)
      #expect(try await titles(of: ben).isEmpty)
      // The next windows have it.
      var place = oldest.end
      while let start = place { place = try await FanOut.step(.after(start), in: app.service).end }
      #expect(try await titles(of: ben) == ["Middle"])
      try await FanOut.drain(app.database)
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE recipient_id = \(ana.userID)") == count)
    }
  }

  @Test func `a worker finds notices in the middle of a long queue whose front is locked`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await queue(2 * FanOut.window, aboutEachOf: 1, for: ana, in: app)
      try await queue("Middle", for: ben, in: app)
      try await app.database.execute(skippingIDs(2 * FanOut.recentIDs))
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      try await holder.transaction { transaction in
        // As if another worker had the first subject.
        try await transaction.rows("SELECT id FROM notification_queue ORDER BY id LIMIT 1 FOR UPDATE")
        let worker = app.worker(Channels(app.dependencies))
        let running = Task { try await worker.run() }
        try await eventually { try await titles(of: ben) == ["Middle"] }
        running.cancel()
        try await running.value
      }
      try await FanOut.drain(app.database)
      #expect(try await app.value("SELECT count(*) FROM notification_queue") == 0)
    }
  }
}
