import Foundation
import TestSupport
import Testing

@testable import Postgres

/// Changes of one caller to a session never reach another caller.
@Suite(.timeLimit(.minutes(15)))
struct SessionTests {
  private func processID(of database: Database, isShared: Bool) async throws -> Int {
    let sql: SQL = "SELECT pg_backend_pid()"
    return try await (isShared ? database.rows(sql) : database.execute(sql))[0][0]
  }

  @Test(
    arguments: [
      "SET work_mem = '5MB'", "/* a comment */ set session work_mem = '5MB'", "RESET ALL", "LISTEN channel",
      "SELECT set_config('work_mem', '5MB', false)", "SELECT pg_catalog.set_config('work_mem', '5MB', 1 > 2)",
      "PREPARE one AS SELECT 1", "SELECT pg_advisory_lock(7)", "SELECT pg_try_advisory_lock_shared(7)",
      "CREATE TEMP TABLE scratch (n int)", "DO $$ BEGIN SET default_transaction_read_only = off; END $$",
      "DO $$ BEGIN LISTEN channel; END $$", "SELECT set_config('a.b', $$c, true)$$, false)",
    ], [true, false])
  func `a connection whose session was changed is closed after use`(statement: String, isShared: Bool) async throws {
    try await withDatabase(configure: {
      $0.sharedConnections = 1
      $0.connections = 1
    }) { database, server in
      let before = try await processID(of: database, isShared: isShared)
      // The shared session rejects some of them. It is closed anyway.
      _ = try? await isShared ? database.rows("\(unescaped: statement)") : database.execute("\(unescaped: statement)")
      #expect(try await processID(of: database, isShared: isShared) != before)
      try await eventually("the session ends") { try await server.backends("pid = \(before)") == 0 }
    }
  }

  @Test(
    arguments: [
      "SET LOCAL work_mem = '5MB'", "SELECT set_config('work_mem', '5MB', true)", "SELECT pg_advisory_xact_lock(7)",
      "SELECT 'SET work_mem = 1, pg_advisory_lock(1)'", "SELECT 1 AS \"set_config\" -- SET work_mem",
    ], [true, false])
  func `a connection is kept after a change that ends with the transaction`(statement: String, isShared: Bool)
    async throws
  {
    try await withDatabase(configure: {
      $0.sharedConnections = 1
      $0.connections = 1
    }) { database, _ in
      let before = try await processID(of: database, isShared: isShared)
      _ = try await isShared ? database.rows("\(unescaped: statement)") : database.execute("\(unescaped: statement)")
      #expect(try await processID(of: database, isShared: isShared) == before)
    }
  }

