import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The table of collections in the code, compared with what others write about them.
@Suite struct CollectionTests {
  @Test func `the document lists each collection with its GET`() throws {
    let text = try String(
      contentsOf: Program.checkout.appending(path: "Sources/App/HTTP/openapi.yaml"), encoding: .utf8)
    let table = try #require(text.firstRange(of: "| collection | its GET |"))
    let rows = text[table.upperBound...].split(separator: "\n").dropFirst().prefix {
      $0.contains("| `")
    }
    let listed = rows.map {
      $0.split(separator: "`").enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }
    #expect(listed == App.Collection.allCases.map { [$0.rawValue, "/api/v1/\($0.facts.path)"] })
  }

  @Test func `each collection has a column of the stamps, and only the inbox also has a floor`() async throws {
    try await TestApp.run { app in
      let columns: [String] = try await app.database.rows(
        """
        SELECT attname::text FROM pg_attribute
        WHERE attrelid = 'user_stamps'::regclass AND attnum > 0 AND NOT attisdropped
        ORDER BY attnum
        """
      ).map { try $0[0] }
      #expect(columns == ["user_id"] + App.Collection.allCases.map(\.column) + ["inbox_floor"])
    }
  }

  @Test func `no document counts the collections`() throws {
    for file in ["docs/caching.md", "docs/client.md", "Sources/App/HTTP/openapi.yaml", "Benchmarks/README.md"] {
      let text = try String(contentsOf: Program.checkout.appending(path: file), encoding: .utf8)
      #expect(!text.contains(/\b(eight|nine|ten) (\*)?(collections|stamps)|all nine/), "\(file)")
    }
  }
}
