import Postgres

/// An entry of an event's guest list.
struct Guest: Sendable {
  let person: Person
  let status: Invitation.Status
  let plusOnes: Int
  let answeredAt: Timestamp?

  /// The columns of ``visible(at:to:)`` as `i` and of the guest as `users AS u`.
  static let columns: SQL = """
    \(Person.columns("u", prefix: "guest_")), i.status AS guest_status, i.plus_ones AS guest_plus_ones,
    i.answered_at AS guest_answered_at
    """

  /// The invitations to an event that a reader of the event may see. Guest lists and participants read invitations only
  /// through this query.
  ///
  /// - Parameter event: the event's id, as SQL.
  /// - Returns: a query that ends in its WHERE clause. Callers can add conditions with AND.
  static func visible(at event: SQL, to user: User.ID) -> SQL {
    """
    SELECT user_id, status, plus_ones, invited_at, answered_at FROM invitations
    WHERE event_id = \(event) AND \(User.visible("user_id", to: user))
    """
  }

  init(row: Row) throws {
    person = try Person(row: row, prefix: "guest_")
    status = try row["guest_status"]
    plusOnes = try row["guest_plus_ones"]
    answeredAt = try row["guest_answered_at"]
  }

  /// An event's guest list. Only its hosts and its guests can read it. For all other users the event does not exist.
  /// Sorted by user id, an order that no answer changes.
  static func list(
    of event: Event.ID, for user: User.ID, page: PageRequest, in database: some Querying
  ) async throws -> List<Guest> {
    let rest: SQL = page.cursor.map { cursor -> SQL in "AND user_id > \(cursor.id)" } ?? ""
    // Limit to the page before joining `users`: with thousands of guests, joining them all was most of the cost.
    let query = Keyset(
      list: .guests, columns: columns,
      source: """
        (\(visible(at: "\(event)", to: user)) \(rest) ORDER BY user_id LIMIT \(page.limit + 1)) AS i
        JOIN users AS u ON u.id = i.user_id
        WHERE \(Event.isVisible(event, to: user))
        """,
      time: "timestamptz 'epoch'", id: "i.user_id", order: .ascending, isCut: true)
    let list = try await List.read(page: page, query: query, in: database, item: Guest.init(row:))
    // An empty page: either nothing is left to show, or the user may not see the event.
    if list.items.isEmpty {
      let isVisible: Bool? = try await database.value("SELECT \(Event.isVisible(event, to: user))")
      guard isVisible == true else { throw AppError.eventNotFound }
    }
    return list
  }
}
