import Testing

@testable import MusterClient

@Suite struct DoubtsTests {
  @Test func `everything is in doubt at first`() {
    let doubts = Doubts()
    #expect(doubts.open == Set(CacheCollection.allCases))
  }

  @Test func `a validation settles the doubts from before it began`() {
    var doubts = Doubts()
    let mark = doubts.mark
    doubts.settle(.events, since: mark)
    #expect(doubts.isProved(.events) && !doubts.isProved(.friends))
  }

  @Test func `a validation does not settle a doubt that was raised after it began`() {
    var doubts = Doubts()
    let mark = doubts.mark
    doubts.raise([.events])
    doubts.settle(.events, since: mark)
    #expect(!doubts.isProved(.events))
    doubts.settle(.events, since: doubts.mark)
    #expect(doubts.isProved(.events))
  }

  @Test func `a slow early validation takes nothing from a later one`() {
    var doubts = Doubts()
    let early = doubts.mark
    doubts.raise([.events])
    doubts.settle(.events, since: doubts.mark)
    doubts.settle(.events, since: early)
    #expect(doubts.isProved(.events))
  }

  @Test func `a doubt concerns its collections only`() {
    var doubts = Doubts()
    for collection in CacheCollection.allCases { doubts.settle(collection, since: doubts.mark) }
    doubts.raise([.friends, .blocks])
    #expect(doubts.open == [.friends, .blocks])
  }
}
