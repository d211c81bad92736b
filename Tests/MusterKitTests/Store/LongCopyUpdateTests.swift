import Foundation
import Testing

@testable import MusterKit

/// Lists that are longer than a verdict.
@Suite struct LongCopyUpdateTests {
  private func item(_ key: String) -> JSONValue { .object(["id": .string(key)]) }

  private func digest(_ key: String) -> String { "digest-\(key)---".prefix(11).description }

  private func new(_ key: String) -> ListPart { ListPart(digest: digest(key), item: item(key)) }

  private func verdict(_ keys: String..., stamp: Stamp? = "s", nextCursor: String? = nil) -> Verdict {
    Verdict(invalidate: true, timestamp: stamp, nextCursor: nextCursor, parts: keys.map(new))
  }

  private func copy(_ count: Int) throws -> StoredCopy {
    StoredCopy(
      collection: .events, stamp: "old",
      entries: try (0..<count).map { number in
        let key = "\(1000 + number)"
        return try #require(StoredCopy.Entry(key: key, digest: digest(key), item: item(key)))
      }, nextCursor: nil, provedAt: .distantPast)
  }

  /// An update that waits for the items after `a` and `b`.
  private func begun(length: Int = .max) -> CopyUpdate {
    var update = CopyUpdate(.events, from: nil, length: length)
    update.take(verdict("a", "b", nextCursor: "1"), sentAt: .now)
    return update
  }

  private func proved(_ update: CopyUpdate) -> StoredCopy? {
    guard case .nothing(.proved(let copy)) = update.need else { return nil }
    return copy
  }

  @Test func `a long list is read part by part`() throws {
    var update = begun()
    #expect(update.need == .verdict && update.claim == Claim(timestamp: nil, held: [], limit: 500, cursor: "1"))
    update.take(verdict("c", "d", nextCursor: "2"), sentAt: .now)
    #expect(update.need == .verdict && update.claim.cursor == "2")
    update.take(verdict("e"), sentAt: .now)
    let copy = try #require(proved(update))
    #expect(copy.entries.map(\.key) == ["a", "b", "c", "d", "e"] && copy.nextCursor == nil && copy.stamp == "s")
  }

  @Test func `of a long copy, each claim has the items that are not in the list so far`() throws {
    let copy = try copy(4500)
    var update = CopyUpdate(.events, from: copy)
    #expect(update.claim.held?.count == 2000 && update.claim.held?.first == digest("1000"))
    #expect(update.claim.timestamp == "old" && update.claim.limit == 2000 && update.claim.cursor == nil)
    // The first item is gone, there is a new one, and one from beyond the claim has moved up.
    let parts = [new("x"), new("4000"), ListPart(first: 1, count: 1998)]
    update.take(
      Verdict(invalidate: true, timestamp: "s", nextCursor: "1", parts: parts), sentAt: .now)
    #expect(update.claim.held?.count == 2000 && update.claim.timestamp == nil && update.claim.cursor == "1")
    // The first item may still come later.
    #expect(update.claim.held?.first == digest("2999"))
    update.take(
      Verdict(invalidate: true, timestamp: "s", nextCursor: "2", parts: [ListPart(first: 0, count: 2000)]),
      sentAt: .now)
    #expect(update.claim.held?.count == 501 && update.claim.held?.last == digest("1000"))
    #expect(update.claim.limit == 1001)
    // Verdicts on long items have fewer than they may have. Then so have claims.
    var slow = CopyUpdate(.events, from: copy)
    let few = [ListPart(first: 0, count: 700)]
    slow.take(Verdict(invalidate: true, timestamp: "s", nextCursor: "1", parts: few), sentAt: .now)
    #expect(slow.claim.held?.count == 800 && slow.claim.limit == 800)
    update.take(
      Verdict(invalidate: true, timestamp: "s", parts: [ListPart(first: 0, count: 500)]), sentAt: .now)
    let keys = try #require(proved(update)).entries.map(\.key)
    #expect(keys == ["x", "4000"] + copy.entries.map(\.key).filter { $0 != "1000" && $0 != "4000" })
  }

  @Test func `the claim of a short copy asks for 500 items, which count as one read`() throws {
    for (count, limit) in [(0, 500), (1, 500), (400, 500), (401, 901), (1500, 2000), (2500, 2000)] {
      #expect(CopyUpdate(.events, from: try copy(count)).claim.limit == limit)
    }
    #expect(CopyUpdate(.events, from: try copy(300), length: 350).claim.limit == 350)
  }

