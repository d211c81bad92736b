import Testing

@testable import App

extension Phone {
  @discardableResult
  func report(
    _ other: Phone, reason: String = "spam", text: String? = nil, expecting status: Int = 201,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let words = text.map { "\"\($0)\"" } ?? "null"
    return try await perform(
      act: "report", [:], #"{"userId": "\#(other.id)", "reason": "\#(reason)", "text": \#(words)}"#, expecting: status,
      sourceLocation: sourceLocation)
  }

  @discardableResult
  func report(
    event: String, expecting status: Int = 201, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(
      act: "report", [:], #"{"eventId": "\#(event)", "reason": "other"}"#, expecting: status,
      sourceLocation: sourceLocation)
  }
}

extension TestApp {
  /// All reports as an operator sees them, latest first.
  func reports() async throws -> [ReportEntry] {
    try await ReportEntry.list(all: true, atMost: 100, in: database)
  }

  /// Closes all open reports.
  func closeReports() async throws {
    for report in try await ReportEntry.list(all: false, atMost: 100, in: database) {
      let id = try #require(Report.ID(report.id))
      #expect(try await Report.close(id, note: nil, in: database))
    }
  }
}
