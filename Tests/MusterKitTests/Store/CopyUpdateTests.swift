import Foundation
import Testing

@testable import MusterKit

/// Which responses the store believes, without a network.
@Suite struct CopyUpdateTests {
  private static let (old, new) = ("old-old-old", "new-new-new")
  private let sentAt = Date(timeIntervalSince1970: 1_777_000_000)

  private func entry(_ key: String, _ digest: String) throws -> StoredCopy.Entry {
    try #require(StoredCopy.Entry(key: key, digest: digest, item: item(key)))
  }

  private func item(_ key: String) -> JSONValue { .object(["id": .string(key)]) }

  /// A copy whose digests are `a-old-old-1` and so on.
  private func copy(_ keys: [String], stamp: Stamp = "old", nextCursor: String? = nil) throws -> StoredCopy {
    StoredCopy(
      collection: .events, stamp: stamp, entries: try keys.map { try entry($0, digest($0)) }, nextCursor: nextCursor,
      provedAt: .distantPast)
  }

  private func digest(_ key: String) -> String { "\(key)-\(Self.old)".prefix(11).description }

  private func held(_ first: Int, _ count: Int = 1) -> ListPart { ListPart(first: first, count: count) }

  private func new(_ key: String) -> ListPart { ListPart(digest: Self.new, item: item(key)) }

  private func stale(_ parts: ListPart..., stamp: Stamp = "new", nextCursor: String? = nil) -> Verdict {
    Verdict(invalidate: true, timestamp: stamp, nextCursor: nextCursor, parts: parts)
  }

  private func proved(_ update: CopyUpdate) -> StoredCopy? {
    guard case .nothing(.proved(let copy)) = update.need else { return nil }
    return copy
  }

  private let everything = Claim(timestamp: nil, held: [], limit: 500)

  @Test func `a fresh copy keeps its items and gets a later proof`() throws {
    let copy = try copy(["a", "b"])
    var update = CopyUpdate(.events, from: copy)
    #expect(update.claim == Claim(timestamp: "old", held: [digest("a"), digest("b")], limit: 500))
    update.take(Verdict(invalidate: false, timestamp: "old"), sentAt: sentAt)
    #expect(proved(update)?.entries == copy.entries && proved(update)?.provedAt == sentAt)
  }

  @Test func `a stale copy becomes the list of the parts`() throws {
    var update = CopyUpdate(.events, from: try copy(["a", "b", "c"]))
    update.take(stale(new("d"), held(1, 2), new("a")), sentAt: sentAt)
    let list = try #require(proved(update))
    #expect(list.entries.map(\.key) == ["d", "b", "c", "a"])
    #expect(list.entries.map(\.digest) == [Self.new, digest("b"), digest("c"), Self.new])
    #expect(list.stamp == "new" && list.provedAt == sentAt)
  }

  @Test func `a stamp alone finds out whether a copy is fresh`() throws {
    let copy = try copy(["a"])
    var update = CopyUpdate(.events, from: copy)
    #expect(update.digestsToSpare == 1)
    update.takeStampVerdict(Verdict(invalidate: false, timestamp: "old"), sentAt: sentAt)
    #expect(proved(update)?.entries == copy.entries && proved(update)?.provedAt == sentAt)
    update = CopyUpdate(.events, from: copy)
    update.takeStampVerdict(Verdict(invalidate: true, timestamp: "new"), sentAt: .distantPast)
    #expect(update.need == .verdict && update.digestsToSpare == 0)
    #expect(update.claim == Claim(timestamp: nil, held: [digest("a")], limit: 500))
    update.take(stale(held(0), new("b")), sentAt: sentAt)
    #expect(proved(update)?.entries.map(\.key) == ["a", "b"])
    update = CopyUpdate(.events, from: copy)
    update.takeStampVerdict(Verdict(invalidate: true), sentAt: sentAt)
    #expect(update.need == .nothing(.unknown))
    update = CopyUpdate(.events, from: copy)
    for _ in 0..<10 where update.need == .verdict { update.takeStampVerdict(nil, sentAt: sentAt) }
    #expect(update.need != .verdict && proved(update) == nil)
  }

  @Test func `"fresh" for another stamp, or without a copy, is not believed`() throws {
    for (copy, stamp) in [(nil, "old"), (try copy(["a"]), "new"), (try copy(["a"]), nil)] as [(StoredCopy?, Stamp?)] {
      var update = CopyUpdate(.events, from: copy)
      update.take(Verdict(invalidate: false, timestamp: stamp), sentAt: sentAt)
      #expect(update.need == .verdict)
      #expect(update.claim == everything)
    }
  }

  @Test func `parts that were not claimed make the store ask for everything`() throws {
    for wrong in [held(1), held(0, 2), held(-1), held(0, 0), held(.max), held(0, .max), held(.min, .max)] {
      var update = CopyUpdate(.events, from: try copy(["a"]))
      update.take(stale(wrong, new("b")), sentAt: sentAt)
      #expect(update.need == .verdict)
      #expect(update.claim == everything)
      update.take(stale(new("a"), new("b")), sentAt: sentAt)
      #expect(proved(update)?.entries.map(\.key) == ["a", "b"])
    }
  }

  @Test(arguments: [
    Verdict(invalidate: true, timestamp: "new"),
    Verdict(invalidate: true, timestamp: "new", keys: ["a"], changed: [:]),
    Verdict(invalidate: true, timestamp: "new", parts: [ListPart()]),
    Verdict(invalidate: true, timestamp: "new", parts: [ListPart(first: 0)]),
    Verdict(invalidate: true, timestamp: "new", parts: [ListPart(first: 0, count: 1), ListPart(first: 0, count: 1)]),
    Verdict(invalidate: true, timestamp: "new", parts: [ListPart(digest: "new-new-new")]),
    Verdict(invalidate: true, timestamp: "new", parts: [ListPart(digest: "new-new-new", item: .null)]),
    Verdict(invalidate: true, timestamp: "new", parts: [ListPart(digest: "2 3", item: .object(["id": .string("b")]))]),
    Verdict(invalidate: true, timestamp: "new", nextCursor: "1", parts: []), nil,
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

  @Test(arguments: ["short", "longer-than-11", "with/slash-", "with+plus--", "padding---="])
  func `digests that the service does not understand are not claimed, and their items come again`(wrong: String) throws
  {
    var copy = try copy(["a", "c"])
    copy.entries.insert(try entry("b", wrong), at: 1)
    var update = CopyUpdate(.events, from: copy)
    #expect(update.claim.held == [digest("a"), digest("c")])
    update.take(stale(held(0), new("b"), held(1)), sentAt: sentAt)
    #expect(proved(update)?.entries.map(\.key) == ["a", "b", "c"])
  }
}
