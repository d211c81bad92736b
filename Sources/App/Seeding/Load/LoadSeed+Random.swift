extension LoadSeed {
  /// SplitMix64, seeded for each row, so that a row can be made without the rows before it.
  struct Random: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64, _ kind: StaticString, _ number: Int) {
      self.init(seed, kind.description, number)
    }

    init(_ seed: UInt64, _ kind: String, _ number: Int) {
      state = kind.utf8.reduce(seed &* 0x9e37_79b9_7f4a_7c15) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
      state ^= UInt64(bitPattern: Int64(number)) &* 0xd1b5_4a32_d192_ed03
      _ = next()
    }

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var mixed = state
      mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
      mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
      return mixed ^ (mixed >> 31)
    }
  }
}
