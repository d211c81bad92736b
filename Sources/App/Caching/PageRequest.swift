/// Which part of a list is asked for.
struct PageRequest: Sendable {
  var limit = 50
  var cursor: Cursor?

  /// Whether only all of it is wanted: read in any order, so that it ends where there turns out to be too much, and sorted
  /// when it is complete.
  var isWhole = false

  static let limits = 1...100
  /// As many items as ``Snapshot`` may hold: none is shorter than 132 bytes.
  static let whole = PageRequest(limit: Snapshot.maximumLength / 132, isWhole: true)
}
