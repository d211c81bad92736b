import CLibpq
import Synchronization

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
