import Testing

@testable import generate

/// The generator refuses a document that it would misread.
@Suite struct GeneratorFaultTests {
  /// - Parameters:
  ///   - attributes: lines of the operation, such as `x-rate: none`
  ///   - responses: the descriptions of its responses, by status
  private func read(
    _ method: String, _ attributes: String..., responses: [(String, String)] = [], root: String = "security: [{}]"
  ) throws {
    let text = """
      # | `x-rate` | a | b |
      # | `x-body` | a | b |
      # | `x-repeats` | a | b |
      openapi: 3.1.0
      \(root)
      paths:
        /things:
          \(method):
            operationId: act
            summary: Act
      \(attributes.map { "      \($0)" }.joined(separator: "\n"))
            responses:
              '204': {description: Done}
      \(responses.map { "        '\($0.0)': {description: '\($0.1)'}" }.joined(separator: "\n"))
      """
    _ = try Document(yaml: text).operations()
  }

  private let signedIn = "security: [{bearer: []}]"
  private let limited = ("429", "`rate-limited`")
  private let body = "requestBody: {content: {application/json: {schema: {type: object}}}}"
  private let key = "parameters: [{name: Idempotency-Key, in: header}, {name: include, in: query}]"

  private func fault(_ read: () throws -> Void) -> String {
    do {
      try read()
      return "none"
    } catch {
      return "\(error)"
    }
  }

  @Test func `an operation without a token says how it is limited`() throws {
    try read("put", "x-rate: none")
    try read("put", "x-rate: files", responses: [limited])
    #expect(fault { try read("put") }.contains("without a token, x-rate"))
    try read("put", signedIn, responses: [limited])
  }

  @Test func `an operation says who may call it`() throws {
    try read("put", "security: []", "x-rate: none", root: "info: {}")
    #expect(fault { try read("put", "x-rate: none", root: "info: {}") }.contains("`security` is missing"))
  }

  @Test func `a key that the head of the document does not explain is refused`() {
    #expect(fault { try read("put", "x-rates: none") }.contains("`x-rates` is not in the table"))
    #expect(
      fault { try read("put", "x-rate: none", "parameters: [{name: a, in: query, x-texts: line}]") }
        .contains("`x-texts` is not in the table"))
  }

  @Test func `the responses name the refusals that follow from limits and keys`() throws {
    #expect(fault { try read("put", signedIn) }.contains("429 lacks `rate-limited`"))
    #expect(fault { try read("put", "x-rate: none", responses: [limited]) }.contains("429 has no reason"))
    let running = ("409", "`already-there`, `request-running`")
    try read("put", signedIn, key, responses: [limited, running])
    #expect(fault { try read("put", signedIn, key, responses: [limited]) }.contains("409 lacks `request-running`"))
    #expect(
      fault { try read("put", signedIn, key, responses: [limited, ("409", "`already-there`")]) }
        .contains("409 lacks `request-running`"))
    #expect(fault { try read("put", signedIn, responses: [limited, running]) }.contains("409 has no reason"))
  }

  @Test func `a large body has all of its limits, and a token`() throws {
    let running = ("409", "`request-running`")
    let whole = "x-body: {if: include=changes, maximum: 100000, perUser: 1, inAll: 2}"
    try read("put", signedIn, key, body, whole, responses: [limited, running])
    for part in ["maximum: 100000, inAll: 2", "maximum: 100000, perUser: 1", "perUser: 1, inAll: 2"] {
      let fault = fault { try read("put", signedIn, body, "x-body: {\(part)}", responses: [limited]) }
      #expect(fault.contains("x-body has `maximum`, `perUser` and `inAll`"), "\(part)")
    }
    #expect(
      fault { try read("put", "x-rate: none", body, "x-body: {maximum: 100000, perUser: 1, inAll: 2}") }
        .contains("needs a token"))
    #expect(fault { try read("put", signedIn, key, whole, responses: [limited, running]) }.contains("is for the body"))
    #expect(fault { try read("put", signedIn, body, whole, responses: [limited]) }.contains("`include`"))
    let odd = "x-body: {if: changes, maximum: 100000, perUser: 1, inAll: 2}"
    #expect(fault { try read("put", signedIn, body, odd, responses: [limited]) }.contains("the `if` of x-body"))
  }

  @Test(arguments: [
    ("| 404 | `thing-not-found` | gone | or moved |", "has 4 cells"), ("| 404 | `thing-not-found` |", "has 2 cells"),
    (#"| 404 | `thing-not-found` | gone \| or moved |"#, "the table of errors is gone"),
    ("| 404 | `a`, `b` | gone |\n| 409 | `b` | here |", "the slug b has two rows"),
  ]) func `a row of the table of errors has three cells`(rows: String, expected: String) throws {
    let lines = rows.split(separator: "\n").map { "    \($0)" }.joined(separator: "\n")
    let document = try Document(yaml: "openapi: 3.1.0\ninfo:\n  description: |\n\(lines)\n")
    #expect(fault { _ = try slugsFile(of: document) }.contains(expected))
  }
}
