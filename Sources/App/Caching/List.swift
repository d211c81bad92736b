import Foundation
import Postgres

/// Which part of a list is asked for.
struct Page: Sendable {
  var limit = 50
  var cursor: Cursor?

  /// Whether only all of it is wanted: read in any order, so that it ends where there turns out to be too much, and sorted
  /// when it is complete.
  var isWhole = false

  static let limits = 1...100
  /// As many items as ``Whole`` may hold: none is shorter than 132 bytes.
  static let whole = Page(limit: Whole.maximumLength / 132, isWhole: true)
}

/// Where the next page begins, and the stamp that the first one was read with. Opaque to clients.
struct Cursor: Sendable, Equatable {
  let list: ListName
  let stamp: Timestamp?
  /// The place of the last item that was given out, in the list's order.
  let time: Timestamp
  let id: UUID

  var text: String {
    var bytes = Data([list.rawValue])
    for number in [stamp?.microseconds ?? .min, time.microseconds] {
      withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
    withUnsafeBytes(of: id.uuid) { bytes.append(contentsOf: $0) }
    return bytes.base64URL
  }

  init(list: ListName, stamp: Timestamp?, time: Timestamp, id: UUID) {
    self.list = list
    self.stamp = stamp
    self.time = time
    self.id = id
  }

  init?(_ text: String) {
    guard let bytes = Data(base64URL: text), bytes.count == 33, let list = ListName(rawValue: bytes[0]) else {
      return nil
    }
    let (stamp, time, id) = bytes.withUnsafeBytes { bytes in
      (
        Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 1, as: Int64.self)),
        Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 9, as: Int64.self)),
        UUID(uuid: bytes.loadUnaligned(fromByteOffset: 17, as: uuid_t.self))
      )
    }
    guard Timestamp.years1To9999.contains(time), stamp == .min || Timestamp.years1To9999.contains(stamp) else {
      return nil
    }
    self.list = list
    self.stamp = stamp == .min ? nil : Timestamp(microseconds: stamp)
    self.time = Timestamp(microseconds: time)
    self.id = id
  }
}

/// Which list a cursor belongs to: one list's place means nothing in another. The numbers are in clients' hands.
enum ListName: UInt8, Sendable {
  case friends = 1
  case incomingRequests, sentRequests, events, pastEvents, invitations, invitationsByStatus, sessions
  case guests, blocks, inbox, devices
}

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

  fileprivate func select(_ page: Page) throws -> SQL {
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

/// A page of items, and the stamp of the collection that they are, read in the same snapshot.
struct List<Item: Sendable>: Sendable {
  let items: [Item]
  let next: Cursor?
  let stamp: Timestamp?
  /// Whether pages come before it.
  let isContinued: Bool

  /// A collection: items and stamp come from one statement, hence from one snapshot.
  static func read(
    _ collection: Collection, of user: User.ID, page: Page, query: Keyset, in database: some Querying,
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
    page: Page, query: Keyset, in database: some Querying, item: (Row) throws -> Item
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
    rows: Rows, _ name: ListName, _ page: Page, stamp: Timestamp?, item: (Row) throws -> Item
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
