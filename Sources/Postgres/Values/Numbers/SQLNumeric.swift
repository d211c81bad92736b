/// PostgreSQL's `numeric`: a decimal number with up to 131,072 digits before the decimal point and 16,383 after it, or
/// infinity, or NaN. Foundation's `Decimal` is also a ``SQLValue`` and reads numbers of up to 38 digits.
///
/// Numbers that differ only in their trailing zeros are equal. As in PostgreSQL, NaN equals itself and is greater than
/// any other number.
public struct SQLNumeric: Sendable {
  enum Kind: Int, Sendable {
    case negativeInfinity, finite, infinity, nan
  }

  let kind: Kind
  let isNegative: Bool
  /// The exponent of the first digit, to the base of 10,000.
  let weight: Int
  /// To the base of 10,000, without zeros at either end. Empty for zero.
  let digits: [UInt16]
  /// The number of decimal digits after the decimal point, trailing zeros included.
  public let scale: Int

  static let maximumScale = 0x3fff
  /// The exponents that PostgreSQL's format can hold.
  static let weights = Int(Int16.min)...Int(Int16.max)

  private init(kind: Kind) {
    (self.kind, isNegative, weight, digits, scale) = (kind, false, 0, [], 0)
  }

  /// - Parameters:
  ///   - weight: the exponent of the first one of `digits`.
  ///   - digits: may have zeros at either end.
  init(isNegative: Bool, weight: Int, digits: some Collection<UInt16>, scale: Int) {
    let leading = digits.prefix { $0 == 0 }.count
    var digits = Array(digits.dropFirst(leading))
    while digits.last == 0 { digits.removeLast() }
    kind = .finite
    self.isNegative = isNegative && !digits.isEmpty
    self.weight = digits.isEmpty ? 0 : weight - leading
    self.digits = digits
    self.scale = scale
  }

  /// Not a number.
  public static let nan = SQLNumeric(kind: .nan)
  /// Greater than every finite number. PostgreSQL has it since version 14.
  public static let infinity = SQLNumeric(kind: .infinity)
  /// Less than every finite number. PostgreSQL has it since version 14.
  public static let negativeInfinity = SQLNumeric(kind: .negativeInfinity)

  /// Whether it is neither infinite nor NaN.
  public var isFinite: Bool { kind == .finite }

  /// A whole number.
  public init(_ value: Int) {
    var (rest, digits) = (value.magnitude, [UInt16]())
    while rest > 0 {
      digits.append(UInt16(rest % 10_000))
      rest /= 10_000
    }
    self.init(isNegative: value < 0, weight: digits.count - 1, digits: digits.reversed(), scale: 0)
  }
}

extension SQLNumeric: Hashable, Comparable {
  public static func == (left: SQLNumeric, right: SQLNumeric) -> Bool {
    left.kind == right.kind && left.isNegative == right.isNegative && left.weight == right.weight
      && left.digits == right.digits
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(kind)
    hasher.combine(isNegative)
    hasher.combine(weight)
    hasher.combine(digits)
  }

  public static func < (left: SQLNumeric, right: SQLNumeric) -> Bool {
    guard left.isFinite, right.isFinite else { return left.kind.rawValue < right.kind.rawValue }
    if left.isNegative != right.isNegative { return left.isNegative }
    return left.isNegative ? right.isSmaller(than: left) : left.isSmaller(than: right)
  }

  /// Compares two finite numbers without their signs.
  private func isSmaller(than other: SQLNumeric) -> Bool {
    if digits.isEmpty || other.digits.isEmpty { return digits.isEmpty && !other.digits.isEmpty }
    return weight == other.weight ? digits.lexicographicallyPrecedes(other.digits) : weight < other.weight
  }
}

extension SQLNumeric: Codable {
  public init(from decoder: any Decoder) throws { self = try decoder.text(SQLNumeric.init) }
  public func encode(to encoder: any Encoder) throws { try encoder.encode(description) }
}
