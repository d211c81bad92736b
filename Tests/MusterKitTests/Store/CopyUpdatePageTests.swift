import Foundation
import Testing

@testable import MusterKit

/// Lists that are longer than a verdict.
@Suite struct CopyUpdatePageTests {
  private func item(_ key: String) -> JSONValue { .object(["id": .string(key)]) }

  private func verdict(_ keys: [String], stamp: Stamp = "s", nextCursor: String?) -> Verdict {
    let pairs = keys.map { ($0, Changed(digest: "1", item: item($0))) }
    return Verdict(
      invalidate: true, timestamp: stamp, keys: keys, changed: Dictionary(uniqueKeysWithValues: pairs),
      nextCursor: nextCursor)
  }

  private func page(_ keys: [String], _ stamp: Stamp?, nextCursor: String? = nil) -> RawPage {
    RawPage(items: keys.map(item), digests: keys.map { _ in "1" }, nextCursor: nextCursor, timestamp: stamp)
  }

  /// An update that waits for the page after `a` and `b`.
  private func begun(length: Int = .max) -> CopyUpdate {
    var update = CopyUpdate(.events, from: nil, length: length)
    update.take(verdict(["a", "b"], nextCursor: "1"), sentAt: .now)
    return update
  }

  @Test func `a long list is read page by page`() throws {
    var update = begun()
    #expect(update.need == .page(cursor: "1"))
    update.take(page(["c", "d"], "s", nextCursor: "2"))
    #expect(update.need == .page(cursor: "2"))
    update.take(page(["e"], "s"))
    guard case .nothing(.proved(let copy)) = update.need else {
      Issue.record("\(update.need)")
      return
    }
    #expect(copy.entries.map(\.key) == ["a", "b", "c", "d", "e"] && copy.nextCursor == nil)
  }

  @Test func `a list that is not kept as a whole ends early, and says so`() throws {
    let update = begun(length: 2)
    guard case .nothing(.proved(let copy)) = update.need else {
      Issue.record("\(update.need)")
      return
    }
    #expect(copy.entries.count == 2 && copy.nextCursor == "1")
    // More of it is also read when the copy is fresh.
    var more = CopyUpdate(.events, from: copy, length: 4)
    more.take(Verdict(invalidate: false, timestamp: "s"), sentAt: .now)
    #expect(more.need == .page(cursor: "1"))
  }

  @Test func `when the list changes between pages, the update starts over`() {
    for wrong in [page(["c"], nil), page(["c"], "later")] {
      var update = begun()
      update.take(wrong)
      #expect(update.need == .verdict)
      #expect(update.claim == Claim(timestamp: "s", items: ["a": "1", "b": "1"]))
      update.take(verdict(["a", "b"], stamp: "later", nextCursor: "9"), sentAt: .now)
      #expect(update.need == .page(cursor: "9"))
    }
  }

  @Test func `a page that repeats an item, or lacks a digest or a key, begins the update again`() {
    let repeated = page(["b"], "s")
    let undigested = RawPage(items: [item("c")], digests: [], timestamp: "s")
    let keyless = RawPage(items: [.object([:])], digests: ["1"], timestamp: "s")
    let endless = page([], "s", nextCursor: "3")
    for wrong in [repeated, undigested, keyless, endless] {
      var update = begun()
      update.take(wrong)
      #expect(update.need == .verdict)
    }
  }

  @Test func `a list that keeps changing is given up, with its beginning`() {
    var update = begun()
    var rounds = 0
    while rounds < 20 {
      rounds += 1
      switch update.need {
      case .verdict:
        update.take(verdict(["a", "b"], stamp: Stamp(rawValue: "s\(rounds)"), nextCursor: "1"), sentAt: .now)
      case .page: update.take(page(["c"], nil))
      case .nothing(let outcome):
        guard case .failed(_, let beginning?) = outcome else {
          Issue.record("\(outcome)")
          return
        }
        #expect(beginning.entries.map(\.key) == ["a", "b"])
        return
      }
    }
    Issue.record("The update never ends.")
  }

  @Test func `a refused cursor is asked for again`() {
    var update = begun()
    update.pageWasRefused()
    #expect(update.need == .verdict)
    #expect(update.claim == Claim(timestamp: nil, items: ["a": "1", "b": "1"]))
  }
}
