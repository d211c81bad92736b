import Foundation
import HTTPServer
import Testing
import TestSupport

@testable import App

/// Who may call each operation, and its limits, as `operations.txt` lists them: a lost limit shows in a review.
@Suite struct OperationTableTests {
  private static let file = "Tests/AppTests/HTTP/operations.txt"

  @Test func `the attributes of all operations are those in the list`() throws {
    let expected = try String(contentsOf: Program.checkout.appending(path: Self.file), encoding: .utf8)
      .split(separator: "\n").map(String.init)
    let actual = App.Operation.allCases.map(Self.line)
    let changes = actual.difference(from: expected).map { change in
      switch change {
      case .insert(_, let line, _): "+ \(line)"
      case .remove(_, let line, _): "- \(line)"
      }
    }
    let difference = changes.sorted { $0.dropFirst() < $1.dropFirst() }.joined(separator: "\n")
    #expect(changes.isEmpty, "If these changes are meant, make them in \(Self.file):\n\(difference)")
  }

  /// Access, rate limit, idempotency and body.
  private static func line(_ operation: App.Operation) -> String {
    let attributes = operation.attributes
    var line = "\(operation): \(attributes.access), \(attributes.rate?.rawValue ?? "no limit")"
    if attributes.takesKey { line += attributes.repeats == .inSession ? ", key in session" : ", key" }
    guard let body = attributes.body else { return line }
    line += body.isRequired ? ", \(body.kind)" : ", optional \(body.kind)"
    guard body.maximum != Request.maximumBody || body.places != nil else { return line }
    line += ", \(body.maximum) bytes"
    if let (name, value) = body.condition { line += " with \(name)=\(value)" }
    return line + (body.places.map { ", \($0.perUser) of a user, \($0.inAll) in all" } ?? "")
  }

  @Test func `the guide names the operations that ignore a key`() throws {
    let ignoring = App.Operation.allCases.map(\.attributes).filter {
      $0.access == .signedIn && $0.method != .get && !$0.takesKey && !$0.path.hasPrefix("/api/v1/auth/")
    }
    let sentence = try #require(Resources.openAPI.firstMatch(of: /operations ignore it:([^.]+)\./)?.1)
    let named = sentence.matches(of: /`([^`]+)`/).map { String($0.1) }
    #expect(Set(named) == Set(ignoring.map { "\($0.method.rawValue) \($0.path)" }))
  }
}
