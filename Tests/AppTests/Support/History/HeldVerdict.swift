import Foundation
import Postgres
import Testing

@testable import App

/// The result of a validation for one collection.
struct HeldVerdict: Sendable {
  let isFresh: Bool
  let stamp: String
  /// The bytes as received.
  let items: String?

  init(_ collection: App.Collection, in response: APIResponse) throws {
    // Items cannot contain this text, because quotation marks in them are escaped.
    let start = #""\#(collection.rawValue)":{"invalidate":"#
    let found = try #require(response.body.range(of: start), "\(response.body)")
    let rest = response.body[found.upperBound...]
    isFresh = rest.hasPrefix("false")
    let stamp = rest.dropFirst((isFresh ? #"false,"timestamp":""# : #"true,"timestamp":""#).utf8.count).prefix(27)
    self.stamp = String(stamp)
    let after = response.body[stamp.endIndex...]
    let itemsStart = #"","updatedItems":"#
    items =
      after.hasPrefix(itemsStart)
      ? Self.array(at: after.dropFirst(itemsStart.count).startIndex, in: response.body) : nil
  }

  /// The JSON array that begins at `start`.
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
