import Foundation
import Postgres

/// A page of items and the stamp of their collection, read in the same snapshot.
struct List<Item: Sendable>: Sendable {
  let items: [Item]
  let next: Cursor?
  let stamp: Timestamp?
  /// Whether this is a later page than the first.
  let isContinued: Bool

  /// Reads a page of a collection. Items and stamp come from one statement, and so from one snapshot.
  static func read(
    _ collection: Collection, of user: User.ID, page: PageRequest, query: Keyset, in database: some Querying,
    item: (Row) throws -> Item
  ) async throws -> List<Item> {
    let direction = query.order.rawValue
    let rows = try await database.rows(
      """
      SELECT s.\(unescaped: collection.column) AS stamp, item.*
      FROM user_stamps AS s
      LEFT JOIN LATERAL (
      \(try query.select(page))
      ) AS item ON true
      WHERE s.user_id = \(user)
      ORDER BY item.cursor_time \(unescaped: direction), item.cursor_id \(unescaped: direction)
      """)
    // Every account has stamps of all collections. Without them, the account is gone.
    guard !rows.isEmpty else { throw AppError.sessionEnded }
    // Later pages keep the first page's stamp. A change between two pages then makes the client's copy stale.
    let stamp = try page.cursor?.stamp ?? rows.first?["stamp"]
    return try List(rows: rows, query.list, page, stamp: stamp, item: item)
  }

  /// Reads a page of a list that phones do not keep.
  static func read(
    page: PageRequest, query: Keyset, in database: some Querying, item: (Row) throws -> Item
  ) async throws -> List<Item> {
    try List(rows: try await database.rows(query.select(page)), query.list, page, stamp: nil, item: item)
  }

  /// A list whose order may change at any moment, such as search results. It has one page and no stamp.
  init(onlyPage items: [Item]) {
    self.items = items
    next = nil
    stamp = nil
    isContinued = false
  }

  private init(
    rows: Rows, _ name: ListName, _ page: PageRequest, stamp: Timestamp?, item: (Row) throws -> Item
  ) throws {
    var items: [Item] = []
    var last: (time: Timestamp, id: UUID)?
    var hasMore = false
    for row in rows {
      // An empty collection is one row with nothing but a stamp.
      guard let id: UUID = try row["cursor_id"] else { break }
      guard items.count < page.limit else {
        hasMore = true
        break
      }
      items.append(try item(row))
      last = (try row["cursor_time"], id)
    }
    self.items = items
    self.stamp = stamp
    isContinued = page.cursor != nil
    next = hasMore ? last.map { Cursor(list: name, stamp: stamp, time: $0.time, id: $0.id) } : nil
  }
}
