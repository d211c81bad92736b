import Foundation
import TestSupport
import Testing

/// `docs/asvs.tsv` lists the requirements of OWASP's Application Security Verification Standard 5.0.0 for accounts and
/// tokens: chapters V6, V7, V9 and V10, levels 1 and 2. Of other chapters, it has those that matter for share links,
/// the tokens of visitors, and forms. For each, it names the tests that show it, or says why there is none. The list
/// must be complete, and the tests that it names must exist.
@Suite struct ASVSTests {
  /// The standard's sections, with the level of each requirement in order.
  private static let sections = """
    V6.1 122  V6.2 111111112222  V6.3 11223333  V6.4 112233  V6.5 22222333  V6.6 2223  V6.7 33  V6.8 2222
    V7.1 222  V7.2 1111  V7.3 22  V7.4 11222  V7.5 223  V7.6 22
    V9.1 111  V9.2 1222
    V10.1 22  V10.2 223  V10.3 22223  V10.4 1111122222233333  V10.5 22222  V10.6 22  V10.7 222
    """

  /// The requirements of other chapters, for share links, the tokens of visitors, and forms.
  private static let pages = [
    "V1.2.1": "1", "V2.2.1": "1", "V2.2.2": "1", "V2.3.2": "2", "V2.3.3": "2", "V2.3.4": "2", "V2.4.1": "2",
    "V3.4.3": "2", "V3.4.4": "2", "V3.4.5": "2", "V3.4.6": "2", "V3.5.1": "1", "V3.5.3": "1", "V11.5.1": "2",
    "V14.2.1": "1", "V14.3.2": "2", "V16.2.5": "2",
  ]

  private struct Line {
    let id: String
    let level: String
    let requirement: String
    /// `Suite/test`
    let tests: [String]
    let reason: String
  }

  @Test func `every requirement of levels 1 and 2 has a line, with a test or a reason`() throws {
    let words = Self.sections.split(whereSeparator: \.isWhitespace).map(String.init)
    var expected: [String: String] = [:]
    for index in stride(from: 0, to: words.count, by: 2) {
      for (number, level) in words[index + 1].enumerated() where level < "3" {
        expected["\(words[index]).\(number + 1)"] = String(level)
      }
    }
    #expect(expected.count == 89)
    expected.merge(Self.pages) { $1 }
    let lines = try Self.lines()
    #expect(Set(lines.map(\.id)).symmetricDifference(expected.keys).sorted() == [])
    #expect(lines.count == expected.count)
    for line in lines {
      #expect(line.level == expected[line.id], "\(line.id)")
      #expect(!line.requirement.isEmpty, "\(line.id)")
      #expect(!line.tests.isEmpty || !line.reason.isEmpty, "\(line.id)")
    }
  }

  @Test func `every test that a requirement names exists`() throws {
    let folder = Program.checkout.appending(path: "Tests")
    var suites: [String: String] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where path.hasSuffix("Tests.swift") {
      let file = folder.appending(path: path)
      suites[file.deletingPathExtension().lastPathComponent, default: ""] += try String(
        contentsOf: file, encoding: .utf8)
    }
    for line in try Self.lines() {
      for test in line.tests {
        let parts = test.split(separator: "/", maxSplits: 1)
        try #require(parts.count == 2, "\(line.id): \(test)")
        let suite = suites[String(parts[0])] ?? ""
        #expect(suite.contains("func `\(parts[1])`("), "\(line.id): there is no test \(test)")
      }
    }
  }

  private static func lines() throws -> [Line] {
    let file = Program.checkout.appending(path: "docs/asvs.tsv")
    let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    try #require(rows.first == "id\tlevel\trequirement\ttests\treason")
    return try rows.dropFirst().map { row in
      let cells = row.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      try #require(cells.count == 5, "\(row)")
      return Line(
        id: cells[0], level: cells[1], requirement: cells[2],
        tests: cells[3].split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }, reason: cells[4])
    }
  }
}