  @Test func `claims begin where the list continues, whatever is gone or has moved`() throws {
    let copy = try copy(3000)
    let (run, moved) = (ListPart(first: 600, count: 700), ListPart(first: 1900, count: 1))
    for parts in [[run], [moved, run], [run, moved], [run, new("x")], [run, new("3800")]] {
      var update = CopyUpdate(.events, from: copy)
      update.take(Verdict(invalidate: true, timestamp: "s", nextCursor: "1", parts: parts), sentAt: .now)
      let held = try #require(update.claim.held)
      // The first 600 items are gone.
      #expect((800...801).contains(held.count) && held.first == digest("2300"))
      #expect(Set(held).isDisjoint(with: copy.entries[..<600].map(\.digest)))
    }
    // An item of the copy that is sent again shows the place too.
    var update = CopyUpdate(.events, from: copy)
    let sent = (2500...2700).map { new("\($0)") }
    update.take(Verdict(invalidate: true, timestamp: "s", nextCursor: "1", parts: sent), sentAt: .now)
    #expect(update.claim.held?.first == digest("2701"))
  }

  @Test func `a list that is not kept as a whole ends early, and says so`() throws {
    let update = begun(length: 2)
    let copy = try #require(proved(update))
    #expect(copy.entries.count == 2 && copy.nextCursor == "1")
    // More of it is also read when the copy is fresh.
    var more = CopyUpdate(.events, from: copy, length: 4)
    #expect(more.claim == Claim(timestamp: "s", held: [digest("a"), digest("b")], limit: 4))
    more.take(Verdict(invalidate: false, timestamp: "s"), sentAt: .now)
    #expect(more.need == .verdict && more.claim == Claim(timestamp: nil, held: [], limit: 2, cursor: "1"))
    more.take(verdict("c", "d", nextCursor: "2"), sentAt: .now)
    #expect(proved(more)?.entries.map(\.key) == ["a", "b", "c", "d"])
    // Items beyond the length are not claimed.
    #expect(CopyUpdate(.events, from: copy, length: 1).claim.held == [digest("a")])
  }

  @Test func `when the list changes between verdicts, the update starts over`() {
    for wrong in [verdict(stamp: nil), verdict("c", stamp: "later")] {
      var update = begun()
      update.take(wrong, sentAt: .now)
      #expect(update.need == .verdict)
      #expect(update.claim == Claim(timestamp: nil, held: [digest("a"), digest("b")], limit: 500))
      let parts = [ListPart(first: 0, count: 2)]
      update.take(Verdict(invalidate: true, timestamp: "later", nextCursor: "9", parts: parts), sentAt: .now)
      #expect(update.need == .verdict && update.claim.cursor == "9")
      update.take(verdict("c", stamp: "later"), sentAt: .now)
      #expect(proved(update)?.entries.map(\.key) == ["a", "b", "c"] && proved(update)?.stamp == "later")
    }
  }

  @Test func `a verdict that repeats an item, lacks a digest or a key, or is empty, begins the update again`() {
    let repeated = verdict("b")
    let undigested = Verdict(invalidate: true, timestamp: "s", parts: [ListPart(item: item("c"))])
    let keyless = Verdict(invalidate: true, timestamp: "s", parts: [ListPart(digest: digest("c"), item: .object([:]))])
    let endless = verdict(nextCursor: "3")
    let fresh = Verdict(invalidate: false, timestamp: "s")
    for wrong in [repeated, undigested, keyless, endless, fresh, nil] {
      var update = begun()
      update.take(wrong, sentAt: .now)
      #expect(update.need == .verdict && update.claim.cursor == nil && update.claim.timestamp == nil)
    }
  }

  @Test func `a list that keeps changing is given up, with its beginning`() {
    var update = begun()
    for round in 0..<20 {
      if case .nothing(let outcome) = update.need {
        guard case .failed(_, let beginning?) = outcome else {
          Issue.record("\(outcome)")
          return
        }
        #expect(beginning.entries.map(\.key) == ["a", "b"])
        return
      }
      if update.isContinuing {
        update.take(verdict(stamp: nil), sentAt: .now)
      } else {
        let parts = [ListPart(first: 0, count: 2)]
        update.take(
          Verdict(invalidate: true, timestamp: Stamp(rawValue: "s\(round)"), nextCursor: "1", parts: parts),
          sentAt: .now)
      }
    }
    Issue.record("The update never ends.")
  }

  @Test func `a refused cursor is asked for again`() {
    var update = begun()
    update.cursorWasRefused()
    #expect(update.need == .verdict)
    #expect(update.claim == Claim(timestamp: nil, held: [digest("a"), digest("b")], limit: 500))
    // The claim had no cursor: the refusal is about another list's.
    update.cursorWasRefused()
    #expect(update.claim.held?.count == 2)
  }
}
