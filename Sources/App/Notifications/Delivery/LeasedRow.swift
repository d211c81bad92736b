import Foundation
import Postgres

/// A row that a worker has claimed.
struct LeasedRow: Sendable {
  let id: Int64
  /// The fencing token: an acknowledgement must still find it.
  let lease: UUID
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

  var held: Held { Held(id: id, lease: lease) }

  struct Held: Sendable {
    let id: Int64
    let lease: UUID
  }
}
