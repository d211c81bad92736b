import Postgres

/// A value with the stamp of its collection, which only a read after the commit has.
protocol Stamped: Sendable {
  var stamp: Timestamp? { get set }
}
