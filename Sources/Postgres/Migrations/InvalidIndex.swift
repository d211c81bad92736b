/// An index that a failed or unfinished statement left behind.
struct InvalidIndex {
  let oid: Int64
  let name: String
  let table: String

  /// All of the database, except those that another session is building.
  static func all(on connection: ScriptConnection) throws -> [InvalidIndex] {
    try connection.rows(
      """
      SELECT i.indexrelid::int8 AS oid, c.relname AS name, t.relname AS "table"
      FROM pg_index i
      JOIN pg_class c ON c.oid = i.indexrelid
      JOIN pg_class t ON t.oid = i.indrelid
      WHERE NOT i.indisvalid AND NOT EXISTS (
        SELECT FROM pg_stat_progress_create_index p
        WHERE p.datname = current_database() AND p.index_relid = i.indexrelid AND p.pid <> pg_backend_pid())
      ORDER BY c.relname
      """
    ).map { InvalidIndex(oid: try $0["oid"], name: try $0["name"], table: try $0["table"]) }
  }

  /// - Parameter words: of the script, in lower case.
  func isNamed(in words: Set<Substring>) -> Bool {
    words.contains(Substring(name.lowercased()))
  }

  /// Whether the script may have made the index without naming it. REINDEX CONCURRENTLY adds `_ccnew` to the name.
  func isRelated(to words: Set<Substring>) -> Bool {
    words.contains(Substring(table.lowercased()))
      || name.lowercased().firstRange(of: "_ccnew").map { words.contains(name.lowercased()[..<$0.lowerBound]) } ?? false
  }
}
