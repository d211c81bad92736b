import Foundation
import Postgres
import Testing

/// Transactions are atomic, and their errors say whether they had an effect.
@Suite(.timeLimit(.minutes(15)))
struct TransactionTests {
  struct Stop: Error {}

  static let notes = """
    CREATE TABLE notes (
      id bigint PRIMARY KEY,
      text text NOT NULL CONSTRAINT notes_text_short CHECK (length(text) < 10),
      CONSTRAINT notes_text_once UNIQUE (text) DEFERRABLE INITIALLY DEFERRED
    )
    """

  private func ids(_ server: Server) async throws -> [Int] {
    try await server.value("SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM notes")
  }

  /// Runs a transaction whose body throws after `body`, and expects the same error.
  private func stopping(_ database: Database, after body: (Transaction) async throws -> Void) async throws {
    try await #require(throws: Stop.self) {
      try await database.transaction { transaction in
        try await body(transaction)
        throw Stop()
      }
    }
  }

  @Test func `others see the changes after the commit and not before`() async throws {
    try await withDatabase(Self.notes) { database, server in
      let response = try await database.transaction { transaction in
        let rows = try await transaction.rows("INSERT INTO notes VALUES (1, 'a') RETURNING id")
        try await transaction.rows("INSERT INTO notes VALUES (2, 'b')")
        #expect(try await transaction.value("SELECT count(*) FROM notes") == 2)
        #expect(try await ids(server) == [])
        return try rows[0]["id"] as Int
      }
      #expect(response == 1)
      #expect(try await ids(server) == [1, 2])
    }
  }

  @Test func `an error in the body rolls everything back and is rethrown unchanged`() async throws {
    try await withDatabase(Self.notes) { database, server in
      try await stopping(database) { try await $0.rows("INSERT INTO notes VALUES (1, 'a')") }
      #expect(try await ids(server) == [])
      #expect(try await server.backends("state = 'idle' AND xact_start IS NULL") == 1, "no transaction is left open")
    }
  }

  @Test func `a single statement is committed when it returns, and reports how many rows it affected`() async throws {
    try await withDatabase(Self.notes) { database, server in
      let rows = try await database.execute("INSERT INTO notes VALUES (1, 'a'), (2, 'b')")
      #expect(rows.affected == 2)
      #expect(rows.isEmpty)
      #expect(try await ids(server) == [1, 2])
      #expect(try await database.execute("DELETE FROM notes WHERE id = \(2) RETURNING text")[0]["text"] == "b")
    }
  }

  @Test func `the server's error names the violated constraint and says that nothing happened`() async throws {
    try await withDatabase(Self.notes + "; INSERT INTO notes VALUES (1, 'a')") { database, server in
      let double = try await postgresError { try await database.execute("INSERT INTO notes VALUES (1, 'b')") }
      #expect(double.kind == .server)
      #expect(double.sqlState == "23505")
      #expect(double.constraint == "notes_pkey")
      #expect(!double.mayHaveRun && !double.isUnavailable && !double.isRetryable)
      let long = try await postgresError { try await database.execute("INSERT INTO notes VALUES (2, 'a long text')") }
      #expect(long.sqlState == "23514")
      #expect(long.constraint == "notes_text_short")
      let null = try await postgresError {
        try await database.execute("INSERT INTO notes VALUES (2, \(nil as String?))")
      }
      #expect(null.sqlState == "23502")
      #expect(try await ids(server) == [1])
    }
  }

  @Test func `a body that swallows a statement's error cannot commit`() async throws {
    try await withDatabase(Self.notes) { database, server in
      let error = try await postgresError {
        try await database.transaction { transaction in
          try await transaction.rows("INSERT INTO notes VALUES (1, 'a')")
          _ = try? await transaction.rows("INSERT INTO notes VALUES (1, 'a')")
        }
      }
      #expect(error.kind == .transactionAborted)
      #expect(!error.mayHaveRun)
      #expect(try await ids(server) == [])
      try await database.execute("INSERT INTO notes VALUES (2, 'b')")
      #expect(try await ids(server) == [2])
    }
  }

  @Test
  func `if the first statement is rejected before it is sent, the next ones still run in a transaction`() async throws {
    try await withDatabase(Self.notes) { database, server in
      try await stopping(database) { transaction in
        _ = try? await transaction.rows("INSERT INTO notes VALUES (1, \("\0"))")
        try await transaction.rows("INSERT INTO notes VALUES (2, 'b')")
      }
      #expect(try await ids(server) == [])
    }
  }

  @Test func `a savepoint lets a body continue after an error`() async throws {
    try await withDatabase(Self.notes) { database, server in
      try await database.transaction { transaction in
        try await transaction.pipeline("INSERT INTO notes VALUES (1, 'a')", "SAVEPOINT before")
        _ = try? await transaction.rows("INSERT INTO notes VALUES (1, 'a')")
        try await transaction.pipeline("ROLLBACK TO before", "INSERT INTO notes VALUES (2, 'b')")
      }
      #expect(try await ids(server) == [1, 2])
    }
  }

  @Test func `statements given to atCommit run last, in order, in the same transaction`() async throws {
    let setUp = "CREATE TABLE log (step bigserial, text text, transaction bigint DEFAULT txid_current())"
    try await withDatabase(setUp) { database, server in
      try await database.transaction { transaction in
        transaction.atCommit("INSERT INTO log (text) VALUES ('third')", "INSERT INTO log (text) VALUES ('fourth')")
        try await transaction.rows("INSERT INTO log (text) VALUES ('first')")
        transaction.atCommit("INSERT INTO log (text) VALUES (\("fifth"))")
        try await transaction.rows("INSERT INTO log (text) VALUES ('second')")
      }
      let texts: [String] = try await server.value("SELECT array_agg(text ORDER BY step) FROM log")
      #expect(texts == ["first", "second", "third", "fourth", "fifth"])
      #expect(try await server.value("SELECT count(DISTINCT transaction) FROM log") == 1)
    }
  }

  @Test func `a queued statement runs in order, and the next call throws its error`() async throws {
    let setUp = "CREATE TABLE log (step bigserial, text text UNIQUE)"
    try await withDatabase(setUp) { database, server in
      let (_, results) = try await database.transactionWithResults { transaction in
        try transaction.write("INSERT INTO log (text) VALUES ('first')")
        transaction.atCommit("INSERT INTO log (text) VALUES ('fourth')")
        let count: Int? = try await transaction.value("SELECT count(*) FROM log")
        #expect(count == 1)
        try transaction.write("INSERT INTO log (text) VALUES ('second')")
        try transaction.write("INSERT INTO log (text) VALUES ('third')")
        transaction.atCommit("SELECT string_agg(text, ' ' ORDER BY step) AS all FROM log")
      }
      #expect(results.count == 2)
      #expect(try results[1].first?["all"] == "first second third fourth")
      try await database.transaction { try $0.write("INSERT INTO log (text) VALUES ('alone')") }
      #expect(try await server.value("SELECT count(*) FROM log WHERE text = 'alone'") == 1)

      for isLast in [false, true] {
        let error = try await postgresError {
          try await database.transaction { transaction in
            try transaction.write("INSERT INTO log (text) VALUES ('fifth')")
            try transaction.write("INSERT INTO log (text) VALUES ('first')")
            if !isLast { try await transaction.rows("SELECT 1") }
          }
        }
        #expect(error.constraint == "log_text_key")
        #expect(!error.mayHaveRun)
      }
      #expect(try await server.value("SELECT count(*) FROM log WHERE text = 'fifth'") == 0)
    }
  }

  @Test func `a queued statement that cannot be sent fails the transaction, even if the body swallows the error`()
    async throws
  {
    try await withDatabase(Self.notes) { database, server in
      let error = try await postgresError {
        try await database.transaction { transaction in
          try transaction.write("INSERT INTO notes VALUES (1, 'a')")
          try transaction.write("INSERT INTO notes VALUES (2, \("a\0"))")
          for id in 3...4 { _ = try? await transaction.rows("INSERT INTO notes VALUES (\(id), 'b')") }
        }
      }
      #expect(error.kind == .invalidParameter)
      #expect(try await ids(server) == [])
      let late = try await database.transaction { $0 }
      #expect(throws: PostgresError.self) { try late.write("INSERT INTO notes VALUES (5, 'a')") }
    }
  }

  @Test func `statements given to atCommit are a transaction even if they are the only ones`() async throws {
    try await withDatabase(Self.notes) { database, server in
      try await database.transaction { $0.atCommit("INSERT INTO notes VALUES (1, 'a')") }
      #expect(try await ids(server) == [1])
      let error = try await postgresError {
        try await database.transaction {
          $0.atCommit("INSERT INTO notes VALUES (2, 'b')", "INSERT INTO notes VALUES (1, 'a')")
        }
      }
      #expect(error.constraint == "notes_pkey")
      #expect(try await ids(server) == [1])
    }
  }

  @Test func `an error in a statement given to atCommit rolls everything back`() async throws {
    try await withDatabase(Self.notes) { database, server in
      let error = try await postgresError {
        try await database.transaction { transaction in
          transaction.atCommit("INSERT INTO notes VALUES (2, 'b')", "INSERT INTO notes VALUES (3, 'far too long')")
          try await transaction.rows("INSERT INTO notes VALUES (1, 'a')")
        }
      }
      #expect(error.kind == .server)
      #expect(error.constraint == "notes_text_short")
      #expect(!error.mayHaveRun)
      #expect(try await ids(server) == [])
      #expect(try await server.backends("state = 'idle' AND xact_start IS NULL") == 1)
    }
  }

  @Test func `if the body fails, the statements given to atCommit do not run`() async throws {
    try await withDatabase(Self.notes) { database, server in
      try await stopping(database) { $0.atCommit("INSERT INTO notes VALUES (1, 'a')") }
      #expect(try await ids(server) == [])
    }
  }

  @Test
  func `a deferred constraint that fails at COMMIT throws the server's error and rolls everything back`() async throws {
    try await withDatabase(Self.notes) { database, server in
      let error = try await postgresError {
        try await database.transaction { transaction in
          try await transaction.rows("INSERT INTO notes VALUES (1, 'same')")
          try await transaction.rows("INSERT INTO notes VALUES (2, 'same')")
        }
      }
      #expect(error.kind == .server)
      #expect(error.sqlState == "23505")
      #expect(error.constraint == "notes_text_once")
      #expect(!error.mayHaveRun)
      #expect(try await ids(server) == [])
      try await database.execute("INSERT INTO notes VALUES (3, 'same')")
      #expect(try await ids(server) == [3])
    }
  }

  @Test func `a transaction inside the body of another fails, and the outer one still commits`() async throws {
    try await withDatabase(Self.notes, configure: { $0.connections = 1 }) { database, server in
      try await database.transaction { transaction in
        try await transaction.rows("INSERT INTO notes VALUES (1, 'a')")
        let nested = try await postgresError { try await database.transaction { _ in } }
        #expect(nested.kind == .misuse)
        let single = try await postgresError { try await database.execute("INSERT INTO notes VALUES (2, 'b')") }
        #expect(single.kind == .misuse)
        #expect(try await database.value("SELECT count(*) FROM notes") == 0, "a read outside of it is allowed")
      }
      #expect(try await ids(server) == [1])
      try await database.execute("INSERT INTO notes VALUES (3, 'c')")
    }
  }

  @Test func `a transaction cannot be used after its end`() async throws {
    try await withDatabase(Self.notes) { database, server in
      let committed = try await database.transaction { $0 }
      let failed = Collected<Transaction>()
      try await stopping(database) { transaction in
        failed.append(transaction)
        try await transaction.rows("SELECT 1")
      }
      for transaction in [committed] + failed.all {
        let error = try await postgresError { try await transaction.rows("INSERT INTO notes VALUES (1, 'a')") }
        #expect(error.kind == .misuse)
      }
      #expect(failed.count == 1)
      #expect(try await ids(server) == [])
    }
  }

  @Test func `a transaction without statements sends nothing`() async throws {
    try await withDatabase(configure: { $0.connections = 1 }) { database, server in
      let response = try await database.transaction { _ in 7 }
      #expect(response == 7)
      #expect(try await server.backends("query = '' AND query_start IS NULL") == 1)
      try await stopping(database) { _ in }
      #expect(try await server.backends("query = '' AND query_start IS NULL") == 1)
    }
  }

  @Test
  func `a wait for a lock times out before the statement does, with another error than an unavailable server`()
    async throws
  {
    try await withDatabase(
      Self.notes + "; INSERT INTO notes VALUES (1, 'a')",
      configure: {
        $0.lockTimeout = .milliseconds(100)
      }
    ) { database, server in
      try await database.transaction { holder in
        try await holder.rows("SELECT 1 FROM notes WHERE id = 1 FOR UPDATE")
        // In another task, because transactions on the same database cannot be nested.
        let error = try await Task.detached {
          try await postgresError { try await database.execute("UPDATE notes SET text = 'b' WHERE id = 1") }
        }.value
        #expect(error.sqlState == "55P03")
        #expect(error.isLockTimeout && error.isUnavailable && !error.mayHaveRun)
      }
      try await database.execute("UPDATE notes SET text = 'b' WHERE id = 1")
    }
    // The limit for a lock is always shorter than the limit for a statement.
    try await withDatabase(configure: { $0.statementTimeout = .seconds(4) }) { database, _ in
      #expect(try await database.value("SHOW lock_timeout") == "2s")
      let exclusive: String = try await database.execute("SHOW lock_timeout")[0][0]
      #expect(exclusive == "2s")
    }
    let usual: String? = try await withDatabase { database, _ in try await database.value("SHOW lock_timeout") }
    #expect(usual == "5s")
  }
}
