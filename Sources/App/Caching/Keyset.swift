import Postgres

/// A list's items in the order of a time and, within it, of an id: pages then neither skip nor repeat an item that
/// stays where it is, whatever comes and goes around it.
struct Keyset: Sendable {
  enum Order: String {
    case ascending = "ASC"
    case descending = "DESC"
  }

  let list: ListName
  let columns: SQL
  /// What follows FROM, up to a WHERE clause that may be continued with AND.
  let source: SQL
  let time: SQL
  let id: SQL
  let order: Order
  /// Whether `source` begins at the page's cursor by itself, as one does that is cut to the page before it is joined.
  var isCut = false
  /// What is joined to the page only, which is `page` there, with `cursor_time` and `cursor_id`. With thousands of items,
  /// looking up what belongs to each of them would be most of the cost.
  var join: SQL?

  func select(_ page: PageRequest) throws -> SQL {
    var rest: SQL = ""
    if let cursor = page.cursor {
      guard cursor.list == list else { throw AppError.invalid([.foreignCursor]) }
      if !isCut {
        rest = "AND (\(time), \(id)) \(unescaped: order == .ascending ? ">" : "<") (\(cursor.time), \(cursor.id))"
      }
    }
    let direction = order.rawValue
    let sorted: SQL = "ORDER BY cursor_time \(unescaped: direction), cursor_id \(unescaped: direction)"
    let pageOrder: SQL = page.isWhole ? "" : sorted
    // One more than wanted tells whether there is a next page.
    let keys: SQL = """
      \(time) AS cursor_time, \(id) AS cursor_id
      FROM \(source) \(rest)
      \(pageOrder)
      LIMIT \(page.limit + 1)
      """
    guard let join else { return "SELECT \(columns), \(keys)" }
    return """
      SELECT \(columns), page.cursor_time, page.cursor_id
      FROM (SELECT \(keys)) AS page
      \(join)
      \(sorted)
      """
  }
}
