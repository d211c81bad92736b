import CLibpq
import Synchronization

/// What one statement answered: its rows, in order, and how many rows it touched.
public struct Rows: RandomAccessCollection, Sendable {
  private let result: ResultHandle

  init(_ result: ResultHandle) {
    self.result = result
  }

  public var startIndex: Int { 0 }
  public var endIndex: Int { result.count }

  /// - Precondition: the index is one of `indices`, as in any collection.
  public subscript(index: Int) -> Row {
    precondition(index >= 0 && index < result.count, "row \(index) of \(result.count)")
    return Row(result: result, index: index)
  }

  /// The number of rows that INSERT, UPDATE, DELETE or SELECT reported.
  public var affected: Int {
    Int(String(cString: PQcmdTuples(result.pointer))) ?? 0
  }

  /// The server's word for what it did, such as `COMMIT` or `UPDATE 3`.
  public var commandTag: String {
    String(cString: PQcmdStatus(result.pointer))
  }
}

/// One row of an answer. Columns are read by name or place as the Swift type they are assigned to:
///
///     let title: String = try row["title"]
///     let note: String? = try row["note"]
public struct Row: Sendable {
  let result: ResultHandle
  let index: Int

  /// - Throws: ``PostgresError`` of kind `decoding` naming the column if there is none of this name, if it is NULL and
  ///   the type is not optional, or if it is of another type.
  public subscript<Value: SQLValue>(name: String) -> Value {
    get throws { try self[place(of: name)] }
  }

  /// Where a column stands, from 0.
  ///
  /// - Throws: ``PostgresError`` of kind `decoding` naming the column if there is none of this name.
  public func place(of name: String) throws -> Int {
    guard let place = result.place(of: name) else {
      let known = result.names.joined(separator: ", ")
      throw PostgresError(.decoding, "there is no column \"\(name)\" in (\(known))")
    }
    return place
  }

  /// By place, from 0.
  public subscript<Value: SQLValue>(column: Int) -> Value {
    get throws {
      guard column >= 0, column < result.names.count else {
        throw PostgresError(.decoding, "there is no column \(column) in a row of \(result.names.count)")
      }
      // The cell's pointer is into the result, which must outlive the decoding.
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
    if PQgetisnull(result.pointer, row, place) == 0 {
      let length = Int(PQgetlength(result.pointer, row, place))
      bytes = UnsafeRawBufferPointer(start: PQgetvalue(result.pointer, row, place), count: length)
    }
    return SQLCell(type: PQftype(result.pointer, place), bytes: bytes)
  }

  private func error(_ mismatch: CellMismatch, _ column: Int, _ wanted: Any.Type) -> PostgresError {
    let reason =
      switch mismatch {
      case .null: "is NULL"
      case .type: "has the type with oid \(cell(column).type)"
      case .malformed: "holds a value that does not fit"
      case .nullElement: "has NULL among its elements"
      case .dimensions: "is an array of several dimensions"
      }
    return PostgresError(.decoding, "column \"\(result.names[column])\" \(reason), wanted \(wanted)")
  }
}

/// What a result's columns are called.
struct ColumnNames: Sendable {
  let names: [String]
  let areDistinct: Bool

  fileprivate init(of result: OpaquePointer) {
    names = (0..<PQnfields(result)).map { String(cString: PQfname(result, $0)) }
    areDistinct = Set(names).count == names.count
  }
}

/// Owns a libpq result and frees it with its last reader.
// Sendable by hand: libpq's accessors only read, and nothing writes to a result after it was received.
final class ResultHandle: @unchecked Sendable {
  let pointer: OpaquePointer
  let count: Int
  let columns: ColumnNames
  /// Columns are mostly read in their order: the one behind the last is looked at first. Any value is right.
  private let likely = Atomic(0)

  /// - Parameter columns: nil where they are not known from an earlier result of the same statement.
  init(_ pointer: OpaquePointer, columns known: ColumnNames? = nil) {
    self.pointer = pointer
    count = Int(PQntuples(pointer))
    columns = known ?? ColumnNames(of: pointer)
  }

  var names: [String] { columns.names }

  /// Of several columns of one name the first.
  func place(of name: String) -> Int? {
    guard columns.areDistinct else { return names.firstIndex(of: name) }
    var place = likely.load(ordering: .relaxed)
    if place >= names.count || names[place] != name {
      guard let found = names.firstIndex(of: name) else { return nil }
      place = found
    }
    likely.store(place + 1, ordering: .relaxed)
    return place
  }

  deinit {
    PQclear(pointer)
  }
}
