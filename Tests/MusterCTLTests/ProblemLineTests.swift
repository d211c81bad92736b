import Foundation
import MusterKit
import TestSupport
import Testing

@testable import musterctl

@Suite struct ProblemLineTests {
  /// The slugs of the table "Errors" in the OpenAPI document.
  private func documented() throws -> [Problem.Slug: Int] {
    let file = Program.checkout.appending(path: "Sources/App/HTTP/openapi.yaml")
    var slugs: [Problem.Slug: Int] = [:]
    for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
      guard let row = line.firstMatch(of: /^    \| (\d{3}) \| (`[^|]+`) \|/) else { continue }
      for name in row.2.matches(of: /`([a-z-]+)`/) { slugs[.init(rawValue: String(name.1))] = Int(row.1) }
    }
    return slugs
  }

  /// Slugs that no response of the API has.
  private static let inside: Set<Problem.Slug> = [
    // Pages for people say these in words.
    "visitor-not-found", "form-sent-before",
    // Commands of `muster` end with these.
    "database-not-empty", "export-failed", "foreign-folder", "invalid-seed",
  ]

  /// The slugs of the service's errors, by its source.
  private func thrown() throws -> Set<Problem.Slug> {
    Set(
      try sources().flatMap { text in
        text.matches(of: /AppError\(\s*\.\w+,\s*"([a-z-]+)"/).map { .init(rawValue: String($0.1)) }
      })
  }

  /// The texts of the service's source files.
  private func sources() throws -> [String] {
    let folder = Program.checkout.appending(path: "Sources/App")
    let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    return try paths.map { try String(contentsOf: folder.appending(path: $0), encoding: .utf8) }
  }

  @Test func `every problem that the service can respond is documented`() throws {
    let thrown = try thrown()
    #expect(thrown.count >= 60)
    #expect(thrown.subtracting(Self.inside).subtracting(try documented().keys) == [])
    #expect(Self.inside.subtracting(thrown) == [])
  }

  @Test func `the client has a constant for every documented problem, and no other`() throws {
    let file = Program.checkout.appending(path: "Sources/MusterKit/Generated/Problem+Slug.swift")
    let text = try String(contentsOf: file, encoding: .utf8)
    let constants = text.matches(of: /: Self = "([a-z-]+)"/).map { Problem.Slug(rawValue: String($0.1)) }
    #expect(Set(constants) == Set(try documented().keys))
  }

  @Test func `only sentences that name a command or this program replace the service's own`() throws {
    #expect(Set(ProblemLine.sentences.keys).subtracting(try documented().keys) == [])
    for sentence in ProblemLine.sentences.values {
      #expect(sentence.contains("musterctl") || sentence.contains("command"), "\(sentence)")
      #expect(sentence.hasSuffix(".") && sentence.count <= 90 && !sentence.contains("\n"), "\(sentence)")
    }
  }

  /// The service's own sentences, by its source, and for how long each makes the caller wait.
  private func sentences() throws -> [(slug: Problem.Slug, text: String, wait: Int?)] {
    let form = /AppError\(\s*\.\w+,\s*"([a-z-]+)",\s*"([^"]+)"(?:,\s*retryAfter:\s*(\d+))?/
    return try sources().flatMap { text in
      text.matches(of: form).map { (.init(rawValue: String($0.1)), String($0.2), $0.3.flatMap { Int($0) }) }
    }
  }

  @Test func `every line is about the service, in words of a terminal, and says once when to try again`() throws {
    let sentences = try sentences()
    #expect(sentences.count >= 50)
    for (slug, text, wait) in sentences where !Self.inside.contains(slug) {
      var problem = Problem(type: slug, title: "", status: 400, detail: text)
      problem.retryAfter = wait
      let line = ProblemLine.text(for: problem)
      #expect(line.hasSuffix(".") && line.ranges(of: "Try again").count <= 1, "\(line)")
      for word in ["Idempotency-Key", "Content-Type", "in the token", "This process"] {
        #expect(!line.contains(word), "\(line)")
      }
    }
  }

  @Test func `a line says what to do and when`() {
    var problem = Problem(
      type: .tooManyAttempts, title: "Too Many Requests", status: 429, detail: "Too many attempts. Try again later.",
      requestId: "5f3a")
    problem.retryAfter = 30
    #expect(ProblemLine.text(for: problem) == "Too many attempts. Try again in 30 s.")
    problem.retryAfter = 3601
    #expect(ProblemLine.text(for: problem) == "Too many attempts. Try again in 61 minutes.")
    let bug = Problem(type: .internalError, title: "Internal Server Error", status: 500, requestId: "5f3a")
    #expect(ProblemLine.text(for: bug).hasSuffix("(request 5f3a)"))
  }

  @Test func `bad fields are named as on the command line`() {
    let problem = Problem(
      type: .invalidFields, title: "Unprocessable Content", status: 422,
      errors: [
        .init(field: "title", code: "wrong-length", message: "must be 1 to 200 characters long"),
        .init(field: "endTime", code: "out-of-range", message: "must be after startTime"),
      ])
    #expect(
      ProblemLine.text(for: problem)
        == "title: must be 1 to 200 characters long. end: must be after startTime.")
  }

  @Test func `a problem of an unknown type shows the service's words`() {
    let new = Problem(type: "too-early", title: "Too Early", status: 425, detail: "Wait for the sun\u{1B}[2J.")
    #expect(ProblemLine.text(for: new) == #"Wait for the sun\u{1B}[2J."#)
    #expect(ProblemLine.text(for: Problem(type: "too-early", title: "Too Early", status: 425)) == "Too Early")
  }
}
