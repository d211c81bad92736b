import Foundation
import Postgres
import Testing

@testable import App

/// A collection as a phone keeps it: the items as they came, byte for byte, and their stamp.
struct HeldCopy: Equatable, Sendable {
  let stamp: String
  /// A JSON array.
  let items: String

  init(stamp: String, items: String) {
    self.stamp = stamp
    self.items = items
  }

  /// - Parameter answer: of the collection's GET, all in one page.
  init(_ collection: App.Collection, _ answer: Answer) throws {
    let body = answer.body
    guard Phone.lists.contains(collection) else {
      items = "[\(body)]"
      stamp = try #require(answer.json["timestamp"].string, "\(body)")
      return
    }
    let start = #"{"items":"#
    let end = try #require(body.range(of: #","nextCursor":null,"timestamp":""#, options: .backwards), "\(body)")
    items = String(body[..<end.lowerBound].dropFirst(start.count))
    stamp = String(body[end.upperBound...].dropLast(#""}"#.count))
  }

  /// What a GET that echoes it sends.
  var ifNoneMatch: (String, String) {
    ("If-None-Match", "\"\(Timestamp(rfc3339: stamp)?.microseconds ?? 0)\"")
  }
}

/// What a validation says of one collection.
struct HeldVerdict: Sendable {
  let isFresh: Bool
  let stamp: String
  /// As they came.
  let items: String?

  init(_ collection: App.Collection, in answer: Answer) throws {
    // Quotation marks inside of items are escaped: this stands nowhere else.
    let start = #""\#(collection.rawValue)":{"invalidate":"#
    let found = try #require(answer.body.range(of: start), "\(answer.body)")
    let rest = answer.body[found.upperBound...]
    isFresh = rest.hasPrefix("false")
    let stamp = rest.dropFirst((isFresh ? #"false,"timestamp":""# : #"true,"timestamp":""#).utf8.count).prefix(27)
    self.stamp = String(stamp)
    let after = answer.body[stamp.endIndex...]
    let itemsStart = #"","updatedItems":"#
    items =
      after.hasPrefix(itemsStart)
      ? Self.array(at: after.dropFirst(itemsStart.count).startIndex, in: answer.body) : nil
  }

  /// The JSON array that begins there.
  private static func array(at start: String.Index, in body: String) -> String? {
    let bytes = body.utf8
    var (depth, place) = (0, start)
    var (isInString, isEscaped) = (false, false)
    while place < bytes.endIndex {
      let byte = bytes[place]
      place = bytes.index(after: place)
      if isEscaped {
        isEscaped = false
      } else if isInString {
        if byte == UInt8(ascii: "\\") { isEscaped = true }
        if byte == UInt8(ascii: "\"") { isInString = false }
      } else if byte == UInt8(ascii: "\"") {
        isInString = true
      } else if byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{") {
        depth += 1
      } else if byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}") {
        depth -= 1
        if depth == 0 { return String(body[start..<place]) }
      }
    }
    return nil
  }
}

extension Phone {
  static let everyCollection = Array(collections.keys)
  /// Those that are lists; the others are one object.
  static let lists = Set(collections.keys).subtracting([.profile, .notificationPreferences])

  /// A collection's GET with room for all of it.
  static func wholePath(of collection: App.Collection) -> String {
    let path = collections[collection] ?? ""
    guard lists.contains(collection) else { return path }
    return path + (path.contains("?") ? "&" : "?") + "limit=100"
  }

  /// What a phone would keep.
  func copy(of collection: App.Collection) async throws -> HeldCopy {
    try HeldCopy(collection, try await send("GET", Self.wholePath(of: collection)))
  }

  /// Echoes stamps, or asks as if there were no copies.
  func validate(
    _ collections: [App.Collection] = Phone.everyCollection, echoing stamps: [App.Collection: String] = [:],
    query: String = ""
  ) async throws -> Answer {
    let claims = collections.map { name in
      "\"\(name.rawValue)\": \(stamps[name].map { "\"\($0)\"" } ?? "null")"
    }
    return try await send("POST", "cache/validate/\(id)\(query)", "{\(claims.joined(separator: ", "))}")
  }
}
