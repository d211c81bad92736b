import CLibpq
import Synchronization

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
final class ResultHandle: Sendable {
  /// Unsafe for the compiler only: libpq's accessors only read, and nothing writes to a result that was received.
  nonisolated(unsafe) let pointer: OpaquePointer
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
