import Foundation

extension SQLNumeric: SQLValue {
  private enum Sign {
    static let positive: UInt16 = 0x0000
    static let negative: UInt16 = 0x4000
    static let nan: UInt16 = 0xc000
    static let infinity: UInt16 = 0xd000
    static let negativeInfinity: UInt16 = 0xf000
  }

  public static var sqlType: SQLType { .numeric }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    guard let count = UInt16(exactly: digits.count), let weight = Int16(exactly: weight) else {
      return .unrepresentable
    }
    let sign =
      switch kind {
      case .finite: isNegative ? Sign.negative : Sign.positive
      case .nan: Sign.nan
      case .infinity: Sign.infinity
      case .negativeInfinity: Sign.negativeInfinity
      }
    bytes.appendInteger(count)
    bytes.appendInteger(weight)
    bytes.appendInteger(sign)
    bytes.appendInteger(UInt16(clamping: scale))
    for digit in digits { bytes.appendInteger(digit) }
    return .bytes
  }

  public init(cell: SQLCell) throws {
    let bytes = try cell.bytes(of: .numeric)
    let count = Int(try bytes.integer(UInt16.self))
    let weight = Int(try bytes.integer(at: 2, Int16.self))
    let sign = try bytes.integer(at: 4, UInt16.self)
    let scale = Int(try bytes.integer(at: 6, UInt16.self))
    guard bytes.count == 8 + 2 * count, scale <= Self.maximumScale else { throw CellMismatch.malformed }
    switch sign {
    case Sign.nan: self = .nan
    case Sign.infinity: self = .infinity
    case Sign.negativeInfinity: self = .negativeInfinity
    case Sign.positive, Sign.negative:
      let digits = try (0..<count).map { try bytes.integer(at: 8 + 2 * $0, UInt16.self) }
      guard digits.allSatisfy({ $0 < 10_000 }) else { throw CellMismatch.malformed }
      self.init(isNegative: sign == Sign.negative, weight: weight, digits: digits, scale: scale)
    default: throw CellMismatch.malformed
    }
  }
}

/// Reads and sends `numeric`. A number of more than 38 digits, or an infinite one, is an error: read it as a
/// ``SQLNumeric``.
extension Decimal: SQLValue {
  public static var sqlType: SQLType { .numeric }

  public func encode(into bytes: inout [UInt8]) -> SQLEncoding {
    SQLNumeric(self).encode(into: &bytes)
  }

  public init(cell: SQLCell) throws {
    guard let value = Decimal(exactly: try SQLNumeric(cell: cell)) else { throw CellMismatch.malformed }
    self = value
  }

  private static let maximumDigits = 38
  private static let exponents = -128...127

  /// The same number, or nil if a `Decimal` cannot hold all of its digits.
  public init?(exactly number: SQLNumeric) {
    guard number.isFinite else {
      guard number.kind == .nan else { return nil }
      self = .nan
      return
    }
    // The digits to the base of 10,000 may end with decimal zeros, which an exponent replaces.
    var text = number.digits.map { String($0 + 10_000).dropFirst() }.joined().drop { $0 == "0" }
    var exponent = 4 * (number.weight - number.digits.count + 1)
    while text.last == "0" {
      text.removeLast()
      exponent += 1
    }
    if text.isEmpty {
      self = 0
      return
    }
    guard text.count <= Self.maximumDigits, Self.exponents.contains(exponent),
      let digits = Decimal(string: String(text))
    else { return nil }
    self.init(sign: number.isNegative ? .minus : .plus, exponent: exponent, significand: digits)
  }
}

extension SQLNumeric {
  /// The same number.
  public init(_ value: Decimal) {
    self = value.isNaN ? .nan : SQLNumeric(value.description) ?? .nan
  }
}

extension Double {
  /// The nearest floating-point number.
  public init(_ number: SQLNumeric) {
    self = Double(number.description) ?? .nan
  }
}
