import Postgres

/// A column of a table, and the value that an `Owner` has in it.
struct Column<Owner: Sendable>: Sendable {
  let name: String
  let isTime: Bool
  fileprivate let append: @Sendable (Owner, inout SQL) -> Void

  init<Value: SQLValue>(_ name: String, _ value: @escaping @Sendable (Owner) -> Value) {
    self.name = name
    isTime = Value.sqlType.oid == Timestamp.sqlType.oid
    append = { owner, sql in sql.append(value(owner)) }
  }
}

/// Columns of one table, as the fragments that statements are made of. Their texts are the same for each `Owner`.
struct Columns<Owner: Sendable>: Sendable {
  let names: [String]
  /// For a SELECT, or the head of an INSERT.
  let list: SQL
  private let columns: [Column<Owner>]
  /// The text before each value in a SET.
  private let assignments: [String]

  init(_ columns: [Column<Owner>]) {
    self.columns = columns
    names = columns.map(\.name)
    list = "\(unescaped: names.joined(separator: ", "))"
    assignments = names.enumerated().map { place, name in "\(place > 0 ? ", " : "")\(name) = " }
  }

  /// For a SET that empties them.
  var nulls: SQL { "\(unescaped: names.map { "\($0) = NULL" }.joined(separator: ", "))" }

  func names(areTimes: Bool) -> [String] { columns.filter { $0.isTime == areTimes }.map(\.name) }

  /// The columns of a row with this alias.
  func list(of row: String) -> SQL {
    "\(unescaped: names.map { "\(row).\($0)" }.joined(separator: ", "))"
  }

  /// For VALUES.
  func values(of owner: Owner) -> SQL {
    var sql: SQL = ""
    for (place, column) in columns.enumerated() {
      if place > 0 { sql.append(unescaped: ", ") }
      column.append(owner, &sql)
    }
    return sql
  }

  /// For the SET of an UPDATE.
  func assignments(from owner: Owner) -> SQL {
    var sql: SQL = ""
    for (column, assignment) in zip(columns, assignments) {
      sql.append(unescaped: assignment)
      column.append(owner, &sql)
    }
    return sql
  }
}
