import Foundation
import TestSupport
import Testing

@testable import App

/// A phone's copy of a collection that is brought up to date by parts, which need no keys. See also ``DeltaCopy``.
struct PartsCopy: Equatable, Sendable {
  /// Of the items so far.
  private(set) var stamp: String?
  /// In the list's order.
  private(set) var items: [DeltaCopy.Item] = []
  /// Where the list continues after the items.
  private(set) var cursor: String?
  /// The items of the copy before that are not in the list so far. Those that it has passed over come last.
  private var rest: [DeltaCopy.Item] = []

  /// The maximum number of items in a verdict, unless a test says another one: few, so that short lists take several.
  static let fewItems = 3

  /// The items as a JSON array.
  var array: String { "[" + items.map(\.json).joined(separator: ",") + "]" }
  /// The whole list; nil while some of it is still to come.
  var held: HeldCopy? { cursor == nil ? stamp.map { HeldCopy(stamp: $0, items: array) } : nil }

  /// The most digests of a claim.
  private static let mostClaimed = 2000

  /// The items that the service need not send.
  private var known: [DeltaCopy.Item] { cursor == nil ? items : rest }

  /// The phone's claim about the copy.
  func claim(limit: Int = fewItems) -> String {
    let held = known.prefix(Self.mostClaimed).map(\.digest).joined()
    guard let cursor else {
      return #"{"timestamp":\#(stamp.map { "\"\($0)\"" } ?? "null"),"held":"\#(held)","limit":\#(limit)}"#
    }
    return #"{"held":"\#(held)","limit":\#(limit),"cursor":"\#(cursor)"}"#
  }

  /// Takes over the verdict on a stale copy.
  ///
  /// - Parameter verdict: the members of the verdict.
  mutating func apply(_ verdict: [String: String]) throws {
    let timestamp = try #require(verdict["timestamp"])
    guard timestamp != "null" else {
      // The list has changed since the cursor was made.
      #expect(cursor != nil && verdict.keys.sorted() == ["invalidate", "timestamp"])
      (items, rest, cursor, stamp) = (items + rest, [], nil, nil)
      return
    }
    #expect(verdict.keys.sorted() == ["invalidate", "nextCursor", "parts", "timestamp"])
    let (known, claimed) = (known, Array(known.prefix(Self.mostClaimed)))
    var places = Set(claimed.indices)
    var new: [DeltaCopy.Item] = []
    var end: Int?
    var last = 0
    for part in try RawJSON.elements(of: try #require(verdict["parts"])).map(RawJSON.members) {
      if let json = part["item"] {
        #expect(part.keys.sorted() == ["digest", "item"])
        let item = DeltaCopy.Item(digest: try RawJSON.text(try #require(part["digest"])), json: json)
        // Nothing is sent that the phone has.
        #expect(!claimed.contains(item), "\(json)")
        new.append(item)
        end = nil
      } else {
        #expect(part.keys.sorted() == ["count", "first"])
        let first = try #require(part["first"].flatMap { Int($0) })
        let run = first..<first + (try #require(part["count"].flatMap { Int($0) }))
        // Each place comes once, and in runs that are as long as they can be.
        guard !run.isEmpty, places.isSuperset(of: run), first != end else { throw Unexpected("\(verdict)") }
        places.subtract(run)
        new += claimed[run]
        end = run.upperBound
        last = run.upperBound
      }
    }
    let next = try #require(verdict["nextCursor"])
    let stamp = try RawJSON.text(timestamp)
    // Each verdict makes progress, and verdicts with a cursor belong to those before.
    #expect(!new.isEmpty || next == "null")
    #expect(cursor == nil || stamp == self.stamp)
    items = cursor == nil ? new : items + new
    let (passed, following) = (places.filter { $0 < last }.sorted(), places.filter { $0 >= last }.sorted())
    rest = following.map { claimed[$0] } + known.dropFirst(claimed.count) + passed.map { claimed[$0] }
    cursor = next == "null" ? nil : try RawJSON.text(next)
    if cursor == nil { rest = [] }
    self.stamp = stamp
  }
}

extension Phone {
  /// The body of a validation with copies. Collections without a copy have an empty one.
  static func claims(
    _ copies: [App.Collection: PartsCopy], of collections: [App.Collection] = everyCollection,
    limit: Int = PartsCopy.fewItems
  ) -> String {
    let claims = collections.map { "\"\($0.rawValue)\":\(copies[$0, default: PartsCopy()].claim(limit: limit))" }
    return "{\(claims.joined(separator: ","))}"
  }

  /// Brings copies up to date, with as many validations as it takes.
  ///
  /// - Returns: the number of validations.
  @discardableResult
  func catchUp(
    _ copies: inout [App.Collection: PartsCopy], of collections: [App.Collection] = everyCollection,
    limit: Int = PartsCopy.fewItems
  ) async throws -> Int {
    var open = collections
    for count in 1...1000 {
      let verdicts = try await changes(since: Self.claims(copies, of: open, limit: limit))
      for collection in open {
        let verdict = try #require(verdicts[collection.rawValue])
        if verdict["invalidate"] == "false" {
          #expect(verdict.keys.sorted() == ["invalidate", "timestamp"])
          #expect(verdict["timestamp"] == copies[collection]?.stamp.map { "\"\($0)\"" })
        } else {
          try copies[collection, default: PartsCopy()].apply(verdict)
        }
      }
      open.removeAll { copies[$0]?.held != nil }
      if open.isEmpty { return count }
    }
    throw Unexpected("some items are still to come")
  }
}
