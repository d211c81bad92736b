/// The requested part of a list.
struct PageRequest: Sendable {
  var limit = 50
  var cursor: Cursor?

  /// Whether the list is wanted only if it is complete. Its rows are read in any order, so that the read ends if there
  /// are too many, and are sorted afterwards.
  var isWhole = false

  static let limits = 1...100
  /// The most items that a ``Snapshot`` can hold: none is shorter than 132 bytes.
  static let whole = PageRequest(limit: Snapshot.maximumLength / 132, isWhole: true)
}
