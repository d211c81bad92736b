import Foundation

/// A type that PostgreSQL has ranges of.
public protocol SQLRangeBound: SQLValue {
  /// The range type, as sent to the server.
  static var rangeType: SQLType { get }
}

extension Int: SQLRangeBound { public static var rangeType: SQLType { .int8range } }

extension Int64: SQLRangeBound { public static var rangeType: SQLType { .int8range } }

extension Int32: SQLRangeBound { public static var rangeType: SQLType { .int4range } }

extension Decimal: SQLRangeBound { public static var rangeType: SQLType { .numrange } }

extension SQLNumeric: SQLRangeBound { public static var rangeType: SQLType { .numrange } }

extension LocalTimestamp: SQLRangeBound { public static var rangeType: SQLType { .tsrange } }

extension Timestamp: SQLRangeBound { public static var rangeType: SQLType { .tstzrange } }

extension Day: SQLRangeBound { public static var rangeType: SQLType { .daterange } }

extension MaybeInfinite: SQLRangeBound where Finite: SQLRangeBound {
  public static var rangeType: SQLType { Finite.rangeType }
}
