import Postgres

/// A list in the order of a time and then an id. While other items come and go, pages neither skip nor repeat an item
/// that keeps its place.
struct Keyset: Sendable {
  enum Order: String {
    case ascending = "ASC"
    case descending = "DESC"
  }

  let list: ListName
  let columns: SQL
  /// The SQL after FROM, including a WHERE clause that can be continued with AND.
  let source: SQL
  let time: SQL
  let id: SQL
  let order: Order
  /// Whether `source` already begins at the page's cursor, because it is cut to the page before a join.
  var isCut = false
  /// Joins that apply to the page only, which is named `page` and has `cursor_time` and `cursor_id`. With thousands of
  /// items, joining all of them would be most of the cost.
  var join: SQL?
  /// A number to read along with the page, in the same snapshot.
  var count: SQL?

  func select(_ page: PageRequest) throws -> SQL {
    var rest: SQL = ""
    if let cursor = page.cursor {
      guard cursor.list == list else { throw AppError.invalid([.foreignCursor]) }
      if !isCut {
        rest = "AND (\(time), \(id)) \(unescaped: order == .ascending ? ">" : "<") (\(cursor.time), \(cursor.id))"
      }
    }
    let pageOrder: SQL = page.isComplete ? "" : "ORDER BY \(sorting)"
    // One extra row shows whether there is a next page.
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
      ORDER BY \(sorting)
      """
  }

  /// The order of a page, by columns of its query.
  var sorting: SQL {
    "cursor_time \(unescaped: order.rawValue), cursor_id \(unescaped: order.rawValue)"
  }
}
