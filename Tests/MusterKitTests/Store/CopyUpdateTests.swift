import Foundation
import Testing

@testable import MusterKit

/// Which responses the store believes, without a network.
@Suite struct CopyUpdateTests {
  private let sentAt = Date(timeIntervalSince1970: 1_777_000_000)

  private func entry(_ key: String, _ digest: String = "1") throws -> StoredCopy.Entry {
    try #require(StoredCopy.Entry(key: key, digest: digest, item: item(key)))
  }

  private func item(_ key: String) -> JSONValue { .object(["id": .string(key)]) }

  private func copy(_ keys: [String], stamp: Stamp = "old", nextCursor: String? = nil) throws -> StoredCopy {
    StoredCopy(
      collection: .events, stamp: stamp, entries: try keys.map { try entry($0) }, nextCursor: nextCursor,
      provedAt: .distantPast)
  }

  private func stale(
    _ keys: [String], changed: [String], stamp: Stamp = "new", nextCursor: String? = nil, missing: [String]? = nil
  ) -> Verdict {
    let pairs = changed.map { ($0, Changed(digest: "2", item: item($0))) }
    return Verdict(
      invalidate: true, timestamp: stamp, keys: keys, changed: Dictionary(uniqueKeysWithValues: pairs),
      nextCursor: nextCursor, missing: missing)
  }

  private func proved(_ update: CopyUpdate) -> StoredCopy? {
    guard case .nothing(.proved(let copy)) = update.need else { return nil }
    return copy
  }

  @Test func `a fresh copy keeps its items and gets a later proof`() throws {
    let copy = try copy(["a", "b"])
    var update = CopyUpdate(.events, from: copy)
    #expect(update.claim == Claim(timestamp: "old", items: ["a": "1", "b": "1"]))
    update.take(Verdict(invalidate: false, timestamp: "old"), sentAt: sentAt)
    #expect(proved(update)?.entries == copy.entries && proved(update)?.provedAt == sentAt)
  }

  @Test func `a stale copy becomes the list of the keys`() throws {
    var update = CopyUpdate(.events, from: try copy(["a", "b", "c"]))
    update.take(stale(["d", "c", "a"], changed: ["d", "a"]), sentAt: sentAt)
    let new = try #require(proved(update))
    #expect(new.entries.map(\.key) == ["d", "c", "a"])
    #expect(new.entries.map(\.digest) == ["2", "1", "2"])
    #expect(new.stamp == "new")
  }

  @Test func `"fresh" for another stamp, or without a copy, is not believed`() throws {
    for (copy, stamp) in [(nil, "old"), (try copy(["a"]), "new"), (try copy(["a"]), nil)] as [(StoredCopy?, Stamp?)] {
      var update = CopyUpdate(.events, from: copy)
      update.take(Verdict(invalidate: false, timestamp: stamp), sentAt: sentAt)
      #expect(update.need == .verdict)
      #expect(update.claim == Claim(timestamp: nil, items: [:]))
    }
  }

  @Test func `an item that was neither sent nor claimed makes the store ask for everything`() throws {
    var update = CopyUpdate(.events, from: try copy(["a"]))
    update.take(stale(["a", "b"], changed: []), sentAt: sentAt)
    #expect(update.need == .verdict)
    #expect(update.claim == Claim(timestamp: nil, items: [:]))
    update.take(stale(["a", "b"], changed: ["a", "b"]), sentAt: sentAt)
    #expect(proved(update)?.entries.map(\.key) == ["a", "b"])
  }

  @Test(arguments: [
    Verdict(invalidate: true, timestamp: "new"), Verdict(invalidate: true, timestamp: "new", keys: ["a"]),
    Verdict(invalidate: true, timestamp: "new", keys: ["b", "b"], changed: ["b": Changed(digest: "2", item: .null)]),
    Verdict(invalidate: true, timestamp: "new", keys: ["b"], changed: ["b": Changed(digest: "2 3", item: .null)]),
    nil,
  ])
  func `after wrong responses the store gives up, and keeps its copy`(verdict: Verdict?) throws {
    let copy = try copy(["a"])
    var update = CopyUpdate(.events, from: copy)
    var asked = 0
    while update.need == .verdict {
      update.take(verdict, sentAt: sentAt)
      asked += 1
    }
    #expect(asked < 10)
    guard case .nothing(.failed(_, let beginning)) = update.need else {
      Issue.record("\(update.need)")
      return
    }
    #expect(beginning == copy)
  }

  @Test func `a collection that the service does not know is not a failure`() {
    var update = CopyUpdate(.events, from: nil)
    update.take(Verdict(invalidate: true), sentAt: sentAt)
    #expect(update.need == .nothing(.unknown))
  }

  @Test func `missing items are asked for until the list is complete`() throws {
    var update = CopyUpdate(.events, from: try copy(["a", "b"]))
    update.take(stale(["a", "b", "c", "d"], changed: ["b"], missing: ["c", "d"]), sentAt: .distantPast)
    #expect(update.need == .verdict)
    // Nothing has this stamp yet, and what came is not sent again.
    #expect(update.claim == Claim(timestamp: nil, items: ["a": "1", "b": "2"]))
    update.take(stale(["a", "b", "c", "d"], changed: ["c"], missing: ["d"]), sentAt: .distantPast)
    #expect(update.claim.items == ["a": "1", "b": "2", "c": "2"])
    // The list has changed meanwhile.
    update.take(stale(["d", "c", "a"], changed: ["d"], stamp: "newer"), sentAt: sentAt)
    let new = try #require(proved(update))
    #expect(new.entries.map(\.key) == ["d", "c", "a"] && new.entries.map(\.digest) == ["2", "2", "1"])
    #expect(new.stamp == "newer" && new.provedAt == sentAt)
  }

  @Test func `an old version of a missing item is not shown as the new one`() throws {
    var update = CopyUpdate(.events, from: try copy(["a", "b"]))
    update.take(stale(["a", "b"], changed: [], missing: ["b"]), sentAt: sentAt)
    #expect(update.need == .verdict && update.claim.items == ["a": "1"])
  }

  @Test func `missing items that never come end the update`() throws {
    var update = CopyUpdate(.events, from: nil)
    for _ in 0..<10 where update.need == .verdict {
      update.take(stale(["a", "b"], changed: ["a"], missing: ["b"]), sentAt: sentAt)
    }
    guard case .nothing(.failed(_, nil)) = update.need else {
      Issue.record("\(update.need)")
      return
    }
  }
}
