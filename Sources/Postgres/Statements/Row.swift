import CLibpq

/// One row of a result. Columns are read by name or by index, as the Swift type that they are assigned to:
///
///     let title: String = try row["title"]
///     let note: String? = try row["note"]
public struct Row: Sendable {
  let result: ResultHandle
  let index: Int

  /// Reads a column by name.
  ///
  /// - Throws: ``PostgresError`` of kind `decoding`, which names the column, if it does not exist, if it is NULL and
  ///   the type is not optional, or if it has another type.
  public subscript<Value: SQLValue>(name: String) -> Value {
    get throws { try self[place(of: name)] }
  }

  /// The index of a column, from 0.
  ///
  /// - Throws: ``PostgresError`` of kind `decoding`, which names the column, if it does not exist.
  public func place(of name: String) throws -> Int {
    guard let place = result.place(of: name) else {
      let known = result.names.joined(separator: ", ")
      throw PostgresError(.decoding, "there is no column \"\(name)\" in (\(known))")
    }
    return place
  }

  /// Reads a column by index, from 0.
  public subscript<Value: SQLValue>(column: Int) -> Value {
    get throws {
      guard column >= 0, column < result.names.count else {
        throw PostgresError(.decoding, "there is no column \(column) in a row of \(result.names.count)")
      }
      // The cell points into the result, which must outlive the decoding.
      defer { withExtendedLifetime(result) {} }
      do {
        return try Value(cell: cell(column))
      } catch let mismatch as CellMismatch {
        throw error(mismatch, column, Value.self)
      }
    }
  }

  private func cell(_ column: Int) -> SQLCell {
    let (row, place) = (Int32(index), Int32(column))
    var bytes: UnsafeRawBufferPointer?
    let length = Int(PQgetlength(result.pointer, row, place))
    if length > 0 || PQgetisnull(result.pointer, row, place) == 0 {
      bytes = UnsafeRawBufferPointer(start: PQgetvalue(result.pointer, row, place), count: length)
    }
    return SQLCell(type: result.columns.types[column], bytes: bytes)
  }

  private func error(_ mismatch: CellMismatch, _ column: Int, _ wanted: Any.Type) -> PostgresError {
    let reason =
      switch mismatch {
      case .null: "is NULL"
      case .type: "has the type with oid \(cell(column).type)"
      case .malformed: "holds a value that does not fit"
      case .nullElement: "has NULL among its elements"
      case .dimensions: "is an array with several dimensions"
      }
    return PostgresError(.decoding, "column \"\(result.names[column])\" \(reason), wanted \(wanted)")
  }
}
