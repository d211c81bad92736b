import Postgres

/// Events with their first participants, as the reader sees them.
extension Event {
  /// How many participants a single event has, and how many an event in a list.
  static let participantsShown = 20
  static let participantsListed = 5

  /// Adds the first participants of each event to a query of events.
  ///
  /// One statement, so that counts and participants come from one snapshot. The indexes `invitations_in_order` and
  /// `visitors_in_order` have the order, so that an event with thousands of guests costs as much as one with a few.
  ///
  /// - Parameters:
  ///   - events: a query for ``columns``.
  ///   - order: the order of the events. It calls the query `event`.
  static func withParticipants(
    _ events: SQL, order: SQL, atMost limit: Int, for user: some SQLExpression<User.ID>
  ) -> SQL {
    """
    SELECT event.*, ARRAY(
      SELECT \(Guest.record)
      FROM (
        SELECT v.id, v.user_id, v.name, v.status, v.plus_ones, v.since, v.answered_at,
          array_position(ARRAY['going', 'maybe', 'waitlisted', 'invited'], v.status) AS rank
        FROM (\(Guest.visible(at: "event.id", to: user, withStatus: "event.my_status"))) AS v
        ORDER BY rank, v.since, v.id
        LIMIT \(unescaped: "\(limit)")
      ) AS i
      LEFT JOIN users AS u ON u.id = i.user_id
      ORDER BY i.rank, i.since, i.id
    ) AS participants
    FROM (\(events)) AS event
    ORDER BY \(order)
    """
  }

  /// Makes a statement with participants, in the same transaction, read them in the order of the indexes. The planner
  /// expects few guests for an event, and would read and sort all of them.
  static let readingInOrder: SQL = """
    SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)
    """

  /// - Parameter row: a row of ``withParticipants(_:order:atMost:for:)``.
  init(withParticipants row: Row) throws {
    self = try Event(row: row)
    participants = try row["participants"]
  }

  /// A query for an event with its first participants. Only its hosts and its guests can read it. For all other users
  /// it does not exist.
  static func detail(_ id: ID, for user: User.ID) -> SQL { detail(id, user) }

  private static let detail = CompiledSQL { (id: SQLArgument<ID>, user: SQLArgument<User.ID>) in
    withParticipants(
      "SELECT \(columns) FROM \(visible(to: user)) WHERE e.id = \(id)", order: "event.id", atMost: participantsShown,
      for: user)
  }

  /// The ids of all users and visitors whom the event shows.
  var shownIDs: [Guest.ID] {
    hosts.map { Guest.ID(rawValue: $0.id.rawValue) } + (participants ?? []).map(\.id)
  }

  /// - Parameter rows: the result of ``detail(_:for:)``.
  /// - Throws: ``AppError/eventNotFound``
  init(detail rows: Rows) throws {
    guard let row = rows.first else { throw AppError.eventNotFound }
    self = try Event(withParticipants: row)
  }

  static func find(_ id: ID, for user: User.ID, in database: some Querying) async throws -> Event {
    try Event(detail: try await database.rows(detail(id, for: user)))
  }
}
