import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Claims, leases and worker deaths, tested with one queue.
@Suite struct LeaseQueueTests {
  private let queue = Delivery.queue

  private func claim(
    _ app: TestApp, _ worker: UUID, _ scope: LeaseQueue.Scope = .all, lease: UUID = UUID()
  ) async throws -> LeaseQueue.Claim {
    // A worker claims one suspect at a time.
    let limit = if case .suspect = scope { 1 } else { 10 }
    return try await queue.claim(scope, atMost: limit, for: worker, lease: lease, in: app.service)
  }

  /// A worker that has been alive for a while.
  private func living(_ app: TestApp) async throws -> UUID {
    let worker = UUID()
    try await app.database.batch(
      Heartbeat.writing(of: worker),
      "UPDATE workers SET steady_since = now() - interval '1 minute' WHERE id = \(worker)")
    return worker
  }

  private func expire(_ app: TestApp) async throws {
    try await app.database.execute(
      "UPDATE deliveries SET leased_until = now() - interval '1 second' WHERE lease IS NOT NULL")
  }

  /// Runs a worker until no delivery is left.
  private func deliverAll(from source: Dispatcher.Source, atOnce concurrency: Int, _ app: TestApp) async throws {
    let dispatcher = Dispatcher([source], concurrency: concurrency, database: app.service, logger: .quiet)
    let running = Task { try await dispatcher.run(.untilStopped) }
    defer { running.cancel() }
    try await eventually { try await app.value("SELECT count(*) FROM deliveries") == 0 }
    running.cancel()
    _ = await running.result
  }

