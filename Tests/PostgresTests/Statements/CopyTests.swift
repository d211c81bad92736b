import Foundation
import Postgres
import Testing

@Suite(.timeLimit(.minutes(15)))
struct CopyTests {
  @Test func `rows are copied into a table with any names`() async throws {
    try await withDatabase(#"CREATE TABLE "a ""table""" ("N; --" bigint, "order" text)"#) { _, server in
      let count = try await ScriptConnection.run(server.url) { connection in
        try connection.copy(into: "a \"table\"", columns: ["N; --", "order"]) { rows in
          try rows.append(1, "one")
          try rows.append(2, nil as String?)
        }
      }
      #expect(count == 2)
      let rows = try await server.rows(#"SELECT "order" FROM "a ""table""" ORDER BY "N; --""#)
      #expect(try rows.map { try $0[0] as String? } == ["one", nil])
    }
  }

  @Test func `a name that looks like SQL is only a name`() async throws {
    try await withDatabase("CREATE TABLE notes (n bigint)") { _, server in
      for (table, column) in [("notes (n) FROM STDIN; DROP TABLE notes; --", "n"), ("notes", "n) FROM STDIN --")] {
        let error = try await postgresError {
          _ = try await ScriptConnection.run(server.url) { connection in
            try connection.copy(into: table, columns: [column]) { try $0.append(1) }
          }
        }
        #expect(["42P01", "42703"].contains(error.sqlState))
      }
      #expect(try await server.value("SELECT count(*) FROM notes") == 0)
    }
  }
}
