import Foundation
import TestSupport
import Testing

/// The guide says of each operation whether it works offline. A new operation must be listed.
@Suite struct OfflineTableTests {
  private struct Row {
    let operations: [String]
    let other: String

    /// - Parameter line: of a table in Markdown; nil for another line.
    init?(_ line: Substring) {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard line.hasPrefix("| `"), cells.count == 2 else { return nil }
      (operations, other) = (Self.names(in: cells[0]), cells[1])
    }

    /// The words in backquotes.
    static func names(in cell: String) -> [String] { cell.matches(of: /`(\w+)`/).map { String($0.1) } }
  }

  private static let heading = "### Online or offline\n"

  /// The rows of the two tables: what works offline, and what does not.
  private static func tables() throws -> (offline: [Row], online: [Row]) {
    let guide = try read("docs/client.md")
    let section = try #require(guide.range(of: heading)).upperBound
    let rest = guide[section...]
    let text = rest.prefix(upTo: rest.range(of: "\n## ")?.lowerBound ?? rest.endIndex)
    let border = try #require(text.range(of: "| online only |")).lowerBound
    return (
      text[..<border].split(separator: "\n").compactMap(Row.init),
      text[border...].split(separator: "\n").compactMap(Row.init)
    )
  }

  private static func read(_ path: String) throws -> String {
    try String(contentsOf: Program.checkout.appending(path: path), encoding: .utf8)
  }

  @Test func `the tables list each operation once`() throws {
    let tables = try Self.tables()
    let listed = (tables.offline + tables.online).flatMap(\.operations)
    let operations = try PublishedDocument().operations().compactMap { $0.node["operationId"] as? String }
    #expect(operations.count > 70)
    #expect(Set(operations).subtracting(listed).sorted() == [], "These operations are not listed.")
    #expect(
      listed.sorted() == Set(listed).intersection(operations).sorted(), "These are no operations, or twice there.")
    for row in tables.online { #expect(row.other.count > 20, "\(row.operations) needs a reason.") }
  }

  @Test func `the tables list each write of the outbox`() throws {
    let source = try Self.read("Sources/MusterKit/Outbox/Write.swift")
    let body = try #require(source.firstMatch(of: /public enum Write\b[^{]*\{([\s\S]*?)\n\}/)).1
    let cases = body.matches(of: /\n  case (\w+)/).map { String($0.1) }
    let listed = try Self.tables().offline.flatMap { Row.names(in: $0.other) }
    #expect(cases.count > 15)
    #expect(Set(cases).symmetricDifference(listed).sorted() == [])
  }
}
