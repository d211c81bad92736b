import Foundation
import Postgres
import Testing

/// COPY out of the database.
@Suite(.timeLimit(.minutes(15)))
struct CopyOutTests {
  private struct Stop: Error {}

  @Test func `rows arrive typed and in order, with NULLs and values of any size`() async throws {
    try await withDatabase { _, server in
      try await ScriptConnection.run(server.url) { connection in
        var numbers: [Int] = []
        let count = try connection.copy(
          """
          SELECT i, CASE WHEN i % 2 = 0 THEN repeat('x', (i * 7)::int) END, ARRAY[i, i], i::numeric / 4
          FROM generate_series(1::int8, 3000) AS i
          """, as: (Int, String?, [Int], Decimal).self
        ) { number, text, both, quarter in
          numbers.append(number)
          #expect(text?.utf8.count == (number % 2 == 0 ? number * 7 : nil))
          #expect(both == [number, number])
          #expect(quarter * 4 == Decimal(number))
        }
        #expect(count == 3000)
        #expect(numbers == Array(1...3000))
        #expect(try connection.copy("SELECT 1 WHERE false", as: Int.self) { _ in } == 0)
      }
    }
  }

  @Test func `a value that does not fit is an error that names the column, and the connection can be used again`()
    async throws
  {
    try await withDatabase { _, server in
      try await ScriptConnection.run(server.url) { connection in
        let many: SQL =
          "SELECT CASE WHEN i > 5 THEN NULL ELSE i END AS n, 'x' AS text FROM generate_series(1, 1000000) AS i"
        let null = #expect(throws: PostgresError.self) { try connection.copy(many, as: (Int, String).self) { _, _ in } }
        #expect(null?.message == "column \"n\" is NULL, wanted Int")
        let type = #expect(throws: PostgresError.self) { try connection.copy(many, as: (Int?, Int).self) { _, _ in } }
        #expect(type?.message == "column \"text\" has the type text (oid 25), wanted Int")
        let few = #expect(throws: PostgresError.self) { try connection.copy(many, as: Int?.self) { _ in } }
        #expect(few?.message == "there are 2 columns (n, text), wanted 1")
        #expect(throws: Stop.self) { try connection.copy(many, as: (Int?, String).self) { _, _ in throw Stop() } }
        #expect(throws: Stop.self) { try connection.copy(many, format: .text) { _ in throw Stop() } }
        let after: Int = try connection.rows("SELECT 1")[0][0]
        #expect(after == 1)
      }
    }
  }

  @Test func `an error of the query, before and after the first rows`() async throws {
    try await withDatabase { _, server in
      try await ScriptConnection.run(server.url) { connection in
        var read = 0
        let late = #expect(throws: PostgresError.self) {
          try connection.copy("SELECT 1 / (5 - i) FROM generate_series(1, 10) AS i", as: Int.self) { _ in read += 1 }
        }
        #expect(late?.sqlState == "22012")
        #expect(read <= 4)
        let early = #expect(throws: PostgresError.self) {
          try connection.copy("SELECT missing FROM nowhere", format: .text) { _ in }
        }
        #expect(early?.sqlState == "42P01")
        let parameter = #expect(throws: PostgresError.self) {
          try connection.copy("SELECT \(1)", format: .text) { _ in }
        }
        #expect(parameter?.kind == .misuse)
        let typed = #expect(throws: PostgresError.self) { try connection.copy("SELECT \(1)", as: Int.self) { _ in } }
        #expect(typed?.kind == .misuse)
        let after: Int = try connection.rows("SELECT 1")[0][0]
        #expect(after == 1)
      }
    }
  }

  @Test(arguments: [
    (CopyFormat.csv(header: true), "n,text\n1,\"a,b\"\n2,\n"), (.csv(header: false), "1,\"a,b\"\n2,\n"),
    (.text, "1\ta,b\n2\t\\N\n"),
  ])
  func `text formats, as for a file`(format: CopyFormat, expected: String) async throws {
    try await withDatabase { _, server in
      let text = try await ScriptConnection.run(server.url) { connection in
        var bytes: [UInt8] = []
        try connection.copy("SELECT * FROM (VALUES (1, 'a,b'), (2, NULL)) AS v (n, text)", format: format) {
          bytes += $0
        }
        return String(decoding: bytes, as: UTF8.self)
      }
      #expect(text == expected)
    }
  }

  @Test func `a copy out in the binary format has the server's header and all rows`() async throws {
    try await withDatabase("CREATE TABLE notes (n bigint, text text)") { _, server in
      let bytes = try await ScriptConnection.run(server.url) { connection in
        try connection.copy(into: "notes", columns: ["n", "text"]) { rows in
          for number in 1...500 { try rows.append(number, String(repeating: "ä", count: number)) }
        }
        var bytes: [UInt8] = []
        try connection.copy("SELECT n, text FROM notes ORDER BY n", format: .binary) { bytes += $0 }
        return bytes
      }
      #expect(bytes.starts(with: Array("PGCOPY\n".utf8)))
      #expect(bytes.count > 250_000)
    }
  }
}
