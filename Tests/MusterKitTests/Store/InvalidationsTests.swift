import Testing

@testable import MusterKit

@Suite struct InvalidationsTests {
  @Test func `nothing is proved at first`() {
    let invalidations = Invalidations()
    #expect(invalidations.unproved == Set(CacheCollection.allCases))
  }

  @Test func `a validation covers the invalidations from before it began`() {
    var invalidations = Invalidations()
    let mark = invalidations.mark
    invalidations.recordValidation(of: .events, since: mark)
    #expect(invalidations.isProved(.events) && !invalidations.isProved(.friends))
  }

  @Test func `a validation does not cover an invalidation from after it began`() {
    var invalidations = Invalidations()
    let mark = invalidations.mark
    invalidations.add([.events])
    invalidations.recordValidation(of: .events, since: mark)
    #expect(!invalidations.isProved(.events))
    invalidations.recordValidation(of: .events, since: invalidations.mark)
    #expect(invalidations.isProved(.events))
  }

  @Test func `a slow early validation takes nothing from a later one`() {
    var invalidations = Invalidations()
    let early = invalidations.mark
    invalidations.add([.events])
    invalidations.recordValidation(of: .events, since: invalidations.mark)
    invalidations.recordValidation(of: .events, since: early)
    #expect(invalidations.isProved(.events))
  }

  @Test func `an invalidation concerns its collections only`() {
    var invalidations = Invalidations()
    for collection in CacheCollection.allCases {
      invalidations.recordValidation(of: collection, since: invalidations.mark)
    }
    invalidations.add([.friends, .blocks])
    #expect(invalidations.unproved == [.friends, .blocks])
  }
}
