import Foundation
import Postgres
import Testing

@testable import App

/// A phone's copy of a collection: the items, byte for byte as received, and their stamp.
struct HeldCopy: Equatable, Sendable {
  let stamp: String
  /// A JSON array.
  let items: String

  init(stamp: String, items: String) {
    self.stamp = stamp
    self.items = items
  }

  /// - Parameter response: of a GET of the collection, with all items in one page.
  init(_ collection: App.Collection, _ response: APIResponse) throws {
    let body = response.body
    guard !collection.facts.isSingleObject else {
      items = "[\(body)]"
      stamp = try #require(response.json["timestamp"].string, "\(body)")
      return
    }
    let start = #"{"items":"#
    let end = try #require(body.range(of: #","nextCursor":null,"timestamp":""#, options: .backwards), "\(body)")
    items = String(body[..<end.lowerBound].dropFirst(start.count))
    stamp = String(body[end.upperBound...].prefix { $0 != "\"" })
  }

  /// The header with which a GET echoes the stamp.
  var ifNoneMatch: (String, String) {
    ("If-None-Match", "\"\(Timestamp(rfc3339: stamp)?.microseconds ?? 0)\"")
  }
}

extension Phone {
  static let everyCollection = App.Collection.allCases
  /// The collections that are lists. The others are single objects.
  static let lists = Set(everyCollection.filter { !$0.facts.isSingleObject })

  /// The path of a collection's GET with all items in one page.
  static func wholePath(of collection: App.Collection) -> String {
    let path = collection.facts.path
    guard lists.contains(collection) else { return path }
    return path + (path.contains("?") ? "&" : "?") + "limit=100"
  }

  /// The copy that a phone would keep.
  func copy(of collection: App.Collection) async throws -> HeldCopy {
    try HeldCopy(collection, try await send("GET", Self.wholePath(of: collection)))
  }

  /// Validates collections by their stamps, or without copies if there are no stamps.
  func validate(
    _ collections: [App.Collection] = Phone.everyCollection, echoing stamps: [App.Collection: String] = [:],
    query: String = ""
  ) async throws -> APIResponse {
    let claims = collections.map { name in
      "\"\(name.rawValue)\": \(stamps[name].map { "\"\($0)\"" } ?? "null")"
    }
    return try await send("POST", "cache/validate/\(id)\(query)", "{\(claims.joined(separator: ", "))}")
  }
}
