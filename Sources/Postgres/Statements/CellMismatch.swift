/// Why a cell cannot become the requested Swift type. The row adds the column's name.
enum CellMismatch: Error {
  case null, type, malformed
  /// Only for arrays: an element is NULL, or there are several dimensions.
  case nullElement, dimensions
}
