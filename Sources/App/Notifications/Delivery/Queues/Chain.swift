import Postgres

/// Rows that are processed one after the other: they agree in some columns, and follow each other by `id`.
///
/// All conditions can use the index on these columns and `id`. Written with a plain comparison of ids, or with a plain
/// `ORDER BY id`, PostgreSQL may use the primary key instead, and read the rows of all other chains as well.
struct Chain: Sendable {
  let columns: [String]

  /// Whether `one` is in front of `other` in the same chain. For EXISTS.
  func isAhead(_ one: String, of other: String) -> SQL {
    "\(isSame(one, other)) AND \(place(one)) < \(place(other))"
  }

  /// Whether `one` is behind `other` in the same chain. For EXISTS.
  func isBehind(_ one: String, _ other: String) -> SQL {
    "\(isSame(one, other)) AND \(place(one)) > \(place(other))"
  }

  /// The rows `one` of the chain of `other`, for a read in ``order(_:isDescending:)``.
  func range(_ one: String, with other: String) -> SQL {
    "\(key(one)) >= \(key(other)) AND \(key(one)) <= \(key(other))"
  }

  /// The rows `one` behind `other` in its chain, for a read in ``order(_:isDescending:)``.
  func range(_ one: String, behind other: String) -> SQL {
    "\(place(one)) > \(place(other)) AND \(key(one)) <= \(key(other))"
  }

  func order(_ row: String, isDescending: Bool = false) -> SQL {
    let direction = isDescending ? " DESC" : ""
    return "\(unescaped: (columns + ["id"]).map { "\(row).\($0)\(direction)" }.joined(separator: ", "))"
  }

  private func isSame(_ one: String, _ other: String) -> SQL {
    "\(unescaped: columns.map { "\(one).\($0) = \(other).\($0)" }.joined(separator: " AND "))"
  }

  private func key(_ row: String) -> SQL { tuple(row, columns) }

  private func place(_ row: String) -> SQL { tuple(row, columns + ["id"]) }

  private func tuple(_ row: String, _ columns: [String]) -> SQL {
    "(\(unescaped: columns.map { "\(row).\($0)" }.joined(separator: ", ")))"
  }
}
