import Foundation
import Testing

@testable import App

/// A calendar's copy of a feed.
struct CalendarCopy: Sendable {
  /// The path of the feed.
  let path: String
  let text: String
  let tag: String

  /// The unfolded lines.
  var lines: [String] {
    text.replacing("\r\n ", with: "").split(separator: "\r\n").map(String.init)
  }

  /// The lines of each event, by its id.
  var events: [String: [String]] {
    var found: [String: [String]] = [:]
    for part in text.replacing("\r\n ", with: "").components(separatedBy: "BEGIN:VEVENT\r\n").dropFirst() {
      let lines = part.components(separatedBy: "\r\n").prefix { $0 != "END:VEVENT" }
      let id = lines.first { $0.hasPrefix("UID:") }?.dropFirst("UID:".count)
      found[String(id ?? ""), default: []] += lines
    }
    return found
  }
}

extension Phone {
  /// Makes a link to the calendar feed.
  ///
  /// - Returns: the path of the feed.
  func makeCalendarLink(sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
    let response = try await act("makeCalendarLink", [:], 201, sourceLocation)
    let url = try #require(response.json["url"].string.flatMap { URL(string: $0) }, sourceLocation: sourceLocation)
    return url.path
  }
}

extension TestApp {
  /// Reads a feed as a calendar app does, without a token.
  func calendarFeed(
    _ path: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> CalendarCopy {
    let response = try await send("GET", path)
    #expect(response.status == 200, "\(response.body)", sourceLocation: sourceLocation)
    return CalendarCopy(
      path: path, text: response.body, tag: try #require(response.header("ETag"), sourceLocation: sourceLocation))
  }
}
