import CLibpq
import Synchronization

/// The result of one statement: its rows, in order, and the number of rows that it affected.
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

  /// The server's command tag, such as `COMMIT` or `UPDATE 3`.
  var commandTag: String {
    String(cString: PQcmdStatus(result.pointer))
  }
}

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

/// Owns a libpq result and frees it once its last reader is gone.
@usableFromInline
final class ResultHandle: Sendable {
  /// Safe to share, which the compiler cannot see: libpq's accessors only read, nothing writes to a received result,
  /// and nothing frees it before `deinit`.
  nonisolated(unsafe) let pointer: OpaquePointer
  let count: Int
  let columns: Columns
  /// The index of the column after the last one read. A search begins there, because columns are mostly read in order.
  /// Only a hint: any value is correct.
  private let likely = Atomic(0)

  /// - Parameter columns: nil if no earlier result of the same statement provides them.
  init(_ pointer: OpaquePointer, columns known: Columns? = nil) {
    self.pointer = pointer
    count = Int(PQntuples(pointer))
    columns = known ?? Columns(of: pointer)
  }

  var names: [String] { columns.names }

  /// The index of the first column with this name.
  func place(of name: String) -> Int? {
    guard columns.areDistinct else { return names.firstIndex(of: name) }
    let place = likely.load(ordering: .relaxed)
    guard place < names.count, names[place] == name else { return search(for: name, from: place) }
    likely.store(place + 1, ordering: .relaxed)
    return place
  }

  private func search(for name: String, from start: Int) -> Int? {
    var place = start
    let length = name.utf8.count
    for _ in names.indices {
      if place >= names.count { place = 0 }
      // Most names differ in length, which is faster to compare.
      if columns.lengths[place] == length, names[place] == name {
        likely.store(place + 1, ordering: .relaxed)
        return place
      }
      place += 1
    }
    return nil
  }

  deinit {
    PQclear(pointer)
  }
}

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
