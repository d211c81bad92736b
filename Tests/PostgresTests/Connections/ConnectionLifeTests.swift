import Foundation
import Testing

@testable import Postgres

/// When connections and clients end.
@Suite(.timeLimit(.minutes(15)))
struct ConnectionLifeTests {
  @Test func `connections are replaced when they are too old, and no caller notices`() async throws {
    try await withDatabase(configure: {
      $0.connections = 2
      $0.sharedConnections = 1
      $0.maximumLifetime = .milliseconds(300)
    }) { database, server in
      let shared: Int = try #require(try await database.value("SELECT pg_backend_pid()"))
      let exclusive: Int = try await database.execute("SELECT pg_backend_pid()")[0][0]
      try await eventually("the shared connection is another one") {
        try await database.value("SELECT pg_backend_pid()") != shared
      }
      try await eventually("the exclusive connection is another one") {
        try await database.execute("SELECT pg_backend_pid()")[0][0] != exclusive
      }
      try await eventually("the old sessions end") {
        try await server.backends("pid IN (\(shared), \(exclusive))") == 0
      }
    }
  }

  @Test func `a transaction outlives the maximum lifetime of its connection`() async throws {
    try await withDatabase(configure: { $0.maximumLifetime = .milliseconds(200) }) { database, server in
      let pid = try await database.transaction { transaction -> Int in
        let pid: Int = try #require(try await transaction.value("SELECT pg_backend_pid()"))
        try await eventually("the session is old") {
          try await server.backends("pid = \(pid) AND clock_timestamp() - backend_start > interval '1 second'") == 1
        }
        #expect(try await transaction.value("SELECT pg_backend_pid()") == pid)
        return pid
      }
      try await eventually("the session ends") { try await server.backends("pid = \(pid)") == 0 }
    }
  }

  @Test func `idle connections are closed, and opened again on demand`() async throws {
    try await withDatabase(configure: { $0.maximumIdleTime = .milliseconds(300) }) { database, server in
      for _ in 0..<2 {
        try await database.rows("SELECT 1")
        try await database.slow.rows("SELECT 1")
        try await expectFullPool(of: database, connections: 4)
        try await eventually("all sessions end") { try await server.backends() == 0 }
      }
    }
  }

  @Test func `draining rejects new calls, waits for running ones, and then closes`() async throws {
    try await withDatabase(
      "CREATE TABLE notes (n int)",
      configure: {
        $0.statementTimeout = .seconds(120)
        $0.lockTimeout = .seconds(60)
      }
    ) { database, server in
      let (read, write) = try await database.transaction { holder in
        try await holder.rows("SELECT pg_advisory_xact_lock(1)")
        let read = Task.detached { try await database.rows("SELECT pg_advisory_xact_lock_shared(1)") }
        let write = Task.detached {
          try await database.transaction { transaction in
            try await transaction.rows("SELECT pg_advisory_xact_lock_shared(1)")
            // A running transaction may still send statements, and read.
            try await transaction.rows("INSERT INTO notes VALUES (1)")
            #expect(try await database.value("SELECT count(*) FROM notes") == 0)
          }
        }
        try await eventually("both wait") { try await server.advisoryLocks(granted: false) == 2 }
        let closing = Task.detached { await database.close(drainingFor: .seconds(60)) }
        try await eventually("new calls are rejected") {
          // A call that comes too early waits behind the read.
          let call = Task.detached { try await database.rows("SELECT 1") }
          let alarm = Task {
            try await Task.sleep(for: .milliseconds(500))
            call.cancel()
          }
          defer { alarm.cancel() }
          return (await call.result.failure as? PostgresError)?.kind == .cannotConnect
        }
        #expect(try await server.advisoryLocks(granted: false) == 2)
        return ((read, closing), write)
      }
      _ = try await read.0.value
      try await write.value
      await read.1.value
      try await eventually("all sessions end") { try await server.backends() == 0 }
      #expect(try await server.value("SELECT count(*) FROM notes") == 1)
    }
  }

  @Test func `draining ends at its limit, and what still runs fails`() async throws {
    try await withDatabase { database, server in
      let read = Task { try await postgresError { try await database.rows("SELECT pg_sleep(9)") } }
      try await eventually("it sleeps") { try await server.backends("wait_event = 'PgSleep'") == 1 }
      await database.close(drainingFor: .milliseconds(50))
      #expect(try await read.value.isUnavailable)
    }
  }

  /// Refers to a reactor without keeping it alive.
  private struct Observed {
    weak var reactor: Reactor?
  }

  @Test func `a database that is forgotten without close leaves no session and no thread`() async throws {
    try await withDatabase { _, server in
      let observed = Lock(Observed())
      func use() async throws {
        var configuration = Database.Configuration(url: server.url)
        configuration.applicationName = Server.applicationName
        let database = try Database(configuration)
        observed.withLock { $0.reactor = database.reactor }
        try await database.rows("SELECT 1")
        try await database.execute("SELECT 1")
        try await database.slow.rows("SELECT 1")
      }
      try await use()
      // The thread keeps its reactor alive for as long as it runs.
      try await eventually("the thread ends") { observed.withLock { $0.reactor == nil } }
      try await eventually("all sessions end") { try await server.backends() == 0 }
    }
  }
}

extension Result {
  fileprivate var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}
