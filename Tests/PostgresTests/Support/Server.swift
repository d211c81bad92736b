import Foundation
import Postgres
import TestSupport
import Testing

/// Creates a database and a client for one test, and closes and drops them afterwards.
///
/// - Parameters:
///   - setUp: a script to run first.
///   - configure: changes the client's configuration for this test.
func withDatabase<Value: Sendable>(
  _ setUp: String = "", configure: (inout Database.Configuration) -> Void = { _ in },
  _ body: (_ database: Database, _ server: Server) async throws -> Value
) async throws -> Value {
  try await Transport.current.withDatabase { url, clientURL in
    let server = Server(url: url)
    try await server.script(setUp)
    var configuration = Database.Configuration(url: clientURL)
    configuration.applicationName = Server.applicationName
    configuration.isBehindPooler = Transport.current == .pgbouncer
    // All tests run at once, possibly on a small machine.
    configuration.connectTimeout = .seconds(30)
    configuration.acquireTimeout = .seconds(30)
    configure(&configuration)
    let database = try Database(configuration)
    defer { database.close() }
    return try await body(database, server)
  }
}

/// Direct access to the test's database. Every query uses a separate connection and not the client under test.
struct Server: Sendable {
  static let applicationName = "tested"
  let url: String

  /// The same server's database `postgres`.
  var administration: Server { Server(url: url.replacing(/\/test_[0-9a-f]+\?/, with: "/postgres?")) }

  func script(_ text: String) async throws {
    try await ScriptConnection.run(url) { try $0.script(text) }
  }

  func rows(_ sql: SQL) async throws -> Rows {
    try await ScriptConnection.run(url) { try $0.rows(sql) }
  }

  /// The single column of the first row.
  func value<Value: SQLValue>(_ sql: SQL, as: Value.Type = Value.self) async throws -> Value {
    try #require(try await rows(sql).first)[0]
  }

  /// The number of the client's sessions for which `condition` holds.
  func backends(_ condition: String = "true") async throws -> Int {
    try await value(
      """
      SELECT count(*) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = \(Self.applicationName)
        AND (\(unescaped: condition))
      """)
  }

  /// Kills the client's sessions for which `condition` holds.
  func terminateBackends(_ condition: String = "true") async throws {
    _ = try await rows(
      """
      SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = \(Self.applicationName)
        AND (\(unescaped: condition))
      """)
  }

  /// The number of advisory locks in this database that are held, or waited for.
  func advisoryLocks(granted: Bool) async throws -> Int {
    try await value(
      """
      SELECT count(*) FROM pg_locks
      WHERE locktype = 'advisory' AND granted = \(granted)
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      """)
  }
}

/// Waits until `condition` holds and fails the test if it does not in time.
func eventually(
  within limit: Duration = .seconds(20), _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
  _ condition: () async throws -> Bool
) async throws {
  let end = ContinuousClock.now + limit
  while try await !condition() {
    try #require(.now < end, what, sourceLocation: sourceLocation)
    try await Task.sleep(for: .milliseconds(5))
  }
}

/// Runs `body`, which must fail with a `PostgresError`.
func postgresError(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async throws -> PostgresError {
  try await #require(throws: PostgresError.self, sourceLocation: sourceLocation) { try await body() }
}

/// Fails unless the pool can run as many transactions at once as it may have connections.
///
/// - Returns: the process ids of their sessions.
@discardableResult
func expectFullPool(of database: Database, connections: Int) async throws -> [Int] {
  let open = Collected<Int>()
  try await withThrowingTaskGroup(of: Void.self) { tasks in
    for number in 0..<connections {
      tasks.addTask {
        try await database.transaction { transaction in
          let row = try #require(try await transaction.first("SELECT \(number), pg_backend_pid()"))
          #expect(try row[0] == number)
          open.append(try row[1])
          try await eventually("\(connections) transactions are open together") { open.count == connections }
        }
      }
    }
    try await tasks.waitForAll()
  }
  return open.all
}

/// Runs several migrators at once. Holds the advisory lock 1, for which a migration may wait, until all of them run.
func together(
  _ count: Int, _ database: Database, _ migrate: @escaping @Sendable () async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: Void.self) { tasks in
    try await database.transaction { holder in
      try await holder.rows("SELECT pg_advisory_xact_lock(1)")
      for _ in 0..<count { tasks.addTask(operation: migrate) }
      try await eventually("all migrators run") {
        try await database.value(
          """
          SELECT count(*) FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = 'migrate' AND query <> ''
          """) == count
      }
    }
    try await tasks.waitForAll()
  }
}