  @Test func `callers behind a SET on the same shared connection do not see it, and get their results`() async throws {
    try await withDatabase(configure: { $0.sharedConnections = 1 }) { database, _ in
      try await withThrowingTaskGroup(of: String?.self) { tasks in
        for number in 0..<300 {
          tasks.addTask {
            if number % 20 == 0 {
              try await database.rows("SET application_name = 'changed'")
              return nil
            }
            return try await database.value("SELECT current_setting('application_name')")
          }
        }
        for try await name in tasks { #expect(name != "changed") }
      }
    }
  }

  @Test(arguments: [
    { @Sendable (configuration: inout Database.Configuration) in
      configuration.url += "&options=-c%20default_transaction_read_only%3Doff"
    },
    { @Sendable (configuration: inout Database.Configuration) in configuration.isBehindPooler = true },
  ])
  func `a read is not repeated if its session is not read-only`(
    configure: @Sendable (inout Database.Configuration) -> Void
  ) async throws {
    try await withDatabase("CREATE SEQUENCE counter", configure: configure) { database, server in
      try await database.transaction { holder in
        try await holder.rows("SELECT pg_advisory_xact_lock(1)")
        let read = Task.detached {
          try await postgresError { try await database.rows("SELECT nextval('counter'), pg_advisory_xact_lock(1)") }
        }
        try await eventually("it waits") { try await server.backends("wait_event_type = 'Lock'") == 1 }
        try await server.terminateBackends("wait_event_type = 'Lock'")
        let error = try await read.value
        #expect(error.mayHaveRun)
        #expect(error.isUnavailable)
      }
      #expect(try await server.value("SELECT last_value FROM counter") == 1)
      #expect(try await database.value("SELECT 1") == 1)
    }
  }

  @Test func `a batch that changes its own transaction is not repeated`() async throws {
    try await withDatabase("CREATE SEQUENCE counter") { database, server in
      try await database.transaction { holder in
        try await holder.rows("SELECT pg_advisory_xact_lock(1)")
        let read = Task.detached {
          try await postgresError {
            try await database.pipeline(
              "SET TRANSACTION READ WRITE", "SELECT nextval('counter'), pg_advisory_xact_lock(1)")
          }
        }
        try await eventually("it waits") { try await server.backends("wait_event_type = 'Lock'") == 1 }
        try await server.terminateBackends("wait_event_type = 'Lock'")
        #expect(try await read.value.mayHaveRun)
      }
      #expect(try await server.value("SELECT last_value FROM counter") == 1)
    }
  }

  @Test(arguments: [
    ("BEGIN", SessionEffect.transaction), ("start transaction", .transaction), ("COMMIT", .transaction),
    ("PREPARE TRANSACTION 'x'", .transaction), ("SET LOCAL transaction_read_only = off", .transaction),
    ("SET TRANSACTION READ WRITE", .transaction), ("SET CONSTRAINTS ALL DEFERRED", .none),
    ("-- SET\n/* SET /* x */ SET */ SELECT 1", .none), ("(SELECT 1)", .none), ("SELECT 1 INTO TEMP scratch", .session),
    ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", .session), ("DECLARE c CURSOR FOR SELECT 1", .none),
    ("SELECT set_config('a.b', $1, true), set_config('a.c', ')', TRUE)", .none),
    ("SELECT set_config('a.b', $1, true), set_config('a.c', $2, $3)", .session),
    ("SELECT set_config('a.b', upper(concat('x', 'y')), true)", .none),
    ("DO $$ BEGIN SET work_mem = '5MB'; END $$", .session), ("SELECT set_config('a", .session), ("", .none),
    ("SELECT set_config('a.b', $$c, true)$$, false)", .session), ("SELECT set_config('a.b', $c$, ($c$, true)", .none),
    ("SELECT set_config('a.b', E'c\\', true)', false)", .session), ("SELECT set_config('a.b', e'(\\'', true)", .none),
    ("SELECT date'2026-01-01', pg_advisory_lock(7)", .session), ("SELECT setting FROM pg_settings", .none),
    ("UPDATE pg_settings SET setting = '5MB' WHERE name = 'work_mem'", .session),
    ("EXPLAIN ANALYZE CREATE TEMP TABLE scratch AS SELECT 1", .session),
    ("SELECT $$it's$$, pg_advisory_lock(7)", .session), ("SELECT E'it\\'s', pg_advisory_lock(7)", .session),
    ("SELECT $a$ $$ ' $a$, pg_advisory_lock(7)", .session), ("SELECT $1 || '$', $2", .none), ("SELECT $$", .none),
    ("SELECT $x$ SELECT 1", .none), ("SELECT 'a\\', 1 AS n", .none), ("SELECT E'", .none), ("SELECT E'\\", .none),
    ("SELECT pg_catalog.\"pg_advisory_lock\" (7)", .session), ("SELECT \"pg_advisory_lock\" FROM t", .none),
    ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", .session), ("CREATE TABLE pg_temp.scratch (n int)", .session),
    ("SELECT 1 INTO LOCAL TEMPORARY TABLE scratch", .session), ("SELECT setseed(0.5)", .session),
    ("CREATE OR REPLACE VIEW v AS SELECT 1", .none), ("INSERT INTO notes VALUES (1)", .none), ("\"", .none),
  ])
  func effects(text: String, effect: SessionEffect) {
    #expect(SessionEffect(of: text) == effect)
  }
}
