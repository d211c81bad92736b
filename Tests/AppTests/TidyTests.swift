import Foundation
import TestSupport
import Testing

/// Words to avoid in guides, messages, comments and names of tests; CONTRIBUTING.md says why. Also code to avoid.
@Suite struct TidyTests {
  /// Regular expressions, in any case, and what to write instead.
  private static let words = [
    (#", too(?=[.,;:)"`]|$)"#, "also, before the verb"),
    (#"\b(somebody|whoever)\b|\bnobody (?=[a-z])"#, "the role: user, guest, host, reader; no one"),
    (#"\b(is|are|be|been|was|were) told\b(?! apart)"#, "is notified, gets a notice"),
    (#"\b(hears?|heard) of\b"#, "is notified of, learns about"),
    (#"\banew\b"#, "again; rehash, restart, reload"),
    (#"\bgo(es)? on\b(?! the)"#, "continue"),
    (#"\bbeside(?= [a-z0-9`])"#, "besides, next to, alongside, and"),
    (#"\b(stop|shut|end)\w* (it |them )?(down )?in order\b"#, "gracefully"),
    (#"\b(immediately|shown|saved|sent) at once\b"#, "immediately, or concurrently: at once is either"),
    (#"\bfor ever\b"#, "forever"),
    (#"\bin vain\b"#, "wasted"),
    (#"\bso many\b|, of which\b"#, "a second sentence"),
    (
      #"(?<=/// |description: |description: ')(?-i:What) [^?\n]*$"#,
      "a noun: the claims of a phone, the settings of a request"
    ),
    (#"\bat its start,"#, "on startup"),
    (#"\bput together (once|at)\b"#, "assembled"),
    (#"\bbegins? (again|anew)[.,"`]"#, "starts over"),
    (
      #"\bmust have (at most )?[0-9\\(][^ ]* (to [^ ]+ )?(characters|bytes|KiB|MiB)\b"#,
      "must be ... long, must be at most ..."
    ),
    (#"\bexists? already\b|\bare friends already\b"#, "already exists, are already friends"),
    (#"\bthe present (one|link|user|username|state|address)\b"#, "current"),
    (#"\b(nothing|something) has to be done\b"#, "no action is needed"),
    (#"\bends? TLS\b"#, "terminates TLS"),
    (#"\b(whilst|amongst|colour|behaviour|favour|honour|licence|catalogue)"#, "American spelling"),
    (#"\bto login\b|\bplease log-?in\b"#, "to log in; login is the noun"),
    (#"\b(spool|parcel|bury|buried) (the|a|an|it)\b"#, "the glossary's: fan-out, delivery, dead letter"),
  ]

  private static let pages: Set = ["md", "yaml", "yml", "mustache", "tsv", "strings"]
  private static let others: Set = ["swift", "py", "sql", "sh", ""]

  /// All texts of the repository, by path.
  private static func texts() -> [(path: String, text: String)] {
    let folders = [
      "docs", "deploy", "Seeds", "Examples", "Sources", "Tests", "Scripts", "Benchmarks", "Migrations", "Plugins",
    ]
    let single = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docker-compose.yml", "Dockerfile", "Package.swift"]
    let found = folders.flatMap { folder in
      let root = Program.checkout.appending(path: folder)
      let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
      return (files?.compactMap { $0 as? URL } ?? []).map(\.path)
    }
    return (found + single.map { Program.checkout.appending(path: $0).path }).compactMap { path in
      let kind = (path as NSString).pathExtension
      guard pages.contains(kind) || others.contains(kind), !path.hasSuffix("TidyTests.swift") else {
        return nil
      }
      return (try? String(contentsOfFile: path, encoding: .utf8)).map { (path, $0) }
    }
  }

  /// Whether people read the text that follows `start` on its line: in a page, a comment, a literal, or a test's name.
  private static func isProse(after start: Substring, of path: String) -> Bool {
    if pages.contains((path as NSString).pathExtension) { return true }
    return ["//", "# ", "-- ", "`", "* "].contains { start.contains($0) } || start.count { $0 == "\"" } % 2 == 1
  }

  @Test func `the words to avoid are avoided`() throws {
    let all = try NSRegularExpression(
      pattern: Self.words.map { "(?:\($0.0))" }.joined(separator: "|"), options: [.caseInsensitive, .anchorsMatchLines])
    let texts = Self.texts()
    #expect(texts.count > 1000)
    for (path, text) in texts {
      for match in all.matches(in: text, range: NSRange(text.startIndex..., in: text)) {
        let range = try #require(Range(match.range, in: text))
        let line = text.lineRange(for: range)
        guard Self.isProse(after: text[line.lowerBound..<range.lowerBound], of: path) else { continue }
        let words = text[range]
        let instead = Self.words.first {
          words.range(of: $0.0, options: [.regularExpression, .caseInsensitive]) != nil
        }
        let place = "\(path):\(text[..<range.lowerBound].count { $0 == "\n" } + 1)"
        Issue.record("\(place): instead of \"\(words)\", write: \(instead?.1 ?? "see the table")")
      }
    }
  }

  @Test func `only generated code of the client spells paths of the API`() throws {
    let document = try String(
      contentsOf: Program.checkout.appending(path: "Sources/App/HTTP/openapi.yaml"), encoding: .utf8)
    let words = Set(document.matches(of: /(?m)^  \/api\/v1\/([a-z-]+)/).map { String($0.1) })
    #expect(words.count > 10)
    let path = try Regex("\"[^\"]*/(\(words.sorted().joined(separator: "|")))[/\"?]")
    let sources = Self.texts().filter { $0.path.contains("/Sources/MusterKit/") && !$0.path.contains("/Generated/") }
    #expect(sources.count > 50)
    for (file, text) in sources {
      for line in text.split(separator: "\n") where !line.contains("//") && line.contains(path) {
        Issue.record("\(file): \(line)")
      }
    }
  }

  @Test(arguments: [
    ("/// It is ignored, too.", true), ("  /// What the phone holds of each list.", true),
    ("  // What comes first is sent first.", false),
    ("  /// Shows the copies beside the list", true),
    ("try await add(new, beside: total)", false), ("  // As many as fit beside: total", false),
    (#"  throw Broken("must have 3 to 254 characters")"#, true), ("  /// The two cannot be told apart.", false),
  ]) func `the search tells prose from code`(line: String, isFound: Bool) throws {
    let found = Self.words.contains {
      guard let range = line.range(of: $0.0, options: [.regularExpression, .caseInsensitive]) else { return false }
      return Self.isProse(after: line[..<range.lowerBound], of: "File.swift")
    }
    #expect(found == isFound)
  }

  /// A response that is written by hand leaves its function without a caller.
  @Test func `every generated function writes responses`() {
    let texts = Self.texts().filter { $0.path.contains("/Sources/App/") }
    let generated = texts.filter { $0.path.hasSuffix("/HTTP/Generated/Responses.swift") }.map(\.text).joined()
    let functions = Set(generated.matches(of: /mutating func (\w+)\(/).map(\.1))
    #expect(functions.count > 30)
    let called = texts.reduce(into: Set<Substring>()) { $0.formUnion($1.text.matches(of: /json\.(\w+)\(/).map(\.1)) }
    #expect(functions.subtracting(called).isEmpty)
  }
}
