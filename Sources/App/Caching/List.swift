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
  /// Whether no two items have the same time. The id then adds nothing to the order, and no sort to the plan.
  var hasUniqueTimes = false
  /// Whether `source` already begins at the page's cursor, because it is cut to the page before a join.
  var isCut = false
  /// Joins that apply to the page only, which is named `page` and has `cursor_time` and `cursor_id`. With thousands of
  /// items, joining all of them would be most of the cost.
  var join: SQL?
  /// A number to read along with the page, in the same snapshot.
  var count: SQL?

  fileprivate func select(_ page: PageRequest) throws -> SQL {
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
  fileprivate var sorting: SQL {
    if hasUniqueTimes { return "cursor_time \(unescaped: order.rawValue)" }
    return "cursor_time \(unescaped: order.rawValue), cursor_id \(unescaped: order.rawValue)"
  }
}

/// The place where the next page begins, and the stamp of the first page. Opaque to clients.
struct Cursor: Sendable, Equatable {
  let list: ListName
  let stamp: Timestamp?
  /// The place of the last returned item in the list's order.
  let time: Timestamp
  let id: UUID

  /// The place of an item in a list's order.
  struct Place: Sendable {
    let time: Timestamp
    let id: UUID
  }

  var text: String {
    Data(packing: list.rawValue, stamp?.microseconds ?? .min, time.microseconds, id).base64URL
  }

  init(list: ListName, stamp: Timestamp?, time: Timestamp, id: UUID) {
    self.list = list
    self.stamp = stamp
    self.time = time
    self.id = id
  }

  init?(_ text: String) {
    guard let bytes = Data(base64URL: text),
      let (name, stamp, time, id) = bytes.unpacked(as: UInt8.self, Int64.self, Int64.self, UUID.self),
      let list = ListName(rawValue: name), Timestamp.years1To9999.contains(time),
      stamp == .min || Timestamp.years1To9999.contains(stamp)
    else { return nil }
    self.init(
      list: list, stamp: stamp == .min ? nil : Timestamp(microseconds: stamp), time: Timestamp(microseconds: time),
      id: id)
  }
}

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

/// The list to which a cursor belongs. A cursor is invalid in any other list. Clients hold the numbers, so they must
/// not change.
enum ListName: UInt8, Sendable {
  case friends = 1
  case incomingRequests, sentRequests, events, pastEvents, invitations, invitationsByStatus, sessions
  case guests, blocks, inbox, devices, unreadInbox, filteredRequests, proposals
}

/// The additions to a list or to an event.
enum ListInclude: String {
  /// The first participants of each event. Phones do not keep this list.
  case participants
  /// The digests of the items. See ``ItemDigests``.
  case digests
  /// The first page of an event's guest list.
  case guests
}

extension Dependencies {
  /// Nil unless a list is to include digests.
  func digests(if include: ListInclude?) -> ItemDigests? { include == .digests ? itemDigests : nil }
}

extension QueryFields {
  /// `?include=` of a list, or of an event.
  ///
  /// - Parameter words: what may be included, one at a time.
  mutating func include(_ words: ListInclude...) -> ListInclude? {
    word("include", of: words)
  }

  /// Records an error if the digests of a filtered list are wanted. Phones do not keep such a list.
  mutating func refuseDigests(_ include: ListInclude?, if isFiltered: Bool) {
    guard include == .digests, isFiltered else { return }
    note("include", .notAllowed, "digests are only for lists without filters and ids")
  }
}
