import CLibpq

extension ScriptConnection {
  /// Reads the rows of a query with COPY, one by one, as typed values. The result is never in memory as a whole.
  ///
  ///     try connection.copy("SELECT id, title FROM events", as: (UUID, String).self) { id, title in
  ///       print(id, title)
  ///     }
  ///
  /// - Parameters:
  ///   - query: a SELECT, VALUES or TABLE without parameters, which COPY does not have.
  ///   - types: one for each column.
  ///   - read: called with each row. If it throws, the query is cancelled.
  /// - Returns: the number of rows.
  /// - Throws: ``PostgresError``. Kind `decoding` names the column that has another type.
  @discardableResult
  public func copy<each Value: SQLValue>(
    _ query: SQL, as types: (repeat each Value).Type, _ read: (repeat each Value) throws -> Void
  ) throws -> Int {
    let columns = try describe(query)
    var wanted = 0
    for _ in repeat (each Value).self { wanted += 1 }
    guard columns.names.count == wanted else {
      let known = columns.names.joined(separator: ", ")
      throw PostgresError(.decoding, "there are \(columns.names.count) columns (\(known)), wanted \(wanted)")
    }
    var (reader, count) = (CopyReader(), 0)
    try copy(query, format: .binary) { piece in
      reader.append(piece)
      try reader.readRows { fields in
        guard fields.count == wanted else { throw PostgresError(.decoding, "a row has \(fields.count) columns") }
        var place = -1
        func next<Each: SQLValue>(_ type: Each.Type) throws -> Each {
          place += 1
          do {
            return try Each(cell: SQLCell(type: columns.types[place], bytes: fields[place]))
          } catch {
            throw PostgresError(error, column: columns.names[place], type: columns.types[place], wanted: type)
          }
        }
        try read(repeat try next((each Value).self))
        count += 1
      }
    }
    return count
  }

  /// Reads the result of a query with COPY, in pieces of any size, such as for a file.
  ///
  /// - Parameters:
  ///   - query: a SELECT, VALUES or TABLE without parameters, which COPY does not have.
  ///   - format: the format of the pieces.
  ///   - write: called with each piece, which is valid only during the call. If it throws, the query is cancelled.
  public func copy(
    _ query: SQL, format: CopyFormat, _ write: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    if let problem = query.problem { throw problem }
    guard query.template.parameterCount == 0 else { throw PostgresError(.misuse, "COPY takes no parameters") }
    let statement: SQL = "COPY (\(query)) TO STDOUT (\(format.options))"
    try begin(copy: statement.text, PGRES_COPY_OUT)
    do {
      while let piece = try take() {
        defer { PQfreemem(piece.baseAddress) }
        try write(UnsafeRawBufferPointer(piece))
      }
    } catch {
      discardCopy()
      throw error
    }
    try endCopy()
  }
}
