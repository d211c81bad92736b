import Foundation
import Postgres

/// An entry of an event's guest list: an invitee or a visitor.
struct Guest: Sendable {
  /// The user's id, or that of the form that a guest without an account has sent.
  typealias ID = Identifier<Guest>

  /// Where a guest is stored: invitees are users, with a row in `invitations`; visitors have a row in `visitors`.
  enum Kind {
    case invitee, visitor
  }

  let id: ID
  /// Nil for a visitor.
  let person: Person?
  let name: String
  let status: Invitation.Status
  let plusOnes: Int
  let answeredAt: Timestamp?

  /// A record of a row of ``visible(at:to:withStatus:)`` as `i` and of the guest as `users AS u`, which has no row for
  /// a visitor.
  static let record: SQL = """
    ROW(i.id, \(Person.columns("u")), coalesce(i.name, u.display_name), i.status, i.plus_ones, i.answered_at)
    """

  /// The guests of an event whom a reader of the event may see. Guest lists and participants read guests only through
  /// this query. Only hosts see guests who wait for approval. An invitee who waits for it sees no one else.
  ///
  /// - Parameters:
  ///   - event: the event's id, as SQL.
  ///   - status: `creator`, `host`, or the state of the reader's invitation, as SQL. For NULL, the query has no one but
  ///     the reader.
  /// - Returns: a query that ends in its WHERE clause. Callers can add conditions with AND.
  static func visible(at event: SQL, to user: some SQLExpression<User.ID>, withStatus status: SQL) -> SQL {
    """
    SELECT id, user_id, name, status, plus_ones, since, answered_at FROM event_guests
    WHERE event_id = \(event) AND \(isShown(to: user))
      AND (id = \(user) OR \(status) <> 'pending')
      AND (status <> 'pending' OR id = \(user) OR \(status) IN ('creator', 'host'))
    """
  }

  /// A SQL condition on `event_guests`: whether no block hides the guest. Nothing hides visitors, because they have no
  /// account.
  static func isShown(to user: some SQLExpression<User.ID>) -> SQL {
    "(user_id IS NULL OR \(User.visible("user_id", to: user)))"
  }

  /// An event's guest list. Only its hosts and its guests can read it. For all other users the event does not exist.
  /// Sorted by id, an order that no answer changes.
  static func list(
    of event: Event.ID, for user: User.ID, page: PageRequest, in database: some Querying
  ) async throws -> List<Guest> {
    let rest: SQL = page.cursor.map { cursor -> SQL in "AND id > \(cursor.id)" } ?? ""
    let guests = visible(at: "\(event)", to: user, withStatus: Event.myStatus(of: user, at: event))
    // Limit to the page before joining `users`: with thousands of guests, joining them all was most of the cost.
    let query = Keyset(
      list: .guests, columns: "\(record) AS guest",
      source: """
        (\(guests) \(rest) ORDER BY id LIMIT \(page.limit + 1)) AS i
        LEFT JOIN users AS u ON u.id = i.user_id
        WHERE \(Event.isVisible(event, to: user))
        """,
      time: "timestamptz 'epoch'", id: "i.id", order: .ascending, isCut: true)
    let list: List<Guest> = try await List.read(page: page, query: query, in: database) { try $0["guest"] }
    // An empty page: either nothing is left to show, or the user may not see the event.
    if list.items.isEmpty {
      let isVisible: Bool? = try await database.value("SELECT \(Event.isVisible(event, to: user))")
      guard isVisible == true else { throw AppError.eventNotFound }
    }
    return list
  }
}

extension Guest {
  /// The first page of an event's guest list. See ``Event/find(withGuests:for:digests:in:)``.
  ///
  /// A class, so that each event of a list has one word for it: copies of the struct were 2 % of a feed.
  final class FirstPage: Sendable, JSONWritable {
    fileprivate static let length = 50

    private let items: [Guest]
    private let next: Cursor?

    /// - Parameter row: with `guests` of ``Guest/firstPage(at:to:withStatus:)``.
    init(row: Row) throws {
      let guests: [Guest] = try row["guests"]
      items = Array(guests.prefix(Self.length))
      let last = guests.count > items.count ? items.last : nil
      next = last.map { Cursor(list: .guests, stamp: nil, time: .init(microseconds: 0), id: $0.id.rawValue) }
    }

    func write(to json: inout JSONWriter) {
      json.object {
        $0.member("items", items)
        $0.member("nextCursor", next?.text)
        // As in the list itself.
        $0.member("timestamp", nil as Stamp?)
      }
    }
  }

  /// A query of the records of the first guests in the order of the list, one more than a page. The parameters are those
  /// of ``visible(at:to:withStatus:)``.
  static func firstPage(at event: SQL, to user: User.ID, withStatus status: SQL) -> SQL {
    """
    SELECT \(record)
    FROM (
      \(visible(at: event, to: user, withStatus: status))
      ORDER BY id
      LIMIT \(unescaped: "\(FirstPage.length + 1)")
    ) AS i
    LEFT JOIN users AS u ON u.id = i.user_id
    ORDER BY i.id
    """
  }
}

extension Guest.ID {
  init(_ user: User.ID) { self.init(rawValue: user.rawValue) }

  /// The user with this id, if the guest has an account.
  var user: User.ID { User.ID(rawValue: rawValue) }
}

extension Guest: SQLRecord {
  init(fields: inout SQLFields) throws {
    id = try fields.next()
    person = try Person.orNil(&fields)
    name = try fields.next()
    status = try fields.next()
    plusOnes = try fields.next()
    answeredAt = try fields.next()
  }
}
