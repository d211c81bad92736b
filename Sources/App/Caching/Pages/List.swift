import Foundation
import Postgres

/// A page of items and the stamp of their collection, read in the same snapshot.
struct List<Item: Sendable>: Sendable {
  let items: [Item]
  /// The place of each item in the list's order. Empty for a list without pages.
  let places: [Cursor.Place]
  private let name: ListName?
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

  /// The same for events with their first participants.
  ///
  /// - Parameter statement: makes the statement from the page's query and its order.
  static func read(
    page: PageRequest, query: Keyset, in database: some Querying, statement: (_ page: SQL, _ order: SQL) -> SQL,
    item: (Row) throws -> Item
  ) async throws -> List<Item> {
    let rows = try await database.pipeline(Event.readingInOrder, statement(try query.select(page), query.sorting))[1]
    return try List(rows: rows, query.list, page, stamp: nil, item: item)
  }

  /// A list whose order may change at any moment, such as search results. It has one page and no stamp.
  init(onlyPage items: [Item]) {
    self.init(items: items, places: [], name: nil, next: nil, stamp: nil, count: nil, isContinued: false)
  }

  private init(
    items: [Item], places: [Cursor.Place], name: ListName?, next: Cursor?, stamp: Timestamp?, count: Int?,
    isContinued: Bool
  ) {
    self.items = items
    self.places = places
    self.name = name
    self.next = next
    self.stamp = stamp
    self.count = count
    self.isContinued = isContinued
  }

  private init(
    rows: Rows, _ name: ListName, _ page: PageRequest, stamp: Timestamp?, count: Int? = nil, item: (Row) throws -> Item
  ) throws {
    var items: [Item] = []
    var places: [Cursor.Place] = []
    items.reserveCapacity(min(rows.count, page.limit))
    places.reserveCapacity(min(rows.count, page.limit))
    var hasMore = false
    for row in rows {
      // An empty collection is one row with nothing but a stamp.
      guard let id: UUID = try row["cursor_id"] else { break }
      guard items.count < page.limit else {
        hasMore = true
        break
      }
      items.append(try item(row))
      places.append(Cursor.Place(time: try row["cursor_time"], id: id))
    }
    let last = hasMore ? places.last : nil
    self.init(
      items: items, places: places, name: name,
      next: last.map { Cursor(list: name, stamp: stamp, time: $0.time, id: $0.id) }, stamp: stamp, count: count,
      isContinued: page.cursor != nil)
  }

  /// The page that begins after an item.
  func cursor(after index: Int) -> Cursor? {
    name.map { Cursor(list: $0, stamp: stamp, time: places[index].time, id: places[index].id) }
  }

  /// The same list with items of another type.
  func map<Other: Sendable>(_ transform: (Item) -> Other) -> List<Other> {
    List<Other>(
      items: items.map(transform), places: places, name: name, next: next, stamp: stamp, count: count,
      isContinued: isContinued)
  }
}
