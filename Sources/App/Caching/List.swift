import Foundation
import Postgres

/// A page of items and the stamp of their collection, read in the same snapshot.
struct List<Item: Sendable>: Sendable {
  let items: [Item]
  let next: Cursor?
  var stamp: Timestamp?
  /// The result of ``Keyset/count``.
  let count: Int?
  /// Whether this is a later page than the first.
  let isContinued: Bool

  /// Reads a page of a collection. Items and stamp come from one statement, and so from one snapshot.
  static func read(
    _ collection: Collection, of user: User.ID, page: PageRequest, query: Keyset, in database: some Querying,
    item: (Row) throws -> Item
  ) async throws -> List<Item> {
    let rows = try await database.rows(
      """
      SELECT s.\(unescaped: collection.column) AS stamp, \(query.count ?? "NULL::bigint") AS beside, item.*
      FROM user_stamps AS s
      LEFT JOIN LATERAL (
      \(try query.select(page))
      ) AS item ON true
      WHERE s.user_id = \(user)
      ORDER BY \(query.sorting)
      """)
    // Every account has stamps of all collections. Without them, the account is gone.
    guard !rows.isEmpty else { throw AppError.sessionEnded }
    let current: Timestamp? = try rows.first?["stamp"]
    // A later page keeps the first page's stamp, or has none once the list has changed: the pages then do not fit
    // together.
    let stamp = page.cursor.map { $0.stamp == current ? current : nil } ?? current
    return try List(rows: rows, query.list, page, stamp: stamp, count: rows.first?["beside"], item: item)
  }

  /// Reads a page of a list that phones do not keep.
  static func read(
    page: PageRequest, query: Keyset, in database: some Querying, item: (Row) throws -> Item
  ) async throws -> List<Item> {
    try List(rows: try await database.rows(query.select(page)), query.list, page, stamp: nil, item: item)
  }

  /// The same for a list whose items have several rows each.
  ///
  /// - Parameters:
  ///   - statement: makes the statement from the page's query and its order.
  ///   - more: adds a further row to the item of the row before.
  static func read(
    page: PageRequest, query: Keyset, in database: some Querying, statement: (_ page: SQL, _ order: SQL) -> SQL,
    item: (Row) throws -> Item, more: (inout Item, Row) throws -> Void
  ) async throws -> List<Item> {
    let rows = try await database.pipeline(Event.readingInOrder, statement(try query.select(page), query.sorting))[1]
    return try List(rows: rows, query.list, page, stamp: nil, item: item, more: more)
  }

  /// A list whose order may change at any moment, such as search results. It has one page and no stamp.
  init(onlyPage items: [Item]) {
    self.items = items
    next = nil
    stamp = nil
    count = nil
    isContinued = false
  }

  private init(
    rows: Rows, _ name: ListName, _ page: PageRequest, stamp: Timestamp?, count: Int? = nil, item: (Row) throws -> Item,
    more: (inout Item, Row) throws -> Void = { _, _ in }
  ) throws {
    var items: [Item] = []
    var last: (time: Timestamp, id: UUID)?
    var hasMore = false
    for row in rows {
      // An empty collection is one row with nothing but a stamp.
      guard let id: UUID = try row["cursor_id"] else { break }
      if id == last?.id {
        try more(&items[items.count - 1], row)
        continue
      }
      guard items.count < page.limit else {
        hasMore = true
        break
      }
      items.append(try item(row))
      last = (try row["cursor_time"], id)
    }
    self.items = items
    self.stamp = stamp
    self.count = count
    isContinued = page.cursor != nil
    next = hasMore ? last.map { Cursor(list: name, stamp: stamp, time: $0.time, id: $0.id) } : nil
  }
}
