/// A built-in type of PostgreSQL: its oid and the oid of its array type, as in `pg_type`.
public struct SQLType: Sendable, Equatable {
  public let oid: UInt32
  public let arrayOID: UInt32
}

extension SQLType {
  /// `bool`: a `Bool`.
  public static let bool = SQLType(oid: 16, arrayOID: 1000)
  /// `bytea`: a `Data`.
  public static let bytea = SQLType(oid: 17, arrayOID: 1001)
  /// `int2`: an `Int16`; any integer reads it.
  public static let int2 = SQLType(oid: 21, arrayOID: 1005)
  /// `int4`: an `Int32`; any integer reads it.
  public static let int4 = SQLType(oid: 23, arrayOID: 1007)
  /// `int8`: an `Int`; any integer reads it.
  public static let int8 = SQLType(oid: 20, arrayOID: 1016)
  /// `text`: a `String`.
  public static let text = SQLType(oid: 25, arrayOID: 1009)
  /// `float4`: a `Float`.
  public static let float4 = SQLType(oid: 700, arrayOID: 1021)
  /// `float8`: a `Double`, which also reads `float4`.
  public static let float8 = SQLType(oid: 701, arrayOID: 1022)
  /// `timestamptz`: a ``Timestamp``.
  public static let timestamptz = SQLType(oid: 1184, arrayOID: 1185)
  /// `uuid`: a `UUID`.
  public static let uuid = SQLType(oid: 2950, arrayOID: 2951)
  /// `json`, read as a `String` or a ``JSONDocument``.
  public static let json = SQLType(oid: 114, arrayOID: 199)
  /// `jsonb`: a ``JSONDocument``.
  public static let jsonb = SQLType(oid: 3802, arrayOID: 3807)
  /// `record`, read as a ``SQLRecord``.
  public static let record = SQLType(oid: 2249, arrayOID: 2287)
}
