/// A PostgreSQL type: its oid and the oid of its array type, as in `pg_type`.
public struct SQLType: Sendable, Equatable {
  /// `pg_type.oid`; 0 for a type that the server infers.
  public let oid: UInt32
  /// `pg_type.typarray`; 0 for a type that the server infers.
  public let arrayOID: UInt32
  /// Whether the binary format of an inferred type is its text, which COPY depends on.
  let isPlainText: Bool

  /// A built-in type. Types of extensions have different oids in each database: see ``inferred``.
  public init(oid: UInt32, arrayOID: UInt32) {
    self.init(oid: oid, arrayOID: arrayOID, isPlainText: false)
  }

  private init(oid: UInt32, arrayOID: UInt32, isPlainText: Bool) {
    self.oid = oid
    self.arrayOID = arrayOID
    self.isPlainText = isPlainText
  }

  /// A type that the server infers from the statement, as it does for a literal in quotes. A value of this type encodes
  /// itself as text, as in such a literal.
  ///
  /// Use it for types whose oids differ between databases: composite types and types of extensions. For enums, see
  /// ``SQLEnum``. Where a statement does not say which type it expects, add a cast: `\(point)::geometry`.
  public static let inferred = SQLType(oid: 0, arrayOID: 0)
  /// The type of a ``SQLEnum``: inferred, and the binary format of a value is its text.
  static let inferredText = SQLType(oid: 0, arrayOID: 0, isPlainText: true)

  /// Whether the server infers the type and gets values as text.
  var isInferred: Bool { oid == 0 }
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
  /// `numeric`: a ``SQLNumeric`` or a `Decimal`.
  public static let numeric = SQLType(oid: 1700, arrayOID: 1231)
  /// `date`: a ``Day``.
  public static let date = SQLType(oid: 1082, arrayOID: 1182)
  /// `time`: a ``TimeOfDay``.
  public static let time = SQLType(oid: 1083, arrayOID: 1183)
  /// `timestamp`: a ``LocalTimestamp``.
  public static let timestamp = SQLType(oid: 1114, arrayOID: 1115)
  /// `timestamptz`: a ``Timestamp``.
  public static let timestamptz = SQLType(oid: 1184, arrayOID: 1185)
  /// `interval`: an ``Interval``.
  public static let interval = SQLType(oid: 1186, arrayOID: 1187)
  /// `inet`: an ``Inet``, which also reads `cidr`.
  public static let inet = SQLType(oid: 869, arrayOID: 1041)
  /// `cidr`, read as an ``Inet``.
  public static let cidr = SQLType(oid: 650, arrayOID: 651)
  /// `uuid`: a `UUID`.
  public static let uuid = SQLType(oid: 2950, arrayOID: 2951)
  /// `json`, read as a `String` or a ``JSONDocument``.
  public static let json = SQLType(oid: 114, arrayOID: 199)
  /// `jsonb`: a ``JSONDocument``.
  public static let jsonb = SQLType(oid: 3802, arrayOID: 3807)
  /// `record`, read as a ``SQLRecord``.
  public static let record = SQLType(oid: 2249, arrayOID: 2287)
}

extension SQLType {
  /// `int4range`: a ``SQLRange`` of `Int32`; any integer reads it.
  public static let int4range = SQLType(oid: 3904, arrayOID: 3905)
  /// `int8range`: a ``SQLRange`` of `Int`; any integer reads it.
  public static let int8range = SQLType(oid: 3926, arrayOID: 3927)
  /// `numrange`: a ``SQLRange`` of ``SQLNumeric`` or `Decimal`.
  public static let numrange = SQLType(oid: 3906, arrayOID: 3907)
  /// `tsrange`: a ``SQLRange`` of ``LocalTimestamp``.
  public static let tsrange = SQLType(oid: 3908, arrayOID: 3909)
  /// `tstzrange`: a ``SQLRange`` of ``Timestamp``.
  public static let tstzrange = SQLType(oid: 3910, arrayOID: 3911)
  /// `daterange`: a ``SQLRange`` of ``Day``.
  public static let daterange = SQLType(oid: 3912, arrayOID: 3913)
}
