import Foundation
import TestSupport
import Testing

@testable import App

/// The examples of problems in the document are what the service responds.
@Suite struct ProblemExampleTests {
  /// The messages of errors by their slugs, from the sources. An interpolation stands for any text.
  private static func messages() throws -> (patterns: [String: [String]], computed: Set<String>) {
    let root = Program.checkout.appending(path: "Sources/App")
    let found = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    let files = found?.compactMap { $0 as? URL } ?? []
    let error = try Regex(
      #"(?:AppError\(\s*\.\w+,\s*|case \.\w+: \()"([a-z-]+)",\s*(?:"{3}\n([\s\S]*?)"{3}|"((?:[^"\\]|\\.)*)"|[a-z])"#,
      as: (Substring, Substring, Substring?, Substring?).self)
    var patterns: [String: [String]] = [:]
    var computed: Set<String> = []
    for file in files where file.pathExtension == "swift" {
      for match in try String(contentsOf: file, encoding: .utf8).matches(of: error) {
        let slug = String(match.output.1)
        let block = match.output.2.map { $0.replacing(/\\\n\s*/, with: "") }
        guard let text = block.map(String.init) ?? match.output.3.map(String.init) else {
          computed.insert(slug)
          continue
        }
        let parts = text.trimmingCharacters(in: .whitespacesAndNewlines).split(
          separator: /\\\((?:[^()]|\([^()]*\))*\)/, omittingEmptySubsequences: false)
        patterns[slug, default: []].append(
          parts.map { NSRegularExpression.escapedPattern(for: String($0)) }.joined(separator: ".+"))
      }
    }
    return (patterns, computed)
  }

  private static func examples(in value: JSON) -> [(slug: String, detail: String)] {
    if case .array(let values) = value { return values.flatMap(examples) }
    if let slug = value["type"].string, let detail = value["detail"].string { return [(slug, detail)] }
    return value.members.flatMap { examples(in: $0.value) }
  }

  @Test func `the detail of each example is a message of the service`() throws {
    let (patterns, computed) = try Self.messages()
    #expect(patterns.count > 60 && computed.contains("too-many-friend-requests"))
    let examples = Self.examples(in: try JSON(parsing: Resources.openAPIJSON.utf8))
    #expect(examples.count > 80)
    for (slug, detail) in examples where !computed.contains(slug) {
      let known = patterns[slug] ?? []
      #expect(
        try known.contains { try Regex($0).wholeMatch(in: detail) != nil }, "\(slug): \(detail) is none of \(known)")
    }
  }
}
