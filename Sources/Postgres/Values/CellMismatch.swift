/// Why a cell cannot become the requested Swift type. A type's `init(cell:)` throws it, and the row adds the column's
/// name.
public enum CellMismatch: Error, Sendable {
  /// The cell is NULL.
  case null
  /// The cell has another type.
  case type
  /// The bytes are not a value of the type, or the Swift type cannot represent the value.
  case malformed
  /// The cell is an array, and one of its elements is NULL.
  case nullElement
  /// The cell is an array with several dimensions.
  case dimensions
}
