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
