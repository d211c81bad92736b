import Foundation
import Postgres
import TestSupport
import Testing

/// Reads during failures, hangs and overload.
@Suite(.timeLimit(.minutes(15)))
struct SharedConnectionFailureTests {
  /// The outcomes of 20 tasks that read without pause.
  private final class Readers: Sendable {
    private let finished = Lock(Array(repeating: 0, count: 20))
    let errors = Collected<any Error>()
    let isOver = Collected<Void>()

    func read(_ task: Int, from database: Database) async {
      while isOver.count == 0 {
        let number = finished.withLock { $0[task] }
        let nonce = task * 1_000_000 + number
        do {
          let result: Int? = try await database.value("SELECT \(nonce)")
          #expect(result == nonce)
        } catch {
          errors.append(error)
        }
        finished.withLock { $0[task] += 1 }
      }
    }

    /// Returns when every task has begun and finished a read, so that no older read is in flight.
    func turn() async throws {
      let before = finished.withLock { $0 }
      try await eventually("every task reads") {
        finished.withLock { now in zip(now, before).allSatisfy { $0 >= $1 + 2 } }
      }
    }
  }

  /// Reads from 20 tasks while `body` runs.
  ///
  /// - Returns: the errors of failed reads.
  private func whileReading(_ database: Database, _ body: (Readers) async throws -> Void) async throws -> [any Error] {
    let readers = Readers()
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for task in 0..<20 { tasks.addTask { await readers.read(task, from: database) } }
      defer { readers.isOver.append(()) }
      try await body(readers)
    }
    return readers.errors.all
  }

  @Test func `no caller notices when the server ends the session of a shared connection`() async throws {
    try await withDatabase { database, server in
      let errors = try await whileReading(database) { readers in
        for round in 0..<8 {
          try await eventually("both shared connections are open") { try await server.backends() == 2 }
          let pids: [Int] = try await server.value(
            """
            SELECT array_agg(pid::int8 ORDER BY pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'tested'
            """)
          try await server.terminateBackends("pid = \(pids[round % 2])")
          try await readers.turn()
        }
        try await eventually("both shared connections are open again") { try await server.backends() == 2 }
      }
      #expect(errors.isEmpty)
    }
  }

  @Test
  func `if the server ends all sessions at once, no result is mixed up and the shared connections reopen`() async throws
  {
    try await withDatabase { database, server in
      let errors = try await whileReading(database) { readers in
        for _ in 0..<5 {
          try await eventually("both shared connections are open") { try await server.backends() == 2 }
          try await server.terminateBackends()
          try await readers.turn()
        }
        try await eventually("both shared connections are open again") { try await server.backends() == 2 }
      }
      #expect(errors.isEmpty)
      #expect(try await database.value("SELECT 1") == 1)
    }
  }

  @Test func `a shared connection that cannot open takes no reads from the open one`() async throws {
    try await withDatabase { database, server in
      let name: String = try await server.value("SELECT current_database()")
      try await database.rows("SELECT 'opens the first shared connection'")
      try await server.administration.script("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
      let failed = await withTaskGroup(of: Bool.self) { tasks in
        for number in 0..<100 {
          tasks.addTask { (try? await database.value("SELECT \(number)", as: Int.self)) != number }
        }
        return await tasks.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(failed == 0)
      try await server.administration.script("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
    }
  }

  @Test func `a database that was unavailable is used again once it is back`() async throws {
    try await withDatabase("CREATE TABLE notes (n int)") { database, server in
      let name: String = try await server.value("SELECT current_database()")
      try await server.administration.script("ALTER DATABASE \(name) ALLOW_CONNECTIONS false")
      for _ in 0..<3 {
        let read = try await postgresError { try await database.rows("SELECT 1") }
        let write = try await postgresError { try await database.execute("INSERT INTO notes VALUES (1)") }
        for error in [read, write] {
          #expect(error.kind == .cannotConnect)
          #expect(error.isUnavailable)
          #expect(!error.mayHaveRun)
        }
      }
      try await server.administration.script("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
      try await eventually("reads work again") { (try? await database.value("SELECT 1")) == 1 }
      try await eventually("writes work again") { (try? await database.execute("INSERT INTO notes VALUES (1)")) != nil }
      #expect(try await server.value("SELECT count(*) FROM notes") == 1)
    }
  }

  @Test(arguments: ["postgresql://127.0.0.1:1/none", "host=/nowhere dbname=none"])
  func `no server, or an invalid URL`(url: String) async throws {
    let database = try Database(.init(url: url))
    defer { database.close() }
    #expect(try await postgresError { try await database.rows("SELECT 1") }.kind == .cannotConnect)
    #expect(try await postgresError { try await database.execute("SELECT 1") }.kind == .cannotConnect)
    let nonsense = try Database(.init(url: "no connection string"))
    defer { nonsense.close() }
    #expect(try await postgresError { try await nonsense.rows("SELECT 1") }.kind == .invalidParameter)
  }

  @Test func `a slow statement fails with the server's timeout, and its shared connection stays open`() async throws {
    try await withDatabase(configure: {
      $0.sharedConnections = 1
      $0.statementTimeout = .seconds(1)
    }) { database, _ in
      let before: Int? = try await database.value("SELECT pg_backend_pid()")
      let slow = Task { try await database.rows("SELECT pg_sleep(30)") }
      let others = (0..<20).map { number in Task { try await database.value("SELECT \(number)", as: Int.self) } }
      let error = try await postgresError { _ = try await slow.value }
      #expect(error.sqlState == "57014")
      #expect(error.isUnavailable)
      for (number, task) in others.enumerated() {
        #expect(try await task.value == number)
      }
      let after: Int? = try await database.value("SELECT pg_backend_pid()")
      #expect(after == before)
    }
  }

  @Test
  func `a batch has the time of all its statements, callers behind it time out, and the shared connection stays open`()
    async throws
  {
    try await withDatabase(configure: {
      $0.sharedConnections = 1
      // A busy machine may take much longer than 50 ms for one of them.
      $0.statementTimeout = .seconds(1)
    }) { database, server in
      let before: Int? = try await database.value("SELECT pg_backend_pid()")
      // Each statement is fast enough for the server, but all together take longer than the client's limit for one.
      let batch: [SQL] = Array(repeating: "SELECT pg_sleep(0.05)", count: 100)
      let slow = Task { try await database.send(batch) }
      try await eventually("it runs") { try await server.backends("query LIKE '%pg_sleep%' AND state = 'active'") == 1 }
      let error = try await postgresError { try await database.rows("SELECT 1") }
      #expect(error.kind == .timeout)
      #expect(error.isUnavailable)
      let responses = try await slow.value
      #expect(responses.count == batch.count)
      try await eventually("the shared connection responds") { (try? await database.value("SELECT 1")) == 1 }
      let after: Int? = try await database.value("SELECT pg_backend_pid()")
      #expect(after == before)
    }
  }

  @Test
  func `cancelling a task ends its wait at once and does not affect others on the shared connection`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, server in
      let behind = try await database.transaction { transaction in
        try await transaction.rows("SELECT pg_advisory_xact_lock(1)")
        let blocked = Task { try await database.rows("SELECT pg_advisory_xact_lock(1)") }
        try await eventually("a read waits for the lock") { try await server.advisoryLocks(granted: false) == 1 }
        let behind = (0..<20).map { number in Task { try await database.value("SELECT \(number)", as: Int.self) } }
        let start = ContinuousClock.now
        blocked.cancel()
        let result = await blocked.result
        let elapsed = ContinuousClock.now - start
        #expect(throws: CancellationError.self) { try result.get() }
        // Generous for a busy machine. The server would have responded after 10 seconds.
        #expect(elapsed < .seconds(2))
        #expect(try await server.advisoryLocks(granted: false) == 1, "the server still waits, but the task does not")
        return behind
      }
      for (number, task) in behind.enumerated() {
        #expect(try await task.value == number)
      }
    }
  }

  @Test func `a task that is already cancelled gets no result`() async throws {
    try await withDatabase { database, _ in
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await database.value("SELECT 1", as: Int.self)
      }
      await #expect(throws: CancellationError.self) { _ = try await task.value }
      let result: Int? = try await database.value("SELECT 1")
      #expect(result == 1)
    }
  }

  @Test func `too many waiting callers are rejected, and the others are served`() async throws {
    try await withDatabase(configure: {
      $0.sharedConnections = 1
      $0.maximumWaiting = 5
    }) { database, server in
      try await database.rows("SELECT 'the shared connection is open'")
      let crowd = try await Crowd.gather(
        200, at: database, holding: "SELECT pg_advisory_xact_lock(1)", untilRejected: 100
      ) { number in
        try await database.rows("SELECT pg_advisory_xact_lock_shared(1)")
        return number
      }
      #expect(crowd.served.count >= 5)
      #expect(try await database.value("SELECT 1") == 1)
    }
  }

  @Test func `callers with too many bytes in total are rejected, and accepted again once the others have results`()
    async throws
  {
    try await withDatabase(configure: {
      $0.sharedConnections = 1
      $0.maximumWaitingBytes = 1_000_000
    }) { database, _ in
      try await database.rows("SELECT 'the shared connection is open'")
      let data = Data(repeating: 7, count: 300_000)
      let crowd = try await Crowd.gather(
        50, at: database, holding: "SELECT pg_advisory_xact_lock(1)", untilRejected: 30
      ) { _ in
        try await database.rows("SELECT octet_length(\(data)) FROM pg_advisory_xact_lock_shared(1)")[0][0]
      }
      #expect(crowd.served.count >= 4)
      #expect(crowd.served.allSatisfy { $0 == data.count })
      #expect(try await database.value("SELECT octet_length(\(data))") == data.count)
    }
  }

  @Test func `closing ends work in flight on shared connections and in transactions`() async throws {
    try await TestCluster.withDatabase { url in
      var configuration = Database.Configuration(url: url)
      configuration.applicationName = Server.applicationName
      configuration.statementTimeout = .seconds(60)
      let database = try Database(configuration)
      let server = Server(url: url)
      let outcomes = Collected<any Error>()
      for isRead in [true, false] {
        Task {
          do {
            if isRead {
              try await database.rows("SELECT pg_sleep(50)")
            } else {
              try await database.transaction { _ = try await $0.rows("SELECT pg_sleep(50)") }
            }
          } catch {
            outcomes.append(error)
          }
        }
      }
      try await eventually("both run") { try await server.backends("query LIKE '%pg_sleep%'") == 2 }
      database.close()
      try await eventually(within: .seconds(5), "both have failed") { outcomes.count == 2 }
      #expect(outcomes.all.allSatisfy { ($0 as? PostgresError)?.isUnavailable == true })
      let error = try await postgresError { try await database.rows("SELECT 1") }
      #expect(error.kind == .cannotConnect)
    }
  }
}
