import Postgres

extension Report.Subject {
  /// The user whose content this is: the reported user, or the event's creator. Nil for a visitor,
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

  /// A query of the content as it is now. It has no row unless the reporter sees the subject.
  ///
  /// A user whom the reporter has blocked can be reported, because most people block first. Only a user in the
  /// reporter's list of blocks can: for anyone else who is hidden, a report would reveal that they exist.
  ///
  /// A user whose account is gone can be reported by those who had a friend request or an invitation from them. Nothing
  /// of the account is left to be copied.
  func content(for reporter: User.ID) -> SQL {
    switch self {
    case .user(let user):
      """
      SELECT u.id AS user_id, NULL::uuid AS event_id, NULL::uuid AS visitor_id, u.id AS owner_id,
        jsonb_strip_nulls(jsonb_build_object(
          'username', u.username, 'displayName', u.display_name, 'bio', u.bio
        )) AS snapshot, (SELECT p.jpeg_768 FROM pictures AS p WHERE p.user_id = u.id) AS picture
      FROM users AS u
      WHERE u.id = \(user) AND (
        \(User.visible("u.id", to: reporter))
        OR u.id IN (SELECT blocked_id FROM shown_blocks WHERE blocker_id = \(reporter))
      )
      UNION ALL
      SELECT \(user), NULL, NULL, NULL, '{}', NULL FROM departed_senders
      WHERE digest = \(Report.trace(of: "\(user)", to: "\(reporter)")) AND until > now()
        AND NOT EXISTS (SELECT FROM users WHERE id = \(user))
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
        'title', e.title, 'note', e.note, 'place', e.location_name, 'creator', c.username
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
