import Foundation
import Postgres
import TestSupport
import Testing

/// Makes a database for one test and a client of it, and closes and drops them afterwards.
///
/// - Parameters:
///   - setUp: a script to run first.
///   - configure: what this test wants of the client.
func withDatabase<Value: Sendable>(
  _ setUp: String = "", configure: (inout Database.Configuration) -> Void = { _ in },
  _ body: (_ database: Database, _ server: Server) async throws -> Value
) async throws -> Value {
  try await TestCluster.withDatabase { url in
    let server = Server(url: url)
    try await server.script(setUp)
    var configuration = Database.Configuration(url: url)
    configuration.applicationName = Server.applicationName
    // All tests run at once, on what may be a small machine.
    configuration.connectTimeout = .seconds(30)
    configuration.waitTimeout = .seconds(30)
    configure(&configuration)
    let database = try Database(configuration)
    defer { database.close() }
    return try await body(database, server)
  }
}

/// The test's database as others see it: every question goes over a connection of its own, not through the client that
/// is being tested.
struct Server: Sendable {
  static let applicationName = "tested"
  let url: String

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

  /// The client's sessions for which `condition` holds.
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

  /// The advisory locks of this database that are held, or asked for in vain.
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

/// What several tasks have to say.
final class Collected<Element: Sendable>: Sendable {
  private let elements = Lock<[Element]>([])

  func append(_ element: Element) {
    elements.withLock { $0.append(element) }
  }

  var all: [Element] { elements.withLock { $0 } }
  var count: Int { elements.withLock { $0.count } }
}

/// Fails unless the pool can have as many transactions open at the same time as it may have connections.
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

/// Migrates several times at once, and holds the advisory lock 1, for which a migration may wait, until all are at work.
func together(
  _ count: Int, _ database: Database, _ migrate: @escaping @Sendable () async throws -> Void
) async throws {
  try await withThrowingTaskGroup(of: Void.self) { tasks in
    try await database.transaction { holder in
      try await holder.rows("SELECT pg_advisory_xact_lock(1)")
      for _ in 0..<count { tasks.addTask(operation: migrate) }
      try await eventually("all are at work") {
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
