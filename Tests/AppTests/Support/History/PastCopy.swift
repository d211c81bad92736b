import Foundation
import TestSupport
import Testing

@testable import App

/// A phone's copy of the past events, which have no stamp: the digests of its items tell what is out of date.
struct PastCopy: Sendable {
  private(set) var items: [DeltaCopy.Item] = []
  /// Where the list continues after the items.
  private(set) var cursor: String?

  /// The items as a JSON array.
  var array: String { "[" + items.map(\.json).joined(separator: ",") + "]" }
  private var held: String { items.map(\.digest).joined() }

  /// Asks once, and takes over the list as it is now.
  ///
  /// - Returns: whether the service said that the copy is the list as it is now.
  @discardableResult
  mutating func validate(for phone: Phone, limit: Int = 100) async throws -> Bool {
    let claim = #"{"pastEvents":{"held":"\#(held)","limit":\#(limit)}}"#
    let verdict = try #require(try await phone.changes(since: claim)["pastEvents"])
    #expect(verdict.keys.sorted() == ["invalidate", "nextCursor", "parts", "timestamp"])
    #expect(verdict["invalidate"] == "true" && verdict["timestamp"] == "null")
    let claimed = items
    items = []
    var isNew = false
    for part in try RawJSON.elements(of: try #require(verdict["parts"])).map(RawJSON.members) {
      if let json = part["item"] {
        let item = DeltaCopy.Item(digest: try RawJSON.text(try #require(part["digest"])), json: json)
        #expect(!claimed.contains(item), "\(json)")
        items.append(item)
        isNew = true
      } else {
        let first = try #require(part["first"].flatMap { Int($0) })
        items += claimed[first..<first + (try #require(part["count"].flatMap { Int($0) }))]
      }
    }
    let next = try #require(verdict["nextCursor"])
    cursor = next == "null" ? nil : try RawJSON.text(next)
    return !isNew && items == claimed
  }

  /// Expects the copy to be what the service sends.
  func expectRight(for phone: Phone, _ what: String = "", sourceLocation: SourceLocation = #_sourceLocation)
    async throws
  {
    let list = try RawJSON.members(of: try await phone.send("GET", "events?when=past&limit=100").body)
    #expect(array == list["items"], "\(what) of \(phone.username)", sourceLocation: sourceLocation)
  }
}
