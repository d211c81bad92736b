import CLibpq

/// The names of a result's columns.
struct ColumnNames: Sendable {
  let names: [String]
  let areDistinct: Bool

  init(of result: OpaquePointer) {
    names = (0..<PQnfields(result)).map { String(cString: PQfname(result, $0)) }
    areDistinct = Set(names).count == names.count
  }
}
