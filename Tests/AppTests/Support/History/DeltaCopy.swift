import Foundation
import TestSupport
import Testing

@testable import App

/// A phone's copy of a collection, kept item by item, byte for byte as received. A validation brings it up to date by
/// what has changed.
struct DeltaCopy: Equatable, Sendable {
  struct Item: Equatable, Sendable {
    let digest: String
    let json: String
  }

  /// How the server finds out what the phone lacks.
  enum Method: Sendable {
    case digests
    /// Only items with a later time than the copy are sent. A server that does this breaks the promise. The test
    /// plays it by leaving out the other items.
    case times
  }

  private(set) var stamp: String?
  private(set) var keys: [String] = []
  /// By key. While some items are missing, it also has earlier forms of them.
  private(set) var items: [String: Item] = [:]
  private(set) var nextCursor: String?

  /// The items as a JSON array.
  var array: String { "[" + keys.compactMap { items[$0]?.json }.joined(separator: ",") + "]" }
  var digests: [String] { keys.compactMap { items[$0]?.digest } }
  var held: HeldCopy? { stamp.map { HeldCopy(stamp: $0, items: array) } }

  /// The phone's claim about the copy.
  func claim(by method: Method = .digests) -> String {
    let stamp = stamp.map { "\"\($0)\"" } ?? "null"
    guard method == .digests else { return stamp }
    let digests = items.sorted { $0.key < $1.key }.map { "\"\($0)\":\"\($1.digest)\"" }
    return #"{"timestamp":\#(stamp),"items":{\#(digests.joined(separator: ","))}}"#
  }

  /// Takes over the verdict on a stale copy. The copy has no stamp while items are missing.
  ///
  /// - Parameter verdict: the members of the verdict.
  /// - Returns: the keys of the missing items.
  mutating func apply(_ verdict: [String: String], by method: Method = .digests) throws -> [String] {
    let keys = try RawJSON.texts(in: try #require(verdict["keys"]))
    let changed = try RawJSON.members(of: try #require(verdict["changed"]))
    let missing = try verdict["missing"].map { try RawJSON.texts(in: $0) } ?? []
    #expect(verdict["missing"] == nil || !missing.isEmpty)
    #expect(Set(keys).count == keys.count && Set(changed.keys).union(missing).isSubset(of: keys))
    #expect(changed.keys.allSatisfy { !missing.contains($0) })
    var next: [String: Item] = [:]
    for key in keys {
      let held = items[key]
      if let change = try changed[key].map(RawJSON.members) {
        let item = Item(digest: try RawJSON.text(change["digest"] ?? ""), json: try #require(change["item"]))
        // Nothing is sent that the phone has.
        if method == .digests { #expect(item != held, "\(key)") }
        next[key] = method == .times && !isLater(item) ? held ?? item : item
      } else {
        next[key] = held
        if held == nil, !missing.contains(key) { throw Unexpected("\(key) is neither held nor sent") }
      }
    }
    items = next
    self.keys = keys
    let cursor = try #require(verdict["nextCursor"])
    nextCursor = cursor == "null" ? nil : try RawJSON.text(cursor)
    stamp = missing.isEmpty ? try RawJSON.text(try #require(verdict["timestamp"])) : nil
    return missing
  }

  /// Whether one of the item's times may be later than the copy.
  private func isLater(_ item: Item) -> Bool {
    guard let stamp else { return true }
    let times = item.json.matches(of: /"(?:\w+At|since)":"([^"]+)"/).map(\.1)
    // The times have whole seconds.
    return times.contains { $0.prefix(19) >= stamp.prefix(19) }
  }
}

extension Phone {
  /// The body of a validation with copies. Collections without a copy have an empty one.
  static func claims(
    _ copies: [App.Collection: DeltaCopy], of collections: [App.Collection] = everyCollection,
    by method: DeltaCopy.Method = .digests
  ) -> String {
    let claims = collections.map { "\"\($0.rawValue)\":\(copies[$0, default: DeltaCopy()].claim(by: method))" }
    return "{\(claims.joined(separator: ","))}"
  }

  /// Sends claims, and returns the members of each verdict by the name of its collection.
  func changes(since claims: String) async throws -> [String: [String: String]] {
    let response = try await send("POST", "cache/validate/\(id)?include=changes", claims)
    #expect(response.status == 200, "\(response.body)")
    return try RawJSON.members(of: response.body).mapValues { try RawJSON.members(of: $0) }
  }

  /// Brings copies up to date, with as many validations as it takes.
  ///
  /// - Returns: the number of validations.
  @discardableResult
  func catchUp(
    _ copies: inout [App.Collection: DeltaCopy], of collections: [App.Collection] = everyCollection,
    by method: DeltaCopy.Method = .digests
  ) async throws -> Int {
    var open = collections
    for count in 1...100 {
      let verdicts = try await changes(since: Self.claims(copies, of: open, by: method))
      for collection in open {
        let verdict = try #require(verdicts[collection.rawValue])
        if verdict["invalidate"] == "false" {
          #expect(verdict.keys.sorted() == ["invalidate", "timestamp"])
          #expect(verdict["timestamp"] == copies[collection]?.stamp.map { "\"\($0)\"" })
          open.removeAll { $0 == collection }
        } else if try copies[collection, default: DeltaCopy()].apply(verdict, by: method).isEmpty {
          open.removeAll { $0 == collection }
        }
      }
      if open.isEmpty { return count }
    }
    throw Unexpected("some items are still missing")
  }
}
