import Foundation
import Postgres
import Testing

/// Exclusive connections: their number, their time limits, and their failures.
@Suite(.timeLimit(.minutes(15)))
struct PoolTests {
  static let counters =
    "CREATE TABLE counters (id bigint PRIMARY KEY, n bigint); INSERT INTO counters VALUES (1, 0), (2, 0)"

  private func counts(_ server: Server) async throws -> [Int] {
    try await server.value("SELECT array_agg(n ORDER BY id) FROM counters")
  }

  @Test func `there are never more connections than configured, and every caller gets a turn`() async throws {
    try await withDatabase(Self.counters, configure: { $0.connections = 2 }) { database, server in
      let most = try await withThrowingTaskGroup(of: Int.self) { tasks in
        for _ in 0..<10 {
          tasks.addTask {
            try await database.transaction { transaction in
              try await transaction.rows("UPDATE counters SET n = n + 1 WHERE id = 1")
              return try await server.backends()
            }
          }
        }
        return try await tasks.reduce(0, max)
      }
      #expect((1...2).contains(most))
      #expect(try await counts(server) == [10, 0])
      try await expectFullPool(of: database, connections: 2)
      #expect(try await server.backends() == 2)
    }
  }

  @Test func `a free connection is reused before another one is opened`() async throws {
    try await withDatabase { database, server in
      let pids = Collected<Int>()
      for _ in 0..<5 { pids.append(try await database.execute("SELECT pg_backend_pid()")[0][0]) }
      #expect(Set(pids.all).count == 1)
      let backends = try await server.backends()
      #expect(backends == 1)
    }
  }

