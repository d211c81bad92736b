import Foundation
import MusterKit
import Testing

/// The check of claims itself: it must be able to fail.
@Suite struct StoreClaimTests {
  private let noon = Date(timeIntervalSince1970: 1_900_000_000)

  /// A stamp some seconds after noon.
  private func stamp(_ seconds: Double) -> Stamp {
    let whole = noon.addingTimeInterval(seconds.rounded(.down)).formatted(.iso8601).dropLast()
    let micros = String(Int((seconds - seconds.rounded(.down)) * 1_000_000) + 1_000_000).dropFirst()
    return Stamp(rawValue: "\(whole).\(micros)Z")
  }

  private func claim(_ items: [String], _ stamp: Stamp?, asOf seconds: Double) -> StoreClaim {
    StoreClaim(
      device: "ana's phone", collection: .events, stamp: stamp, asOf: noon.addingTimeInterval(seconds), items: items)
  }

  private func isFalse(_ finding: StoreClaim.Finding) -> Bool {
    if case .isFalse = finding { true } else { false }
  }

  @Test func `a stamp is read to the microsecond`() throws {
    let date = try #require(stamp(12.25).date)
    #expect(abs(date.timeIntervalSince(noon) - 12.25) < 0.001)
    #expect(Stamp("nonsense").date == nil)
  }

  @Test func `equal items hold`() {
    #expect(
      claim(["a", "b"], stamp(1), asOf: 2).finding(against: ServerCopy(stamp: stamp(1), items: ["a", "b"])) == .holds)
  }

  @Test(arguments: [["a"], ["a", "b", "c"], ["b", "a"], ["a", "B"], []])
  func `other items under the same stamp are a false claim, whatever differs`(items: [String]) {
    let server = ServerCopy(stamp: stamp(1), items: ["a", "b"])
    #expect(isFalse(claim(items, stamp(1), asOf: 0).finding(against: server)))
  }

  @Test func `a claim that is newer than the last change is false, and an older one is not`() {
    let server = ServerCopy(stamp: stamp(10), items: ["new"])
    #expect(isFalse(claim(["old"], stamp(1), asOf: 13).finding(against: server)))
    #expect(claim(["old"], stamp(1), asOf: 9).finding(against: server) == .undecided)
    // The change may not have been visible yet.
    #expect(claim(["old"], stamp(1), asOf: 11).finding(against: server) == .undecided)
    #expect(isFalse(claim(["old"], nil, asOf: 13).finding(against: server)))
  }

  @Test func `while nothing changes, any difference is a false claim`() {
    let server = ServerCopy(stamp: stamp(10), items: ["new"])
    let quiet = noon.addingTimeInterval(10.5)
    #expect(isFalse(claim(["old"], stamp(1), asOf: 11).finding(against: server, quietSince: quiet)))
    #expect(claim(["old"], stamp(1), asOf: 10.4).finding(against: server, quietSince: quiet) == .undecided)
  }
}
