import Foundation
import Postgres
import Testing

/// Isolation levels, and parts of a transaction that fail alone.
@Suite(.timeLimit(.minutes(15)))
struct SavepointTests {
  private struct Stop: Error {}

  private static let notes = "CREATE TABLE notes (id bigint PRIMARY KEY)"

  private func ids(_ server: Server) async throws -> [Int] {
    try await server.value("SELECT coalesce(array_agg(id ORDER BY id), '{}') FROM notes")
  }

  @Test(arguments: [
    (IsolationLevel.readCommitted, "read committed"), (.repeatableRead, "repeatable read"),
    (.serializable, "serializable"),
  ])
  func `a transaction has the isolation that it asks for`(level: IsolationLevel, name: String) async throws {
    try await withDatabase { database, _ in
      let (write, results) = try await database.transactionWithResults(isolation: level) { transaction in
        transaction.atCommit("SHOW transaction_isolation")
        return try await transaction.value("SHOW transaction_isolation", as: String.self)
      }
      #expect(write == name)
      #expect(try results[0][0][0] == name)
      #expect(
        try await database.slow.transaction(isolation: level) { try await $0.value("SHOW transaction_isolation") }
          == name)
      let usual = try await database.transaction { try await $0.value("SHOW transaction_isolation", as: String.self) }
      #expect(usual == "read committed")
    }
  }

  @Test func `serializable transactions that would contradict each other run again`() async throws {
    try await withDatabase(
      "CREATE TABLE doctors (name text, on_call bool); INSERT INTO doctors VALUES ('a', true), ('b', true)"
    ) {
      database, server in
      let reads = Collected<String>()
      try await withThrowingTaskGroup(of: Void.self) { tasks in
        for name in ["a", "b"] {
          tasks.addTask {
            try await database.transaction(isolation: .serializable, repeating: true) { transaction in
              let others: Int? = try await transaction.value(
                "SELECT count(*) FROM doctors WHERE on_call AND name <> \(name)")
              reads.append(name)
              try await eventually("both have read") { reads.count >= 2 }
              guard others != 0 else { return }
              try await transaction.rows("UPDATE doctors SET on_call = false WHERE name = \(name)")
            }
          }
        }
        try await tasks.waitForAll()
      }
      #expect(reads.count >= 3)
      #expect(try await server.value("SELECT count(*) FROM doctors WHERE on_call") == 1)
    }
  }

  @Test func `an error undoes its savepoint only, and the transaction continues`() async throws {
    try await withDatabase(Self.notes) { database, server in
      try await database.transaction { transaction in
        try await transaction.rows("INSERT INTO notes VALUES (1)")
        let error = try await postgresError {
          try await transaction.savepoint {
            try await transaction.rows("INSERT INTO notes VALUES (2)")
            transaction.atCommit("INSERT INTO notes VALUES (90)")
            try transaction.write("INSERT INTO notes VALUES (1)")
            try await transaction.rows("INSERT INTO notes VALUES (3)")
          }
        }
        #expect(error.constraint == "notes_pkey")
        let value = try await transaction.savepoint {
          try await transaction.rows("INSERT INTO notes VALUES (4)")
          return 7
        }
        #expect(value == 7)
        await #expect(throws: Stop.self) {
          try await transaction.savepoint {
            try await transaction.rows("INSERT INTO notes VALUES (5)")
            throw Stop()
          }
        }
        transaction.atCommit("INSERT INTO notes VALUES (6)")
      }
      #expect(try await ids(server) == [1, 4, 6])
    }
  }

  @Test func `savepoints inside each other`() async throws {
    try await withDatabase(Self.notes) { database, server in
      try await database.transaction { transaction in
        try await transaction.savepoint {
          try await transaction.rows("INSERT INTO notes VALUES (1)")
          for id in [2, 3] {
            _ = try? await transaction.savepoint {
              try await transaction.rows("INSERT INTO notes VALUES (\(id))")
              try await transaction.savepoint { try await transaction.rows("INSERT INTO notes VALUES (\(id + 10))") }
              if id == 2 { throw Stop() }
            }
          }
        }
        _ = try? await transaction.savepoint {
          try await transaction.savepoint { try await transaction.rows("INSERT INTO notes VALUES (20)") }
          throw Stop()
        }
      }
      #expect(try await ids(server) == [1, 3, 13])
    }
  }

  @Test func `a savepoint without statements sends nothing, and undoes statements that were only queued`() async throws
  {
    try await withDatabase(Self.notes) { database, server in
      try await database.transaction { transaction in
        try transaction.write("INSERT INTO notes VALUES (1)")
        _ = try? await transaction.savepoint {
          try transaction.write("INSERT INTO notes VALUES (2)")
          try transaction.write("INSERT INTO notes VALUES (\("\0")::bigint)")
          throw Stop()
        }
        try await transaction.savepoint { try transaction.write("INSERT INTO notes VALUES (3)") }
      }
      #expect(try await ids(server) == [1, 3])
    }
  }

  @Test func `an error before a savepoint is not undone by it, nor by an outer one of the same depth`() async throws {
    try await withDatabase(Self.notes) { database, server in
      let error = try await postgresError {
        try await database.transaction { transaction in
          try await transaction.savepoint { try await transaction.rows("INSERT INTO notes VALUES (1)") }
          // Fails, and the savepoint behind it is never made.
          try transaction.write("INSERT INTO notes VALUES (1)")
          _ = try? await transaction.savepoint { try await transaction.rows("INSERT INTO notes VALUES (2)") }
          _ = try? await transaction.rows("INSERT INTO notes VALUES (3)")
        }
      }
      #expect(error.kind == .transactionAborted)
      #expect(try await ids(server) == [])
    }
  }

  @Test func `after a timeout in a savepoint, the transaction can only be rolled back`() async throws {
    try await withDatabase(Self.notes, configure: { $0.statementTimeout = .milliseconds(300) }) { database, server in
      try await database.transaction { transaction in
        // The server's own timeout is an error like others.
        let slow = try await postgresError {
          _ = try await transaction.savepoint { try await transaction.rows("SELECT pg_sleep(5)") }
        }
        #expect(slow.sqlState == "57014")
        try await transaction.rows("INSERT INTO notes VALUES (1)")
      }
      let error = try await postgresError {
        try await database.transaction { transaction in
          try await transaction.rows("INSERT INTO notes VALUES (2)")
          let task = Task { try await transaction.savepoint { try await transaction.rows("SELECT pg_sleep(0.2)") } }
          task.cancel()
          _ = try? await task.value
        }
      }
      #expect(error.kind == .transactionAborted)
      #expect(try await ids(server) == [1])
      let late = try await database.transaction { $0 }
      #expect(try await postgresError { try await late.savepoint {} }.kind == .misuse)
    }
  }
}
