import CLibpq

/// The names and types of a result's columns.
struct Columns: Sendable {
  let names: [String]
  /// The lengths of the names in bytes.
  let lengths: [Int]
  /// As in `pg_type.oid`.
  let types: [UInt32]
  let areDistinct: Bool

  init(of result: OpaquePointer) {
    names = (0..<PQnfields(result)).map { String(cString: PQfname(result, $0)) }
    lengths = names.map(\.utf8.count)
    types = (0..<PQnfields(result)).map { PQftype(result, $0) }
    areDistinct = Set(names).count == names.count
  }
}