  @Test func `waiting scripts do not prevent others from connecting`() async throws {
    try await withDatabase { database, server in
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        try await database.transaction { holder in
          try await holder.rows("SELECT pg_advisory_xact_lock(1)")
          for _ in 0..<20 { tasks.addTask { _ = try await server.rows("SELECT pg_advisory_xact_lock_shared(1)") } }
          // This read opens a shared connection while all scripts wait.
          try await eventually(within: .seconds(5), "all scripts run") {
            try await database.value(
              """
              SELECT count(*) FROM pg_stat_activity
              WHERE datname = current_database() AND application_name = 'script' AND wait_event_type = 'Lock'
              """) == 20
          }
        }
        try await tasks.waitForAll()
      }
    }
  }

  @Test func `a caller that waits too long for a connection gets a timeout`() async throws {
    try await withDatabase(configure: {
      $0.connections = 1
      $0.acquireTimeout = .milliseconds(500)
    }) { database, _ in
      try await eventually("the connection is open") { (try? await database.execute("SELECT 1")) != nil }
      try await database.transaction { transaction in
        try await transaction.rows("SELECT 1")
        let other = Task.detached { try await database.execute("SELECT 2") }
        let error = try await postgresError { _ = try await other.value }
        #expect(error.kind == .timeout)
        #expect(error.isUnavailable)
        #expect(!error.mayHaveRun)
      }
      try await database.execute("SELECT 3")
    }
  }

  @Test func `too many waiting callers are rejected, and the others are served in order`() async throws {
    try await withDatabase(
      Self.counters,
      configure: {
        $0.connections = 1
        $0.maximumWaiting = 3
      }
    ) { database, server in
      let crowd = try await Crowd.gather(10, at: database, untilRejected: 7) { _ in
        try await database.execute("UPDATE counters SET n = n + 1 WHERE id = 1").affected
      }
      #expect(crowd.rejected == 7)
      #expect(try await counts(server) == [3, 0])
    }
  }

  @Test func `the victim of a deadlock runs its body again, and both transactions commit`() async throws {
    try await withDatabase(Self.counters) { database, server in
      let attempts = Collected<Int>()
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for (first, second) in [(1, 2), (2, 1)] {
          tasks.addTask {
            try await database.transaction(repeating: true) { transaction in
              try await transaction.rows("UPDATE counters SET n = n + 1 WHERE id = \(first)")
              attempts.append(first)
              try await eventually("both hold a row") { attempts.count >= 2 }
              try await transaction.rows("UPDATE counters SET n = n + 1 WHERE id = \(second)")
            }
          }
        }
        try await tasks.waitForAll()
      }
      #expect(attempts.count >= 3)
      #expect(try await counts(server) == [2, 2])
    }
  }

  @Test func `a caller that would wait for a connection behind too many bytes is rejected`() async throws {
    try await withDatabase(configure: {
      $0.connections = 1
      $0.maximumWaitingBytes = 1_000_000
    }) { database, _ in
      let data = Data(repeating: 7, count: 300_000)
      // The fourth caller reaches the limit.
      let crowd = try await Crowd.gather(20, at: database, untilRejected: 16) { _ in
        try await database.execute("SELECT octet_length(\(data))")[0][0]
      }
      #expect(crowd.rejected == 16)
      #expect(crowd.served == Array(repeating: data.count, count: 4))
    }
  }

  @Test func `a body runs again, up to five times in total, only if it is repeatable and the error is retryable`()
    async throws
  {
    try await withDatabase { database, _ in
      let cases = [
        (state: "40001", repeating: true, attempts: 5), ("40P01", true, 5), ("40001", false, 1), ("23505", true, 1),
      ]
      for (state, repeating, expected) in cases {
        let attempts = Collected<Void>()
        let error = try await postgresError {
          try await database.transaction(repeating: repeating) { transaction in
            attempts.append(())
            try await transaction.rows("DO \(unescaped: "$$ BEGIN RAISE SQLSTATE '\(state)'; END $$")")
          }
        }
        #expect(error.sqlState == state)
        #expect(attempts.count == expected, "SQLSTATE \(state), repeating: \(repeating)")
      }
    }
  }

  @Test func `if a session ends during a transaction, its changes are rolled back and the next transaction works`()
    async throws
  {
    try await withDatabase(Self.counters, configure: { $0.connections = 1 }) { database, server in
      let idle = try await postgresError {
        try await database.transaction { transaction in
          try await transaction.rows("UPDATE counters SET n = 7 WHERE id = 1")
          try await server.terminateBackends()
          try await transaction.rows("UPDATE counters SET n = 7 WHERE id = 2")
        }
      }
      let busy = try await postgresError {
        try await database.transaction { transaction in
          try await transaction.rows("UPDATE counters SET n = 7 WHERE id = 1")
          let killer = Task {
            try await eventually("it sleeps") { try await server.backends("query LIKE '%pg_sleep%'") == 1 }
            try await server.terminateBackends()
          }
          let result: Result<Rows, any Error>
          do { result = .success(try await transaction.rows("SELECT pg_sleep(8)")) } catch { result = .failure(error) }
          try await killer.value
          _ = try result.get()
        }
      }
      for error in [idle, busy] {
        #expect(error.isUnavailable)
        #expect(!error.mayHaveRun)
      }
      #expect(try await counts(server) == [0, 0])
      try await database.execute("UPDATE counters SET n = 1 WHERE id = 1")
      #expect(try await counts(server) == [1, 0])
      try await expectFullPool(of: database, connections: 1)
    }
  }

  @Test func `connections that broke while idle are replaced`() async throws {
    try await withDatabase(configure: { $0.connections = 4 }) { database, server in
      try await expectFullPool(of: database, connections: 4)
      try await server.terminateBackends()
      try await eventually("the pool works again") { (try? await database.execute("SELECT 1")) != nil }
      try await expectFullPool(of: database, connections: 4)
    }
  }

  @Test func `the server ends a transaction that is left idle, and the pool replaces its connection`() async throws {
    try await withDatabase(
      Self.counters,
      configure: {
        $0.connections = 1
        $0.idleInTransactionTimeout = .milliseconds(500)
      }
    ) { database, server in
      let error = try await postgresError {
        try await database.transaction { transaction in
          try await transaction.rows("UPDATE counters SET n = 7 WHERE id = 1")
          try await eventually("the server gives up") { try await server.backends() == 0 }
          try await transaction.rows("UPDATE counters SET n = 7 WHERE id = 2")
        }
      }
      #expect(!error.mayHaveRun)
      #expect(try await counts(server) == [0, 0])
      try await database.execute("UPDATE counters SET n = 1 WHERE id = 1")
      #expect(try await counts(server) == [1, 0])
    }
  }

  /// Makes COMMIT wait in a deferred trigger for the advisory lock 1.
  static let slowCommit = """
    CREATE TABLE notes (id bigint);
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_advisory_xact_lock(1);
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON notes DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait();
    """

  @Test func `if the connection breaks during COMMIT, the outcome is unknown`() async throws {
    try await withDatabase(Self.slowCommit) { database, server in
      try await database.transaction { holder in
        try await holder.rows("SELECT pg_advisory_xact_lock(1)")
        let other = Task.detached { try await database.execute("INSERT INTO notes VALUES (1)") }
        try await eventually("COMMIT is in flight") { try await server.advisoryLocks(granted: false) == 1 }
        try await server.terminateBackends("wait_event_type = 'Lock'")
        let error = try await postgresError { _ = try await other.value }
        #expect(error.kind == .unknownOutcome)
        #expect(error.mayHaveRun)
        #expect(error.isUnavailable)
      }
      #expect(try await server.value("SELECT count(*) FROM notes") == 0)
    }
  }

  @Test func `cancelling the task does not cancel COMMIT`() async throws {
    try await withDatabase(Self.slowCommit) { database, server in
      let other = try await database.transaction { holder in
        try await holder.rows("SELECT pg_advisory_xact_lock(1)")
        let other = Task.detached { try await database.execute("INSERT INTO notes VALUES (1)") }
        try await eventually("COMMIT is in flight") { try await server.advisoryLocks(granted: false) == 1 }
        other.cancel()
        return other
      }
      let rows = try await other.value
      #expect(rows.affected == 1)
      #expect(try await server.value("SELECT count(*) FROM notes") == 1)
    }
  }
}
