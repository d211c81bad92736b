import Postgres

extension Report.Subject {
  /// The user whose content this is: the reported user, who may not exist, or the event's creator. Nil for a visitor,
  /// who has no account, and if the creator's account is deleted.
  ///
  /// - Throws: ``AppError/eventNotFound`` unless the reporter sees the event.
  func owner(for reporter: User.ID, in database: some Querying) async throws -> User.ID? {
    switch self {
    case .user(let user): return user
    case .event(let event):
      let row = try await database.first(
        "SELECT creator_id FROM events WHERE id = \(event) AND \(Event.isVisible(event, to: reporter))")
      guard let row else { throw AppError.eventNotFound }
      return try row["creator_id"]
    case .guest: return nil
    }
  }

  /// A query of the content as it is now. It has no row for an event that the reporter does not see.
  ///
  /// For a user it always has one, so that every id gets the same response. Senders of spam and threats delete their
  /// accounts or block their victims, who still have the id in a notification. To accept only some of these ids would
  /// tell a deleted account from a block. Nothing of a deleted account is left to be copied.
  func content(for reporter: User.ID) -> SQL {
    switch self {
    case .user(let user):
      """
      SELECT subject.id AS user_id, NULL::uuid AS event_id, NULL::uuid AS visitor_id, u.id AS owner_id,
        jsonb_strip_nulls(jsonb_build_object(
          'username', u.username, 'displayName', u.display_name, 'bio', u.bio
        )) AS snapshot, (SELECT p.jpeg_768 FROM pictures AS p WHERE p.user_id = u.id) AS picture
      FROM (SELECT \(user)::uuid AS id) AS subject
      LEFT JOIN users AS u ON u.id = subject.id
      """
    case .event(let event): "\(Self.content(of: event)) AND \(Event.isVisible(event, to: reporter))"
    case .guest(let visitor):
      """
      SELECT NULL::uuid AS user_id, NULL::uuid AS event_id, v.id AS visitor_id, NULL::uuid AS owner_id,
        jsonb_strip_nulls(jsonb_build_object(
          'name', v.name, 'event', e.title, 'eventId', e.id, 'linkId', v.link_id, 'creator', c.username
        )) AS snapshot, NULL::bytea AS picture
      FROM visitors AS v
      JOIN events AS e ON e.id = v.event_id
      LEFT JOIN users AS c ON c.id = e.creator_id
      CROSS JOIN LATERAL (SELECT \(Event.myStatus(of: reporter, atEvent: "e.id")) AS status) AS mine
      WHERE v.id = \(visitor) AND EXISTS (
        SELECT FROM (\(Guest.visible(at: "e.id", to: reporter, withStatus: "mine.status"))) AS seen WHERE seen.id = v.id
      )
      """
    }
  }

  /// A query of an event as it is now, for anyone. It may be continued with AND.
  static func content(of event: Event.ID) -> SQL {
    """
    SELECT NULL::uuid AS user_id, e.id AS event_id, NULL::uuid AS visitor_id, c.id AS owner_id,
      jsonb_strip_nulls(jsonb_build_object(
        'title', e.title, 'note', e.note, 'place', e.location_name, 'url', e.url, 'creator', c.username
      )) AS snapshot, NULL::bytea AS picture
    FROM events AS e
    LEFT JOIN users AS c ON c.id = e.creator_id
    WHERE e.id = \(event)
    """
  }

  var notFoundError: AppError {
    switch self {
    case .user: .userNotFound
    case .event: .eventNotFound
    case .guest: .guestNotFound
    }
  }

  var ownError: AppError {
    switch self {
    case .user: .invalid("userId", .notAllowed, "must be another user")
    case .event: .invalid("eventId", .notAllowed, "must be an event of another user")
    case .guest: .invalid("guestId", .notAllowed, "must be a visitor")
    }
  }
}
