import Foundation
import TestSupport
import Testing

/// The guides show code that compiles: each block of Swift is a part of `Snippets.swift`.
@Suite struct SnippetTests {
  /// Blocks that begin like this cannot be compiled here, or are not part of a program.
  private static let exceptions = ["import SwiftUI", "// Package.swift"]

  private func read(_ path: String) throws -> String {
    try String(contentsOf: Program.checkout.appending(path: path), encoding: .utf8)
  }

  /// The parts between the markers, without their indentation.
  private func snippets() throws -> [String] {
    var snippets: [String] = []
    var lines: [Substring]?
    let text = try read("Tests/MusterKitTests/Documentation/Snippets.swift")
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      switch line.drop(while: { $0 == " " }) {
      case "// snippet": lines = []
      case "// end":
        let indentation = lines?.first?.prefix { $0 == " " }.count ?? 0
        snippets.append((lines ?? []).map { $0.dropFirst(indentation) }.joined(separator: "\n"))
        lines = nil
      default: lines?.append(line)
      }
    }
    return snippets
  }

  @Test(arguments: ["docs/client.md", "docs/getting-started.md"])
  func `every block of Swift in a guide is compiled`(guide: String) throws {
    let snippets = Set(try snippets())
    let blocks = try read(guide).matches(of: /```swift\n(?<code>[\s\S]*?)\n```/).map { String($0.output.code) }
    #expect(blocks.count > 3)
    for block in blocks where !Self.exceptions.contains(where: block.hasPrefix) {
      #expect(snippets.contains(block), "\(block)")
    }
  }

  @Test func `every part of the compiled file is in a guide`() throws {
    let guides = try read("docs/client.md") + read("docs/getting-started.md")
    for snippet in try snippets() {
      #expect(guides.contains("```swift\n\(snippet)\n```"), "\(snippet)")
    }
  }

  @Test func `the app has fewer than 600 lines`() throws {
    let folder = Program.checkout.appending(path: "Examples/PlansApp")
    let names = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    let lines = try names.map { name in
      try String(contentsOf: folder.appending(path: name), encoding: .utf8).split(
        separator: "\n", omittingEmptySubsequences: false
      ).count - 1
    }
    #expect(names.count > 10 && lines.reduce(0, +) < 600)
  }
}
