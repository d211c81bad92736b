import Foundation
import Postgres
import TestSupport
import Testing

/// The documentation shows code that compiles and runs: each block of Swift is a part of a file with snippets.
@Suite(.timeLimit(.minutes(15)))
struct SnippetTests {
  private static let articles = ["GettingStarted", "Types", "Postgres"]

  private static func path(_ article: String) -> String { "Sources/Postgres/Documentation.docc/\(article).md" }

  private static func snippets() throws -> [String] {
    try ["Snippets", "TypeSnippets"].flatMap { try Guide.snippets(in: "Tests/PostgresTests/Documentation/\($0).swift") }
  }

  @Test(arguments: articles)
  func `every block of Swift in an article is compiled`(article: String) throws {
    let snippets = Set(try Self.snippets())
    let blocks = try Guide.blocks(in: Self.path(article))
    #expect(!blocks.isEmpty)
    for block in blocks { #expect(snippets.contains(block), "\(block)") }
  }

  @Test func `every snippet is in an article`() throws {
    let articles = try Self.articles.map { try Guide.read(Self.path($0)) }.joined()
    let snippets = try Self.snippets()
    #expect(snippets.count > 12)
    for snippet in snippets { #expect(articles.contains("```swift\n\(snippet)\n```"), "\(snippet)") }
  }

  @Test(arguments: articles)
  func `every link names a public symbol or an article`(article: String) throws {
    let text = try Guide.read(Self.path(article))
    for match in text.matches(of: /<doc:(?<name>\w+)>/) { _ = try Guide.read(Self.path(String(match.output.name))) }
    let folder = Program.checkout.appending(path: "Sources/Postgres")
    let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.compactMap { $0 as? URL }
    let source = try (files ?? []).filter { $0.pathExtension == "swift" }.map {
      try String(contentsOf: $0, encoding: .utf8)
    }
    .joined()
    for match in text.matches(of: /``(?<path>[^`\n]+)``/) {
      // The last part, without the labels of its parameters: each must be declared.
      let last = match.output.path.split(separator: "/").last ?? ""
      let name = last.prefix { $0 != "(" }
      let labels = last.dropFirst(name.count).split { "(:)".contains($0) }.filter { $0 != "_" }
      let declaration = source.firstRange(of: try Regex("(struct|class|enum|protocol|func|var|let|case) \(name)\\b"))
      #expect(declaration != nil || name == "Postgres", "\(match.output.path)")
      for label in labels { #expect(source.contains("\(label)"), "\(match.output.path)") }
    }
  }

  @Test func `the tutorial runs from its first to its last step`() async throws {
    let refused = try Snippets.connect()
    await #expect(throws: PostgresError.self) { try await refused.rows("SELECT 1") }
    try await withDatabase { database, server in
      try await Snippets.migrate(server.url)
      try await Snippets.write(database)
      #expect(try await Snippets.read(database) == 1)
      try await Snippets.transaction(database)
      #expect(try await database.value("SELECT seats FROM events") == 6)
      #expect(try await Snippets.copy(server.url) == 1000)
      try await Snippets.errors(database)
      try await Snippets.run(database)
      Snippets.listen(database)
      try await eventually("it listens") { try await server.backends("query LIKE 'LISTEN%'") == 1 }
    }
  }

  @Test func `the types of the documentation work`() async throws {
    let setUp = """
      CREATE TYPE mood AS ENUM ('sad', 'fine', 'happy');
      CREATE TABLE notes (email text, mood mood, tags text);
      INSERT INTO notes VALUES ('ana@example.org', 'fine', 'a,b')
      """
    try await withDatabase(setUp) { database, _ in
      let row = try #require(try await database.first("SELECT email, mood, tags, ROW('ana'::text, now()) FROM notes"))
      let (email, mood): (TypeSnippets.Email, TypeSnippets.Mood) = (try row[0], try row[1])
      let (tags, host): (TypeSnippets.Tags, TypeSnippets.Host) = (try row[2], try row[3])
      #expect(host.name == "ana" && host.since != nil)
      let found = try await database.first(
        "SELECT tags FROM notes WHERE (email, mood) = (\(email), \(mood)::mood) AND tags = \(tags)")
      #expect(try found?["tags"] == tags)
      #expect(tags.words == ["a", "b"])
    }
  }
}
