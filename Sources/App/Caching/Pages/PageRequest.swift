/// The requested part of a list.
struct PageRequest: Sendable {
  var limit = 50
  var cursor: Cursor?

  /// Whether only the complete list is wanted. Its rows are read in any order, so that the read ends if there are too
  /// many, and are sorted afterwards.
  var isComplete = false

  static let limits = 1...100
  /// All items, up to the maximum that a ``Snapshot`` can hold: no item is shorter than 132 bytes.
  static let all = PageRequest(limit: Snapshot.maximumLength / 132, isComplete: true)
}
