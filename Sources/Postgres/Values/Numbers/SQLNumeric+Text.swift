extension SQLNumeric: LosslessStringConvertible {
  /// As PostgreSQL prints it, such as `-12.50`, `NaN` or `Infinity`.
  public var description: String {
    switch kind {
    case .nan: return "NaN"
    case .infinity: return "Infinity"
    case .negativeInfinity: return "-Infinity"
    case .finite: break
    }
    var text: [UInt8] = isNegative ? [UInt8(ascii: "-")] : []
    if weight < 0 || digits.isEmpty {
      text.append(UInt8(ascii: "0"))
    } else {
      for place in (0...weight).reversed() { Self.append(digit(at: place), to: &text, isFirst: place == weight) }
    }
    guard scale > 0 else { return String(decoding: text, as: UTF8.self) }
    text.append(UInt8(ascii: "."))
    let end = text.count + scale
    var place = -1
    while text.count < end {
      Self.append(digit(at: place), to: &text, isFirst: false)
      place -= 1
    }
    return String(decoding: text.prefix(end), as: UTF8.self)
  }

  /// The digit with this exponent to the base of 10,000.
  private func digit(at place: Int) -> UInt16 {
    let index = weight - place
    return digits.indices.contains(index) ? digits[index] : 0
  }

  /// - Parameter isFirst: whether to leave out leading zeros.
  private static func append(_ digit: UInt16, to text: inout [UInt8], isFirst: Bool) {
    var isLeading = isFirst
    for divisor in [1000, 100, 10, 1] as [UInt16] {
      let decimal = digit / divisor % 10
      if isLeading, decimal == 0, divisor > 1 { continue }
      isLeading = false
      text.append(UInt8(ascii: "0") + UInt8(decimal))
    }
  }

  /// Reads digits with an optional sign, decimal point and exponent, or `NaN`, `Infinity` and `-Infinity` in any case.
  ///
  /// - Returns: nil if the text is none of these, or has more digits than PostgreSQL can hold.
  public init?(_ text: String) {
    switch text.utf8.count < 12 ? text.lowercased() : "" {
    case "nan": self = .nan
    case "infinity", "inf", "+infinity", "+inf": self = .infinity
    case "-infinity", "-inf": self = .negativeInfinity
    default:
      guard let number = Self(finite: Array(text.utf8)) else { return nil }
      self = number
    }
  }

  /// PostgreSQL can hold no number beyond these limits.
  private static let exponents = -200_000...200_000

  private init?(finite text: [UInt8]) {
    let isNegative = text.first == UInt8(ascii: "-")
    var rest = text[...]
    if isNegative || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
    var exponent = 0
    if let place = rest.firstIndex(where: { $0 | 0x20 == UInt8(ascii: "e") }) {
      guard let value = Int(String(decoding: rest[(place + 1)...], as: UTF8.self)), Self.exponents.contains(value)
      else { return nil }
      (exponent, rest) = (value, rest[..<place])
    }
    let whole = rest.prefix { $0 != UInt8(ascii: ".") }
    let fraction = rest.dropFirst(whole.count + 1)
    let decimals = (whole + fraction).map { $0 &- UInt8(ascii: "0") }
    guard !decimals.isEmpty, decimals.allSatisfy({ $0 <= 9 }) else { return nil }
    let scale = max(0, fraction.count - exponent)
    // The number of decimals before the decimal point, rounded up to a multiple of four.
    let point = whole.count + exponent
    let groups = point >= 0 ? (point + 3) / 4 : point / 4
    let padding = Array(repeating: 0 as UInt8, count: groups * 4 - point)
    let padded = padding + decimals + Array(repeating: 0, count: (4 - (padding.count + decimals.count) % 4) % 4)
    let digits = stride(from: 0, to: padded.count, by: 4).map { start in
      padded[start..<start + 4].reduce(0 as UInt16) { $0 * 10 + UInt16($1) }
    }
    self.init(isNegative: isNegative, weight: groups - 1, digits: digits, scale: scale)
    guard scale <= Self.maximumScale, Self.weights.contains(weight) else { return nil }
  }
}
