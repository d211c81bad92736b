/// A type whose values in PostgreSQL may also be `infinity` or `-infinity`: see ``MaybeInfinite``.
public protocol SQLInfinite: SQLValue {
  /// `infinity` in PostgreSQL's binary format.
  static var infinityBytes: [UInt8] { get }
  /// `-infinity` in PostgreSQL's binary format.
  static var negativeInfinityBytes: [UInt8] { get }
}

extension Timestamp: SQLInfinite {
  public static var infinityBytes: [UInt8] { Int64.max.bigEndianBytes }
  public static var negativeInfinityBytes: [UInt8] { Int64.min.bigEndianBytes }
}

extension LocalTimestamp: SQLInfinite {
  public static var infinityBytes: [UInt8] { Int64.max.bigEndianBytes }
  public static var negativeInfinityBytes: [UInt8] { Int64.min.bigEndianBytes }
}

extension Day: SQLInfinite {
  public static var infinityBytes: [UInt8] { Int32.max.bigEndianBytes }
  public static var negativeInfinityBytes: [UInt8] { Int32.min.bigEndianBytes }
}

/// PostgreSQL has infinite intervals since version 17.
extension Interval: SQLInfinite {
  public static var infinityBytes: [UInt8] {
    Int64.max.bigEndianBytes + Int32.max.bigEndianBytes + Int32.max.bigEndianBytes
  }

  public static var negativeInfinityBytes: [UInt8] {
    Int64.min.bigEndianBytes + Int32.min.bigEndianBytes + Int32.min.bigEndianBytes
  }
}

extension FixedWidthInteger {
  fileprivate var bigEndianBytes: [UInt8] {
    withUnsafeBytes(of: bigEndian) { Array($0) }
  }
}
