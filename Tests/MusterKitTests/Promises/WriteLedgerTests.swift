import Foundation
import Testing

@testable import MusterKit

/// The check of writes itself: it must be able to fail.
@Suite struct WriteLedgerTests {
  private let title = WriteLedger.State(field: "title", object: "1")

  /// The finding about a history, with a phone that made these writes in a row.
  private func findings(
    _ writes: [(seen: String, new: String)], refused: [Int] = [], _ history: [(old: String, new: String)],
    of state: WriteLedger.State
  ) -> Int {
    var ledger = WriteLedger()
    for (place, write) in writes.enumerated() {
      let id = UUID()
      ledger.note([.init(state: state, new: write.new, seen: write.seen)], on: "phone", by: id)
      if refused.contains(place) {
        ledger.refuse(RefusedWrite(id: id, write: nil, createdAt: nil, reason: .withoutSubject))
      }
    }
    return ledger.overwritten(in: history.map { .init(state: state, old: $0.old, new: $0.new) }).count
  }

  @Test func `a value that the phone did not show counts as overwritten`() {
    #expect(findings([("a", "b")], [("a", "b")], of: title) == 0)
    #expect(findings([("a", "b")], [("newer", "b")], of: title) == 1)
    // Another phone's write.
    #expect(findings([("a", "b")], [("a", "newer")], of: title) == 0)
  }

  @Test func `a write after a refused one may replace what was there before both`() {
    #expect(findings([("a", "b"), ("b", "c")], refused: [0], [("a", "c")], of: title) == 0)
    #expect(findings([("a", "b"), ("b", "c")], [("a", "b"), ("newer", "c")], of: title) == 1)
    #expect(findings([("a", "b"), ("b", "c")], refused: [0], [("newer", "c")], of: title) == 1)
  }

  @Test func `the waiting list's own moves are no newer answers`() {
    let status = WriteLedger.State(field: "status", object: "1 2")
    #expect(findings([("invited", "going"), ("going", "maybe")], [("waitlisted", "maybe")], of: status) == 0)
    #expect(findings([("going", "maybe")], [("waitlisted", "maybe")], of: status) == 1)
    #expect(findings([("waitlisted", "declined")], [("going", "declined")], of: status) == 0)
    #expect(findings([("waitlisted", "maybe")], [("going", "maybe")], of: status) == 1)
    #expect(findings([("invited", "going")], [("declined", "waitlisted")], of: status) == 1)
  }

  @Test func `an answer may be left out only if its user has given another one since`() {
    let (event, status) = (Event.ID(), WriteLedger.State(field: "status", object: "1 2"))
    var ledger = WriteLedger()
    for (seen, answer) in [("invited", Answer.going), ("going", .maybe)] {
      let record = OutboxRecord(
        id: UUID(), sequence: 1, write: .answer(answer, to: event), basis: nil, key: .random(), createdAt: .now)
      let replacement = WriteLedger.Replacement(state: status, new: answer.rawValue, seen: seen)
      ledger.take(PendingWrite(record), on: "phone", replacing: [replacement])
    }
    // Nothing was sent: the last one is missing.
    #expect(ledger.findings(created: [:], in: []).count == 1)
    #expect(ledger.overwritten(in: [.init(state: status, old: "invited", new: "maybe")]).isEmpty)
    #expect(ledger.overwritten(in: [.init(state: status, old: "declined", new: "maybe")]).count == 1)
  }

  @Test func `an answer that was never carried out stood only if the keys were forgotten since`() {
    let (event, status) = (Event.ID(), WriteLedger.State(field: "status", object: "1 2"))
    let number = WriteLedger.State(field: "plus_ones", object: "1 2")
    for (isForgotten, plusOnes, new, brought, count) in [
      (false, nil, "going", "2", 1), (true, nil, "going", "2", 0), (true, nil, "waitlisted", "2", 0),
      (true, nil, "maybe", "2", 1), (true, 2, "going", "2", 0), (true, 3, "going", "2", 1),
    ] as [(Bool, Int?, String, String, Int)] {
      let record = OutboxRecord(
        id: UUID(), sequence: 1, write: .answer(.going, to: event, plusOnes: plusOnes), basis: nil, key: .random(),
        createdAt: .now)
      var ledger = WriteLedger()
      ledger.take(PendingWrite(record), on: "phone", replacing: [.init(state: status, new: "going", seen: "invited")])
      if isForgotten { ledger.forgetKeys() }
      let history = [
        StateHistory.Entry(state: status, old: "invited", new: new),
        StateHistory.Entry(state: number, old: "0", new: brought),
      ]
      #expect(ledger.findings(created: [:], in: history).count == count)
    }
  }
}
