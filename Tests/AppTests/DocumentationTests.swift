import Foundation
import TestSupport
import Testing

/// The guides name files of this repository. A file that moves must also move in the guides.
@Suite struct DocumentationTests {
  /// Files that the recipes of CONTRIBUTING.md tell the reader to create.
  private static let examples: Set = [
    "Sources/App/Places/Place.swift", "Sources/App/Places/PlaceRoutes.swift",
    "Sources/App/Notifications/Channels/MatrixSender.swift", "Sources/CLI/Commands/Users.swift",
    "Sources/App/Users/...",
  ]

  static let guides: [String] = {
    let names = FileManager.default.enumerator(atPath: Program.checkout.appending(path: "docs").path)
    let docs = (names?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(".md") }.map { "docs/\($0)" }
    let others = ["CONTRIBUTING.md", "CHANGELOG.md", "Benchmarks/README.md", "Seeds/README.md"]
    return ["README.md", "Examples/PlansApp/README.md"] + others + docs.sorted()
  }()

  private func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: Program.checkout.appending(path: path).standardized.path)
  }

  @Test(arguments: guides) func `every file that a guide links to exists`(guide: String) throws {
    let text = try String(contentsOf: Program.checkout.appending(path: guide), encoding: .utf8)
    let folder = (guide as NSString).deletingLastPathComponent
    for match in text.matches(of: /\]\(([^)#\s]+)(?:#[^)]*)?\)/) where !match.1.contains(":") {
      #expect(exists("\(folder)/\(match.1)"), "\(match.1)")
    }
  }

  @Test(arguments: guides) func `every source file that a guide names exists`(guide: String) throws {
    let text = try String(contentsOf: Program.checkout.appending(path: guide), encoding: .utf8)
    for match in text.matches(of: /`((?:Sources|Tests|Benchmarks|Scripts|Seeds)\/[^`\s]+)`/) {
      let path = String(match.1)
      if Self.examples.contains(path) || path.contains("...") { continue }
      #expect(exists(path), "\(path)")
    }
  }

  @Test func `the guide to the demo data names everything in it`() throws {
    let guide = try String(contentsOf: Program.checkout.appending(path: "Seeds/README.md"), encoding: .utf8)
    for (file, subject) in [("people", "username"), ("events", "title"), ("inbox", "type")] {
      let json = try Data(contentsOf: Program.checkout.appending(path: "Seeds/\(file).json"))
      let items = try #require(try JSONSerialization.jsonObject(with: json) as? [[String: Any]])
      #expect(!items.isEmpty)
      for item in items {
        let id = try #require(item["id"] as? String)
        let name = try #require(item[subject] as? String)
        #expect(guide.contains("| `\(id.suffix(12))` | \(name)"), "\(name)")
      }
    }
  }

  @Test func `there are guides`() {
    #expect(Self.guides.count >= 13)
  }
}
