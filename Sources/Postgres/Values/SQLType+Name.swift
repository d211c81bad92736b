extension SQLType {
  /// The name of a type for an error's message. Only the server knows the names of user-defined types.
  static func name(of oid: UInt32) -> String {
    if let name = names[oid] { return "\(name) (oid \(oid))" }
    if let (name, _) = builtIn.first(where: { $0.1.arrayOID == oid }) { return "\(name)[] (oid \(oid))" }
    return oid < 16384 ? "with oid \(oid)" : "with oid \(oid), which is user-defined"
  }

  private static let builtIn: [(String, SQLType)] = [
    ("bool", .bool), ("bytea", .bytea), ("int2", .int2), ("int4", .int4), ("int8", .int8), ("text", .text),
    ("float4", .float4), ("float8", .float8), ("numeric", .numeric), ("date", .date), ("time", .time),
    ("timestamp", .timestamp), ("timestamptz", .timestamptz), ("interval", .interval), ("inet", .inet),
    ("cidr", .cidr), ("uuid", .uuid), ("jsonb", .jsonb), ("int4range", .int4range), ("int8range", .int8range),
    ("numrange", .numrange), ("tsrange", .tsrange), ("tstzrange", .tstzrange), ("daterange", .daterange),
    ("varchar", SQLType(oid: 1043, arrayOID: 1015)), ("char", SQLType(oid: 1042, arrayOID: 1014)),
    ("name", SQLType(oid: 19, arrayOID: 1003)), ("json", .json),
    ("oid", SQLType(oid: 26, arrayOID: 1028)), ("timetz", SQLType(oid: 1266, arrayOID: 1270)),
    ("macaddr", SQLType(oid: 829, arrayOID: 1040)), ("bit", SQLType(oid: 1560, arrayOID: 1561)),
    ("money", SQLType(oid: 790, arrayOID: 791)), ("xml", SQLType(oid: 142, arrayOID: 143)),
    ("record", .record), ("void", SQLType(oid: 2278, arrayOID: 0)),
  ]

  private static let names = Dictionary(builtIn.map { ($1.oid, $0) }, uniquingKeysWith: { first, _ in first })
}
