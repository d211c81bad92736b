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

extension SQLType {
  /// The name of a type for an error's message. Only the server knows the names of user-defined types.
  static func name(of oid: UInt32) -> String {
    if let name = names[oid] { return "\(name) (oid \(oid))" }
    if let (name, _) = builtIn.first(where: { $0.1.arrayOID == oid }) { return "\(name)[] (oid \(oid))" }
    return oid < 16384 ? "with oid \(oid)" : "with oid \(oid), which is user-defined"
  }

  private static let builtIn: [(String, SQLType)] = [
    ("bool", .bool), ("bytea", .bytea), ("int2", .int2), ("int4", .int4), ("int8", .int8), ("text", .text),
    ("float4", .float4), ("float8", .float8), ("uuid", .uuid), ("timestamptz", .timestamptz), ("json", .json),
    ("jsonb", .jsonb), ("record", .record),
    // Types without a Swift type.
    ("numeric", SQLType(oid: 1700, arrayOID: 1231)), ("date", SQLType(oid: 1082, arrayOID: 1182)),
    ("time", SQLType(oid: 1083, arrayOID: 1183)), ("timestamp", SQLType(oid: 1114, arrayOID: 1115)),
    ("timetz", SQLType(oid: 1266, arrayOID: 1270)), ("interval", SQLType(oid: 1186, arrayOID: 1187)),
    ("inet", SQLType(oid: 869, arrayOID: 1041)), ("cidr", SQLType(oid: 650, arrayOID: 651)),
    ("varchar", SQLType(oid: 1043, arrayOID: 1015)), ("char", SQLType(oid: 1042, arrayOID: 1014)),
    ("name", SQLType(oid: 19, arrayOID: 1003)), ("oid", SQLType(oid: 26, arrayOID: 1028)),
    ("void", SQLType(oid: 2278, arrayOID: 0)),
  ]

  private static let names = Dictionary(builtIn.map { ($1.oid, $0) }, uniquingKeysWith: { first, _ in first })
}
