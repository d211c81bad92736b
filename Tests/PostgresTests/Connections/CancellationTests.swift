import Foundation
import Postgres
import TestSupport
import Testing

/// A cancelled task returns immediately. Its transaction is cleaned up in the background.
@Suite(.timeLimit(.minutes(15)))
struct CancellationTests {
  @Test
  func `a cancelled transaction returns at once, its statement is cancelled, and it is rolled back`() async throws {
    try await withDatabase(
      "CREATE TABLE notes (id bigint PRIMARY KEY)",
      configure: {
        $0.connections = 2
        $0.statementTimeout = .seconds(60)
      }
    ) { database, server in
      let task = Task {
        try await database.transaction { transaction in
          try await transaction.pipeline("INSERT INTO notes VALUES (1)", "SELECT pg_advisory_xact_lock(1)")
          try await transaction.rows("SELECT pg_sleep(30)")
        }
      }
      let isSleeping = "state = 'active' AND wait_event = 'PgSleep'"
      try await eventually("it sleeps") { try await server.backends(isSleeping) == 1 }
      let start = ContinuousClock.now
      task.cancel()
      let result = await task.result
      // Generous for a busy machine. The sleep would take 30 seconds.
      #expect(ContinuousClock.now - start < .seconds(2))
      #expect(throws: CancellationError.self) { try result.get() }
      try await eventually(within: .seconds(5), "it no longer sleeps") { try await server.backends(isSleeping) == 0 }
      try await eventually("its locks are gone") { try await server.advisoryLocks(granted: true) == 0 }
      // This would wait for the row if the first transaction were still open.
      try await database.execute("INSERT INTO notes VALUES (1)")
      try await expectFullPool(of: database, connections: 2)
      #expect(try await server.backends() == 2)
      #expect(try await server.value("SELECT count(*) FROM notes") == 1)
    }
  }

  @Test func `a transaction that is cancelled while it waits for a lock leaves the lock's queue`() async throws {
    try await withDatabase(
      "CREATE TABLE notes (id bigint PRIMARY KEY)",
      configure: {
        $0.statementTimeout = .seconds(60)
      }
    ) { database, server in
      try await database.transaction { holder in
        try await holder.rows("INSERT INTO notes VALUES (1)")
        let waiting = Task.detached { try await database.execute("INSERT INTO notes VALUES (1)") }
        try await eventually("it waits") { try await server.backends("wait_event_type = 'Lock'") == 1 }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { _ = try await waiting.value }
        try await eventually(within: .seconds(5), "it no longer waits") {
          try await server.backends("wait_event_type = 'Lock'") == 0
        }
      }
      #expect(try await server.value("SELECT count(*) FROM notes") == 1)
    }
  }

  @Test func `a transaction whose task is cancelled between two statements is rolled back`() async throws {
    try await withDatabase("CREATE TABLE notes (id bigint)", configure: { $0.connections = 1 }) { database, server in
      let task = Task {
        try await database.transaction { transaction in
          try await transaction.rows("INSERT INTO notes VALUES (1)")
          try await Task.sleep(for: .seconds(30))
        }
      }
      try await eventually("it is between two statements") {
        try await server.backends("state = 'idle in transaction'") == 1
      }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(try await server.backends("state = 'idle'") == 1)
      #expect(try await server.value("SELECT count(*) FROM notes") == 0)
      try await expectFullPool(of: database, connections: 1)
    }
  }

  @Test func `a cancelled task stops waiting for a connection, and no connection is lost`() async throws {
    try await withDatabase(configure: { $0.connections = 1 }) { database, server in
      let patient = try await database.transaction { transaction in
        try await transaction.rows("SELECT 1")
        let waiting = (0..<10).map { _ in Task.detached { try await database.execute("SELECT 2") } }
        let patient = Task.detached { try await database.execute("SELECT 3") }
        let start = ContinuousClock.now
        for task in waiting { task.cancel() }
        for task in waiting {
          let result = await task.result
          #expect(throws: CancellationError.self) { try result.get() }
        }
        #expect(ContinuousClock.now - start < .seconds(2))
        return patient
      }
      #expect(try await patient.value.count == 1)
      try await expectFullPool(of: database, connections: 1)
      #expect(try await server.backends() == 1)
    }
  }

  @Test func `a late cancel request never hits the connection's next owner`() async throws {
    try await withDatabase(configure: {
      $0.connections = 6
      $0.statementTimeout = .seconds(30)
    }) { database, server in
      let late = Collected<Void>()
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for task in 0..<4 {
          tasks.addTask {
            var random = SeededRandom(seed: UInt64(task))
            for _ in 0..<150 {
              let call = Task { try await database.execute("SELECT pg_sleep(0.003)") }
              // About when the statement ends, so that many requests come after it.
              try await Task.sleep(for: .microseconds(Int.random(in: 1000...7000, using: &random)))
              call.cancel()
              do { _ = try await call.value } catch is CancellationError { late.append(()) }
            }
          }
        }
        for task in 0..<4 {
          tasks.addTask {
            for number in 0..<150 {
              let nonce = task * 1000 + number
              // Throws if a cancel request hits it. No task cancels this one.
              let rows = try await database.execute("SELECT \(nonce) FROM pg_sleep(0.003)")
              #expect(try rows[0][0] == nonce)
            }
          }
        }
        try await tasks.waitForAll()
      }
      #expect(late.count > 20)
      try await expectFullPool(of: database, connections: 6)
      #expect(try await server.backends() <= 6)
    }
  }

  @Test
  func `if its statement cannot be cancelled, a connection is closed at once, and no caller waits for it`() async throws
  {
    try await TestCluster.withDatabase { url in
      let proxy = try FaultProxy(inFrontOf: url)
      defer { proxy.close() }
      var configuration = Database.Configuration(url: proxy.url(for: url))
      configuration.applicationName = Server.applicationName
      configuration.connections = 1
      let database = try Database(configuration)
      defer { database.close() }
      let server = Server(url: url)
      let sleeper = Task { try await database.execute("SELECT pg_sleep(4)") }
      try await eventually("it sleeps") { try await server.backends("wait_event = 'PgSleep'") == 1 }
      proxy.stopListening()
      sleeper.cancel()
      await #expect(throws: CancellationError.self) { _ = try await sleeper.value }
      // On the same connection, this would succeed after the sleep. No other connection can be opened.
      let error = try await postgresError { try await database.execute("SELECT 1") }
      #expect(error.kind == .cannotConnect)
    }
  }
}
