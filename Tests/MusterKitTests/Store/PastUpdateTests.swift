import Foundation
import Testing

@testable import MusterKit

/// Which verdicts on past events the store believes, without a network.
@Suite struct PastUpdateTests {
  private static let new = "new-new-new"
  private let sentAt = Date(timeIntervalSince1970: 1_777_000_000)

  /// - Parameter age: of the event, in days.
  private func item(_ key: String, age: Double = 1) -> JSONValue {
    let start = WireTime.text(sentAt.addingTimeInterval(-age * 86_400))
    return .object(["id": .string(key), "startTime": .string(start)])
  }

  private func digest(_ key: String) -> String { "\(key)-old-old-old".prefix(11).description }

  private func copy(_ keys: [String], nextCursor: String? = nil) throws -> StoredCopy {
    let entries = try keys.map { key in
      try #require(StoredCopy.Entry(key: key, digest: digest(key), item: item(key)))
    }
    return StoredCopy(
      list: PastUpdate.list, stamp: "own", entries: entries, nextCursor: nextCursor, provedAt: .distantPast)
  }

  private func held(_ first: Int, _ count: Int = 1) -> ListPart { ListPart(first: first, count: count) }

  private func new(_ key: String, age: Double = 1) -> ListPart {
    ListPart(digest: Self.new, item: item(key, age: age))
  }

  private func verdict(_ parts: [ListPart], next: String? = nil) -> Verdict {
    Verdict(invalidate: true, nextCursor: next, parts: parts)
  }

  private func proved(_ update: PastUpdate) -> StoredCopy? {
    guard case .nothing(.proved(let copy)) = update.need else { return nil }
    return copy
  }

  @Test func `a copy that has all digests is proved, and keeps its stamp`() throws {
    let copy = try copy(["a", "b"])
    var update = PastUpdate(from: copy, at: sentAt)
    #expect(update.claim == Claim(timestamp: nil, held: [digest("a"), digest("b")], limit: 100))
    update.take(verdict([held(0, 2)]), sentAt: sentAt, wasAlone: false)
    #expect(proved(update)?.entries == copy.entries && proved(update)?.stamp == copy.stamp)
    #expect(proved(update)?.provedAt == sentAt)
  }

  @Test func `another list is another copy, with another stamp`() throws {
    for parts in [[new("c"), held(0, 2)], [held(1)], [held(1), held(0)], [held(0), new("b")], []] {
      let copy = try copy(["a", "b"])
      var update = PastUpdate(from: copy, at: sentAt)
      update.take(verdict(parts), sentAt: sentAt, wasAlone: false)
      let now = try #require(proved(update))
      #expect(now.entries != copy.entries && now.stamp != copy.stamp)
    }
  }

  @Test func `a list that ends early is asked for again, alone, until one verdict has all of it`() throws {
    var update = PastUpdate(from: try copy(["a"]), at: sentAt)
    update.take(verdict([new("c")], next: "1"), sentAt: sentAt, wasAlone: false)
    #expect(update.need == .verdict && update.isAlone)
    #expect(update.claim.held == [Self.new, digest("a")])
    // Other lists may have taken the room.
    update.take(verdict([held(0)], next: "1"), sentAt: sentAt, wasAlone: false)
    #expect(update.need == .verdict)
    // Alone, it is as much as a verdict compares.
    update.take(verdict([held(0)], next: "1"), sentAt: sentAt, wasAlone: true)
    #expect(proved(update)?.entries.map(\.key) == ["c"] && proved(update)?.nextCursor == "1")
  }

  @Test func `the list grows while its last event is of the last year`() throws {
    for (age, limit) in [(2.0, 200), (365, 200), (367, nil)] {
      let keys = (0..<100).map { "e\($0)" }
      var update = PastUpdate(from: nil, at: sentAt)
      update.take(
        verdict(keys.map { new($0, age: $0 == "e99" ? age : 1) }, next: "1"), sentAt: sentAt, wasAlone: true)
      #expect(update.claim.limit == limit ?? 100)
      #expect((proved(update) == nil) == (limit != nil))
    }
    var update = PastUpdate(from: try copy((0..<450).map { "e\($0)" }, nextCursor: "1"), at: sentAt)
    #expect(update.claim.limit == 500)
    update.take(verdict([held(0, 450)] + (450..<500).map { new("e\($0)") }, next: "1"), sentAt: sentAt, wasAlone: true)
    #expect(proved(update)?.entries.count == 500)
  }

  @Test func `the list shrinks when its events are older than a year`() throws {
    let copy = try copy((0..<300).map { "e\($0)" })
    for (days, limit) in [(0.0, 400), (400, 100)] {
      let update = PastUpdate(from: copy, at: sentAt.addingTimeInterval(days * 86_400))
      #expect(update.claim.limit == limit)
    }
  }

  @Test func `digests that the service does not understand are left out, once`() throws {
    var update = PastUpdate(from: try copy(["a"]), at: sentAt)
    let couldBeTheReason = [update.digestsWereRefused(), update.digestsWereRefused()]
    #expect(couldBeTheReason == [true, false])
    #expect(update.need == .verdict && update.claim.held == [])
  }

  @Test(arguments: [
    [ListPart(first: 1, count: 1)], [ListPart(first: 0, count: 2)],
    [ListPart(first: 0, count: 1), ListPart(first: 0, count: 1)],
    [ListPart(first: -1, count: 1)], [ListPart(digest: "?", item: nil)],
    [ListPart(digest: "new-new-new", item: .object([:]))],
  ]) func `parts that do not fit the claim prove nothing`(parts: [ListPart]) throws {
    var update = PastUpdate(from: try copy(["a"]), at: sentAt)
    update.take(verdict(parts), sentAt: sentAt, wasAlone: true)
    #expect(update.need == .verdict && update.claim.held == [])
    for _ in 0..<20 where update.need == .verdict { update.take(verdict(parts), sentAt: sentAt, wasAlone: true) }
    guard case .nothing(.failed) = update.need else {
      Issue.record("\(update.need)")
      return
    }
  }

  @Test func `a service that does not know the list has none`() throws {
    for verdict in [nil, Verdict(invalidate: true)] {
      var update = PastUpdate(from: try copy(["a"]), at: sentAt)
      update.take(verdict, sentAt: sentAt, wasAlone: false)
      #expect(update.need == .nothing(.unknown))
    }
  }
}
