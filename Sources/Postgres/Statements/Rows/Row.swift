import CLibpq

/// One row of a result. Columns are read by name or by index, as the Swift type that they are assigned to:
///
///     let title: String = try row["title"]
///     let note: String? = try row["note"]
public struct Row: Sendable {
  @usableFromInline let result: ResultHandle
  let index: Int

  /// Reads a column by name.
  ///
  /// - Throws: ``PostgresError`` of kind `decoding`, which names the column, if it does not exist, if it is NULL and
  ///   the type is not optional, or if it has another type.
  @inlinable
  public subscript<Value: SQLValue>(name: String) -> Value {
    get throws {
      let cell = try cell(named: name)
      // The cell points into the result, which must outlive the decoding.
      defer { withExtendedLifetime(result) {} }
      do {
        return try Value(cell: cell)
      } catch {
        throw self.error(error, try place(of: name), Value.self)
      }
    }
  }

  /// The index of a column, from 0.
  ///
  /// - Throws: ``PostgresError`` of kind `decoding`, which names the column, if it does not exist.
  public func place(of name: String) throws -> Int {
    guard let place = result.place(of: name) else { throw noColumn(named: name) }
    return place
  }

  /// Reads a column by index, from 0.
  @inlinable
  public subscript<Value: SQLValue>(column: Int) -> Value {
    get throws {
      let cell = try cell(column)
      // The cell points into the result, which must outlive the decoding.
      defer { withExtendedLifetime(result) {} }
      do {
        return try Value(cell: cell)
      } catch {
        throw self.error(error, column, Value.self)
      }
    }
  }

  @usableFromInline
  func cell(named name: String) throws -> SQLCell {
    guard let place = result.place(of: name) else { throw noColumn(named: name) }
    return cell(at: place)
  }

  @usableFromInline
  func cell(_ column: Int) throws -> SQLCell {
    guard result.columns.types.indices.contains(column) else { throw noColumn(column) }
    return cell(at: column)
  }

  private func cell(at column: Int) -> SQLCell {
    let (row, place) = (Int32(truncatingIfNeeded: index), Int32(truncatingIfNeeded: column))
    var bytes: UnsafeRawBufferPointer?
    let length = Int(PQgetlength(result.pointer, row, place))
    if length > 0 || PQgetisnull(result.pointer, row, place) == 0 {
      bytes = UnsafeRawBufferPointer(start: PQgetvalue(result.pointer, row, place), count: length)
    }
    return SQLCell(type: result.columns.types[column], bytes: bytes)
  }

  private func noColumn(named name: String) -> PostgresError {
    let known = result.names.joined(separator: ", ")
    return PostgresError(.decoding, "there is no column \"\(name)\" in (\(known))")
  }

  private func noColumn(_ column: Int) -> PostgresError {
    PostgresError(.decoding, "there is no column \(column) in a row of \(result.names.count)")
  }

  @usableFromInline
  func error(_ error: any Error, _ column: Int, _ wanted: Any.Type) -> PostgresError {
    PostgresError(error, column: result.names[column], type: result.columns.types[column], wanted: wanted)
  }
}