  @Test func `a worker that claims a row again, because its own lease has expired, sends it by the later claim`()
    async throws
  {
    struct Late: Error {}
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let prepared = Lock<[[LeasedRow.Lease]]>([])
      let source = Dispatcher.Source(queue: queue, policy: DeliveryState.Policy(patience: 60)) { rows in
        let claims = prepared.withLock { prepared in
          prepared.append(rows.map(\.lease))
          return Set(prepared.joined().map(\.token)).count
        }
        if claims < 2 {
          try await expire(app)
          throw Late()
        }
        let send = Dispatcher.Send(channel: .log) {}
        return Dictionary(rows.map { ($0.id, .send(send)) }) { first, _ in first }
      }
      try await deliverAll(from: source, atOnce: 1, app)
      #expect(prepared.withLock { $0 }.allSatisfy { $0.count == 1 })
    }
  }

  @Test func `a worker that claims a row again while it sends it does not send it twice`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<2, to: 1)
      let lease: SQL = "SELECT lease::text FROM deliveries ORDER BY id LIMIT 1"
      let sent = Lock<[Int64]>([])
      let source = Dispatcher.Source(queue: queue, policy: DeliveryState.Policy(patience: 60)) { rows in
        Dictionary(
          uniqueKeysWithValues: rows.map { row in
            let send = Dispatcher.Send(channel: .log) {
              let isFirst = sent.withLock { sent in
                sent.append(row.id)
                return sent.count == 1
              }
              guard isFirst else { return }
              let first: String? = try await app.value(lease)
              try await expire(app)
              try await eventually { try await app.value(lease) != first }
            }
            return (row.id, .send(send))
          })
      }
      try await deliverAll(from: source, atOnce: 4, app)
      #expect(sent.withLock { $0.count } == 2 && Set(sent.withLock { $0 }).count == 2)
    }
  }

  /// The fate of the first acknowledgement, before it deletes anything.
  enum Delay: String, CaseIterable, Sendable {
    case isRefused, waits
  }

  @Test(arguments: Delay.allCases)
  func `a worker that claims a row again after it has sent it does not send it twice`(delay: Delay) async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<2, to: 1)
      try await ScriptConnection.run(app.databaseURL) {
        try $0.script(
          """
          CREATE TABLE refusals ();
          CREATE FUNCTION delay() RETURNS trigger LANGUAGE plpgsql AS $$
          BEGIN
            IF EXISTS (SELECT FROM refusals) THEN
              RAISE EXCEPTION 'not now';
            END IF;
            PERFORM pg_advisory_xact_lock_shared(7);
            RETURN NULL;
          END
          $$;
          CREATE TRIGGER delays BEFORE DELETE ON deliveries FOR EACH STATEMENT EXECUTE FUNCTION delay();
          """)
      }
      let lease: SQL = "SELECT lease::text FROM deliveries ORDER BY id LIMIT 1"
      let (sent, first) = (Lock<[Int64]>([]), Lock<String?>(nil))
      let source = Dispatcher.Source(queue: queue, policy: DeliveryState.Policy(patience: 60)) { rows in
        first.withLock { $0 = $0 ?? rows.first?.lease.token.uuidString.lowercased() }
        return Dictionary(
          uniqueKeysWithValues: rows.map { row in
            (row.id, .send(Dispatcher.Send(channel: .log) { sent.withLock { $0.append(row.id) } }))
          })
      }
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      let dispatcher = Dispatcher([source], concurrency: 1, database: app.service, logger: .quiet)
      let running = try await holder.transaction { transaction in
        if delay == .waits {
          try await transaction.rows("SELECT pg_advisory_xact_lock(7)")
        } else {
          try await app.database.execute("INSERT INTO refusals DEFAULT VALUES")
        }
        let running = Task { try await dispatcher.run(.untilStopped) }
        try await eventually { sent.withLock { !$0.isEmpty } }
        if delay == .waits { try await app.waitForLocks(1) }
        // The worker renews its leases meanwhile.
        try await eventually {
          try await expire(app)
          return try await app.value(lease) != first.withLock { $0 }
        }
        try await app.database.execute("DELETE FROM refusals")
        return running
      }
      defer { running.cancel() }
      try await eventually { try await app.value("SELECT count(*) FROM deliveries") == 0 }
      running.cancel()
      _ = await running.result
      #expect(sent.withLock { $0.count } == 2 && Set(sent.withLock { $0 }).count == 2)
    }
  }

  @Test func `a worker that is cancelled during a claim waits for it, and gives back its rows`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<2, to: 1)
      let source = Dispatcher.Source(queue: queue, policy: DeliveryState.Policy(patience: 60)) { _ in [:] }
      let dispatcher = Dispatcher([source], concurrency: 1, database: app.service, logger: .quiet)
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      let locking: SQL = "LOCK TABLE deliveries IN EXCLUSIVE MODE"
      let running = try await holder.transaction { transaction in
        try await transaction.rows(locking)
        let running = Task { try await dispatcher.run(.untilStopped) }
        try await app.waitForLocks(1)
        running.cancel()
        return running
      }
      _ = try await running.value
      // Comes after a claim that has outlived its worker.
      try await holder.transaction { _ = try await $0.rows(locking) }
      let rows = try await app.database.rows(
        """
        SELECT worker_id IS NOT NULL AS was_claimed, lease IS NULL AS is_free, due_at <= now() AS is_due, attempts,
          deaths
        FROM deliveries
        """)
      #expect(rows.count == 2)
      #expect(try rows.allSatisfy { try $0["was_claimed"] && $0["is_free"] && $0["is_due"] })
      #expect(try rows.allSatisfy { try $0["attempts"] == 0 && $0["deaths"] == 0 })
      #expect(try await app.value("SELECT count(*) FROM workers") == 0)
      try await app.forgetDeliveries()
    }
  }

  @Test func `a row that is claimed again while it is read again is sent immediately`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let lease: SQL = "SELECT lease::text FROM deliveries"
      let reads = Lock<[String]>([])
      let second = Lock<String?>(nil)
      let source = Dispatcher.Source(queue: queue, policy: DeliveryState.Policy(patience: 60)) { rows in
        let isFirst = reads.withLock { reads in
          reads += rows.map { $0.lease.token.uuidString.lowercased() }
          return reads.count == 1
        }
        if isFirst {
          // The reading finds nothing under the first lease.
          let first: String? = try await app.value(lease)
          try await expire(app)
          try await eventually { try await app.value(lease) != first }
          let again: String? = try await app.value(lease)
          second.withLock { $0 = again }
          // The result of the claim reaches the worker.
          try await Task.sleep(for: .milliseconds(100))
          return [:]
        }
        return Dictionary(
          uniqueKeysWithValues: rows.map { ($0.id, .send(Dispatcher.Send(channel: .log) {})) })
      }
      try await deliverAll(from: source, atOnce: 1, app)
      // Otherwise the row would have waited for the end of its lease, and been claimed a third time.
      #expect(reads.withLock { $0.count } == 2 && reads.withLock { $0.last } == second.withLock { $0 })
    }
  }

  @Test func `a claim of rows that another worker has just freed also has the oldest row`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<4, to: 1)
      let worker = try await living(app)
      // A claim from this view can be interrupted.
      let slow = LeaseQueue(table: "slow_deliveries", chain: queue.chain, columns: queue.columns)
      try await app.createWaiting()
      try await app.database.batch(
        "CREATE VIEW slow_deliveries AS SELECT * FROM deliveries WHERE waited()",
        // Leased by a worker that has died.
        """
        UPDATE deliveries
        SET lease = gen_random_uuid(), worker_id = gen_random_uuid(), leased_until = now() - interval '1 second'
        """)
      let ids: [Int64] = try await app.database.rows("SELECT id FROM deliveries ORDER BY id").map { try $0[0] }
      #expect(ids.count == 4)
      let claim = try await app.interrupting {
        try await slow.claim(.all, atMost: 10, for: worker, lease: UUID(), in: app.service)
      } with: {
        // Another worker counts the death, and frees the oldest two.
        try await app.database.execute(
          "UPDATE deliveries SET lease = NULL, leased_until = NULL, deaths = 1 WHERE id = ANY(\(Array(ids.prefix(2))))")
      }
      #expect(claim.runs.map { $0.map(\.id) } == [ids])
    }
  }

  @Test func `after its lease has expired, a worker can no longer acknowledge`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let (slow, other) = (try await living(app), try await living(app))
      let leased = try #require(try await claim(app, slow).runs.first)
      #expect(leased.count == 1)
      #expect(try await claim(app, other).runs.isEmpty)
      try await expire(app)
      // The first worker lives, so no death is counted.
      let lease = UUID()
      let taken = try #require(try await claim(app, other, lease: lease).runs.first)
      #expect(taken.map(\.id) == leased.map(\.id))
      var late = Acknowledgements()
      late.finish(leased[0])
      late.retry(leased[0], after: 0, because: "late")
      late.discard(leased[0], because: "late")
      late.release(leased)
      for statement in late.statements(for: queue) { try await app.database.batch(statement) }
      try await app.database.batch(queue.renewing(leased.map(\.lease)))
      #expect(
        try await app.value(
          """
          SELECT count(*) FROM deliveries
          WHERE lease = \(lease) AND attempts = 0 AND deaths = 0 AND died_at IS NULL
          """) == 1)
      var done = Acknowledgements()
      done.finish(taken[0])
      for statement in done.statements(for: queue) { try await app.database.batch(statement) }
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `a worker's death counts for the rows in flight, not for those behind them`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2)
      try await app.enqueue(rounds: 0..<2, to: 2)
      let (dead, other) = (try await living(app), try await living(app))
      #expect(try await claim(app, dead).runs.map(\.count) == [2, 2])
      try await expire(app)
      try await app.database.execute(
        "UPDATE workers SET heartbeat_at = now() - interval '4 seconds' WHERE id = \(dead)")
      let found = try await claim(app, other)
      #expect(found.runs.isEmpty && found.orphans == 2 && !found.hasSuspects)
      let deaths = try await app.database.rows("SELECT deaths, lease FROM deliveries ORDER BY subject_id, id")
      #expect(try deaths.map { try $0["deaths"] as Int } == [1, 0, 1, 0])
      #expect(try deaths.allSatisfy { try ($0["lease"] as UUID?) == nil })
      // After one death, it is claimed as before. After the second, it is claimed alone.
      #expect(try await claim(app, other, .suspect).runs.isEmpty)
      try await app.database.execute("UPDATE deliveries SET deaths = 2 WHERE deaths = 1")
      let none = try await claim(app, other)
      #expect(none.runs.isEmpty && none.hasSuspects)
      let alone = try await claim(app, other, .suspect)
      #expect(alone.runs.map(\.count) == [1] && alone.orphans == 0)
      try await app.forgetDeliveries()
    }
  }

  @Test func `a worker that returns after a database outage does not count as dead`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let (holder, other) = (try await living(app), try await living(app))
      #expect(try await claim(app, holder).runs.count == 1)
      // For a minute, no worker could write.
      try await expire(app)
      try await app.database.execute("UPDATE workers SET heartbeat_at = now() - interval '1 minute'")
      // Right before and after its own heartbeat, the other worker does not know yet whether the holder lives.
      #expect(try await claim(app, other).orphans == 0)
      try await app.database.batch(Heartbeat.writing(of: other))
      let early = try await claim(app, other)
      #expect(early.orphans == 0 && early.runs.isEmpty)
      // The holder is back. It is late, not dead.
      try await app.database.batch(Heartbeat.writing(of: holder))
      let taken = try await claim(app, other)
      #expect(taken.orphans == 0 && taken.runs.count == 1)
      #expect(try await app.value("SELECT max(deaths) FROM deliveries") == 0)
      try await app.forgetDeliveries()
    }
  }

  @Test func `claims use the indexes, however many rows wait`() async throws {
    try await TestApp.run(isShared: false) { app in
      try await app.gatherReaders(3)
      try await app.enqueue(subjects: 2000, to: 1)
      for scope in [LeaseQueue.Scope.all, .recent, .suspect] {
        let statement = queue.claiming(scope, atMost: 50, for: UUID(), lease: UUID())
        let plan = try await app.database.transaction { transaction -> String in
          try await transaction.rows(LeaseQueue.byIndex)
          return try await transaction.rows("EXPLAIN \(statement)").map { try $0[0] as String }.joined(separator: "\n")
        }
        #expect(!plan.contains("Seq Scan"), "\(plan)")
        let index = if case .suspect = scope { "suspected_deliveries" } else { "deliveries_due" }
        #expect(plan.contains(index), "\(plan)")
        if case .suspect = scope { continue }
        #expect(plan.contains("deliveries_in_order"), "\(plan)")
      }
      try await app.forgetDeliveries()
    }
  }
}
