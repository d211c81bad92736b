import Foundation
import Postgres
import Testing

@Suite(.timeLimit(.minutes(15)))
struct IsolationTests {
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
}
