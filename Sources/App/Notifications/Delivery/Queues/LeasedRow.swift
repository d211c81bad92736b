import Foundation
import Postgres

/// A row that a worker has claimed.
struct LeasedRow: Sendable {
  struct Lease: Sendable {
    /// The row's.
    let id: Int64
    /// The fencing token: an acknowledgement must still find it.
    let token: UUID
  }

  let lease: Lease
  let attempts: Int
  /// Nil if it is out of range.
  let createdAt: Timestamp?
  /// The columns of ``LeaseQueue/columns``, starting at index 0.
  let fields: Fields

  struct Fields: Sendable {
    let row: Row

    subscript<Value: SQLValue>(place: Int) -> Value {
      get throws { try row[place + LeaseQueue.ownColumns] }
    }
  }

  var id: Int64 { lease.id }
}
