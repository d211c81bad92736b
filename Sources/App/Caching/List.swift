import Foundation
import Postgres

/// A page of items, and the stamp of the collection that they are, read in the same snapshot.
struct List<Item: Sendable>: Sendable {
  let items: [Item]
  let next: Cursor?
  let stamp: Timestamp?
  /// Whether pages come before it.
  let isContinued: Bool

  /// A collection: items and stamp come from one statement, hence from one snapshot.
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
    // Everybody has a stamp of every collection, unless the account is gone.
    guard !rows.isEmpty else { throw AppError.sessionEnded }
    // Pages after the first are dated like the first: what changed in between is then not taken for seen.
    let stamp = try page.cursor?.stamp ?? rows.first?["stamp"]
    return try List(rows: rows, query.list, page, stamp: stamp, item: item)
  }

  /// A list that phones do not keep.
  static func read(
    page: PageRequest, query: Keyset, in database: some Querying, item: (Row) throws -> Item
  ) async throws -> List<Item> {
    try List(rows: try await database.rows(query.select(page)), query.list, page, stamp: nil, item: item)
  }

  /// A list in an order that the next moment may change, such as a search's: it has one page, and no stamp.
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
      // An empty collection is one row with nothing beside its stamp.
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
