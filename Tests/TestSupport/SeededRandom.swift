import Foundation

/// A SplitMix64 generator. The same seed gives the same numbers, so that failures are reproducible.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  public init(seed: UInt64) {
    state = seed
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = (state ^ (state >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}

/// Whether the random tests run for longer: `MUSTER_LONG_TESTS=1`.
public let testsAreLong = ProcessInfo.processInfo.environment["MUSTER_LONG_TESTS"] == "1"
