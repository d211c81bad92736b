import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// A phone's copy of a live event with the first page of its guests.
struct OpenedEvent: Sendable {
  let phone: Phone
  let body: String
  private let path: String
  private let tag: String

  /// - Parameter response: to a GET of ``path(_:)``.
  private init(_ phone: Phone, _ path: String, _ response: APIResponse) throws {
    self.phone = phone
    self.path = path
    body = response.body
    tag = try #require(response.header("ETag"), "\(response.body)")
  }

  init(_ event: String, of phone: Phone) async throws {
    let path = "events/\(event)?include=guests"
    try self.init(phone, path, try await phone.send("GET", path))
  }

  /// The copies that these phones would have after opening each event of their lists.
  static func all(of phones: [Phone]) async throws -> [OpenedEvent] {
    try await withThrowingTaskGroup(of: [OpenedEvent].self) { group in
      for phone in phones {
        group.addTask {
          var copies: [OpenedEvent] = []
          for event in try await phone.get("events?limit=100")["items"].array {
            copies.append(try await OpenedEvent(try #require(event["id"].string), of: phone))
          }
          return copies
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
  }

  /// The header with which a GET echoes the tag.
  var ifNoneMatch: (String, String) { ("If-None-Match", tag) }

  /// Whether the service says that the copy is fresh.
  func isCalledFresh() async throws -> Bool {
    try await phone.send("GET", path, headers: [ifNoneMatch]).status == 304
  }

  /// Expects a copy that is called fresh to be what the service sends now.
  func expectNoFalse304(_ what: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    guard try await isCalledFresh() else { return }
    let now = try await phone.send("GET", path).body
    #expect(body == now, "\(what): \(path) of \(phone.username)", sourceLocation: sourceLocation)
  }
}
