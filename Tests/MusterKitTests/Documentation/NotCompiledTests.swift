import Foundation
import TestSupport
import Testing

/// The code for Apple's systems, which no compiler here sees: a page lists it, and it is parsed at least.
@Suite struct NotCompiledTests {
  private static let page = "docs/not-compiled-here.md"
  private static let views = "Examples/PlansApp/App"

  private func files(in folder: String) throws -> [String] {
    let root = Program.checkout.appending(path: folder)
    let names = try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".swift") }
    return names.sorted().map { "\(folder)/\($0)" }
  }

  /// A file, a condition, and how often it stands there.
  private func places() throws -> [String] {
    let folders = ["Sources/MusterKit", "Examples", "Tests/MusterKitTests/Documentation"]
    return try folders.flatMap(files).flatMap { file in
      let conditions = try Guide.read(file).matches(of: /(?m)^ *#(?:else)?if (.*(?:canImport|os)\(.*)$/)
      let counts = conditions.reduce(into: [String: Int]()) { $0[String($1.1), default: 0] += 1 }
      return counts.map { "\(file) | \($0.key) | \($0.value)" }
    }
  }

  /// The rows of the page's tables, as their cells.
  private func rows() throws -> [[String]] {
    try Guide.read(Self.page).split(separator: "\n").filter { $0.hasPrefix("| `") }.map { line in
      let cells = line.replacing("\\|", with: "\u{1}").dropFirst().dropLast().split(separator: "|")
      return cells.map { $0.replacing("\u{1}", with: "|").trimmingCharacters(in: .whitespaces) }
    }
  }

  private func code(_ cell: String) -> String { cell.trimmingCharacters(in: ["`"]) }

  @Test func `the page lists every condition, where it stands, and what it does`() throws {
    let rows = try rows().filter { $0.count == 4 }
    let listed = rows.map { "\(code($0[0])) | \(code($0[1])) | \($0[2])" }
    let places = try places()
    #expect(places.count > 10)
    #expect(Set(places).subtracting(listed).sorted() == [], "The page lacks these.")
    #expect(listed.sorted() == Set(listed).intersection(places).sorted(), "These are not there, or twice on the page.")
    for row in rows { #expect(row[3].count > 20, "\(row[0]) needs a sentence.") }
  }

  @Test func `the page lists every file of the app that is in no target`() throws {
    let rows = try rows().filter { $0.count == 2 }
    #expect(rows.map { "\(Self.views)/\(code($0[0]))" }.sorted() == (try files(in: Self.views)))
    for row in rows { #expect(row[1].count > 20, "\(row[0]) needs a sentence.") }
  }

  @Test func `every file of the app is parsed`() async throws {
    let files = try files(in: "Examples/PlansApp").map { Program.checkout.appending(path: $0).path }
    let arguments = ["swiftc", "-frontend", "-parse", "-swift-version", "6"]
    let compiler = try await Program("/usr/bin/env", arguments + files)
    #expect(try await compiler.exitStatus(within: .seconds(120)) == 0, "\(compiler.standardError)")
    // The check can fail.
    let broken = FileManager.default.temporaryDirectory.appending(path: "broken-\(UUID().uuidString).swift")
    defer { try? FileManager.default.removeItem(at: broken) }
    try Data("struct View { var body: some View { Text(\"\") ".utf8).write(to: broken)
    let refusing = try await Program("/usr/bin/env", arguments + [broken.path])
    #expect(try await refusing.exitStatus(within: .seconds(120)) != 0)
  }
}
