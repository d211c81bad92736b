import Postgres

extension Event {
  /// An event with its first participants, as the reader sees them. Only its creator and its guests can read it. For
  /// all other users it does not exist.
  struct Detail: Sendable {
    let event: Event
    let participants: [Guest]

    /// One statement, so that counts and participants come from one snapshot. It joins `users` only for the
    /// participants that are shown, not for thousands of guests.
    static func query(_ id: ID, for user: User.ID) -> SQL {
      """
      SELECT \(Event.columns), guest.*
      FROM \(Event.visible(to: user))
      LEFT JOIN LATERAL (
        SELECT \(Guest.columns), i.rank, i.invited_at
        FROM (
          SELECT v.user_id, v.status, v.invited_at, v.answered_at,
            array_position(ARRAY['going', 'maybe', 'waitlisted', 'invited'], v.status) AS rank
          FROM (\(Guest.visible(at: "e.id", to: user))) AS v
          ORDER BY rank, v.invited_at, v.user_id
          LIMIT \(Event.participantsShown)
        ) AS i
        JOIN users AS u ON u.id = i.user_id
      ) AS guest ON true
      WHERE e.id = \(id)
      ORDER BY guest.rank, guest.invited_at, guest.guest_id
      """
    }

    init(rows: Rows) throws {
      guard let row = rows.first else { throw AppError.eventNotFound }
      event = try Event(row: row)
      // An event without guests is one row whose guest columns are NULL.
      participants = try rows.filter { try ($0["guest_id"] as User.ID?) != nil }.map(Guest.init(row:))
    }
  }

  static func find(_ id: ID, for user: User.ID, in database: some Querying) async throws -> Detail {
    try Detail(rows: try await database.rows(Detail.query(id, for: user)))
  }
}
