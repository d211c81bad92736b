import Foundation
import Postgres
import Testing

/// Large results in parts.
@Suite(.timeLimit(.minutes(15)))
struct StreamTests {
  @Test(arguments: [0, 1, 9, 10, 11, 2_500])
  func `every row arrives once, in order, whatever the size of the parts`(count: Int) async throws {
    try await withDatabase { database, _ in
      let numbers = try await database.slow.stream(
        "SELECT i, repeat('x', \(10 as Int32)) AS text FROM generate_series(1, \(count)) AS i", partsOf: 10
      ) { rows in
        var numbers: [Int] = []
        for try await row in rows {
          #expect(try row["text"] == "xxxxxxxxxx")
          numbers.append(try row["i"])
        }
        return numbers
      }
      #expect(numbers == Array(0..<count).map { $0 + 1 })
    }
  }

  @Test func `only one part is fetched before it is read`() async throws {
    try await withDatabase("CREATE SEQUENCE counter") { database, server in
      try await database.transaction { transaction in
        var read = 0
        for try await _ in transaction.stream("SELECT nextval('counter') FROM generate_series(1, 1000)", partsOf: 10) {
          read += 1
          if read == 15 { break }
        }
        #expect(try await server.value("SELECT last_value FROM counter") == 20)
      }
    }
  }

  @Test func `statements run between the parts, even in several streams at once`() async throws {
    try await withDatabase("CREATE TABLE notes (n int)") { database, server in
      try await database.transaction { transaction in
        for try await row in transaction.stream("SELECT i FROM generate_series(1, 7) AS i", partsOf: 2) {
          let outer: Int = try row[0]
          try await transaction.rows("INSERT INTO notes VALUES (\(Int32(outer)))")
          var inner = 0
          for try await row in transaction.stream("SELECT i FROM generate_series(1, \(outer)) AS i", partsOf: 3) {
            inner += 1
            #expect(try row[0] == inner)
          }
          #expect(inner == outer)
        }
      }
      #expect(try await server.value("SELECT count(*) FROM notes") == 7)
    }
  }

  @Test func `an iteration that ends early, or fails, leaves a connection that others use`() async throws {
    struct Stop: Error {}
    try await withDatabase(configure: { $0.connections = 4 }) { database, server in
      for _ in 0..<3 {
        try await database.slow.stream("SELECT i FROM generate_series(1, 100000) AS i") { rows in
          for try await _ in rows { break }
        }
        await #expect(throws: Stop.self) {
          try await database.slow.stream("SELECT i FROM generate_series(1, 100000) AS i") { rows in
            for try await _ in rows { throw Stop() }
          }
        }
        let failed = try await postgresError {
          try await database.slow.stream("SELECT 1 / (i - 25) FROM generate_series(1, 100) AS i", partsOf: 10) { rows in
            for try await _ in rows {}
          }
        }
        #expect(failed.sqlState == "22012")
      }
      #expect(try await server.backends() == 1)
      #expect(try await server.backends("state = 'idle' AND xact_start IS NULL") == 1)
    }
  }

  @Test func `a stream that is read slowly takes no shared connection, and its body may write`() async throws {
    try await withDatabase(
      "CREATE TABLE notes (n int)",
      configure: {
        $0.connections = 1
        $0.sharedConnections = 1
      }
    ) { database, server in
      try await database.slow.stream("SELECT i FROM generate_series(1, 30) AS i", partsOf: 10) { rows in
        for try await row in rows {
          let number: Int32 = try row[0]
          #expect(try await database.value("SELECT \(number)") == number)
          try await database.batch("INSERT INTO notes VALUES (\(number))")
        }
      }
      #expect(try await server.value("SELECT sum(n) FROM notes") == 465)
      // The reverse could deadlock the two pools.
      let error = try await postgresError {
        _ = try await database.transaction { _ in try await database.slow.rows("SELECT 1") }
      }
      #expect(error.kind == .misuse)
    }
  }

  @Test func `a cancelled task stops streaming`() async throws {
    try await withDatabase { database, server in
      let task = Task {
        try await database.slow.stream("SELECT i, pg_sleep(0.01) FROM generate_series(1, 100000) AS i", partsOf: 10) {
          rows in
          for try await _ in rows {}
        }
      }
      try await eventually("it streams") { try await server.backends("query LIKE 'FETCH%'") == 1 }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      try await eventually("it no longer runs") { try await server.backends("state = 'active'") == 0 }
    }
  }

  @Test func `several slow reads see one snapshot, and cannot write`() async throws {
    try await withDatabase("CREATE TABLE notes (n int)") { database, server in
      try await database.slow.transaction(isolation: .repeatableRead) { reads in
        #expect(try await reads.value("SELECT count(*) FROM notes") == 0)
        try await server.script("INSERT INTO notes VALUES (1)")
        #expect(try await reads.value("SELECT count(*) FROM notes") == 0)
      }
      let error = try await postgresError {
        _ = try await database.slow.transaction { try await $0.rows("INSERT INTO notes VALUES (2)") }
      }
      #expect(error.sqlState == "25006")
    }
  }
}
