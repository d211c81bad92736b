import Foundation
import Postgres

/// The secret link to a user's calendar feed. It is made from a server key, so that the database alone does not give it
/// away, and so that it can be shown again.
struct CalendarLink: Sendable {
  typealias ID = Identifier<CalendarLink>

  let id: ID
  let createdAt: Timestamp

  private static let label = "mc1"
  private static let ending = ".ics"

  // MARK: Token

  /// The file's name in the URL: `mc1.kid.content.mac.ics`.
  ///
  /// It is made with the current signing key, so it changes after a rotation. Both names work until the old key is
  /// removed.
  func file(keys: SigningKeys) throws -> String {
    guard let token = keys.token(Self.label, Data(packing: id), kid: keys.signing.kid) else {
      throw AppError.calendarLinkNotFound
    }
    return token + Self.ending
  }

  /// The id in a file's name; nil unless one of the keys has signed it. Reads nothing from the database.
  static func id(of file: String, keys: SigningKeys) -> ID? {
    // Every token is shorter.
    guard file.utf8.count <= 200, file.hasSuffix(ending) else { return nil }
    return keys.read(String(file.dropLast(ending.count)), label)?.content.unpacked(as: ID.self)
  }

  // MARK: Verbs

  /// A SQL condition on `calendar_links AS l`: whether the link was made after the last end of everyone's sessions.
  static let isCurrent: SQL = "l.epoch >= (SELECT number FROM session_epoch WHERE is_only)"

  /// Makes a link. It replaces the previous one, which stops working.
  ///
  /// - Parameter session: must be open: a change that ends it also revokes the link.
  static func make(for user: User.ID, by session: Session.ID, in change: Change) async throws -> CalendarLink {
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    let row = try await change.first(
      """
      INSERT INTO calendar_links (user_id, id, session_ids, epoch)
      SELECT \(user), \(ID.new()), ARRAY[\(session)], number FROM session_epoch
      ON CONFLICT (user_id) DO UPDATE
      SET id = excluded.id, session_ids = excluded.session_ids, had_other_readers = excluded.had_other_readers,
        epoch = excluded.epoch, created_at = excluded.created_at
      RETURNING id, created_at
      """)
    guard let row else { throw AppError.sessionEnded }
    return try CalendarLink(row: row)
  }

  private init(row: Row) throws {
    (id, createdAt) = (try row["id"], try row["created_at"])
  }

  /// A user's link, and whether this session made it or has read it before. If not, ``read(of:by:in:)`` reads it.
  static func find(
    of user: User.ID, for session: Session.ID, in database: some Querying
  ) async throws -> (link: CalendarLink, isKnown: Bool)? {
    let row = try await database.first(
      """
      SELECT id, created_at, \(session) = ANY(session_ids) AS is_known FROM calendar_links AS l
      WHERE user_id = \(user) AND \(isCurrent)
      """)
    return try row.map { (try CalendarLink(row: $0), try $0["is_known"]) }
  }

  /// The user's link, which this session knows from now on.
  ///
  /// - Parameter session: must be open: a change that ends it also revokes the link.
  static func read(of user: User.ID, by session: Session.ID, in change: Change) async throws -> CalendarLink? {
    guard try await change.lock(user, for: .share).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    // Sessions that have ended leave the list, so that it is as short as the list of the user's open sessions.
    return try await change.first(
      """
      UPDATE calendar_links AS l
      SET session_ids = ARRAY(
          SELECT known.id FROM unnest(l.session_ids) AS known (id)
          WHERE known.id <> \(session) AND \(isKnownToOpenSession)
        ) || \(session)::uuid,
        had_other_readers = l.had_other_readers OR EXISTS (
          SELECT FROM unnest(l.session_ids) AS known (id) WHERE NOT \(isKnownToOpenSession)
        )
      WHERE l.user_id = \(user) AND \(isCurrent)
      RETURNING l.id, l.created_at
      """
    ).map(CalendarLink.init(row:))
  }

  /// A statement that revokes a user's link. The session that the change ends is locked before.
  static func revoking(of user: User.ID) -> SQL {
    "DELETE FROM calendar_links WHERE user_id = \(user)"
  }

  /// The same, if a session that has ended made or read the link, however it has ended.
  static func revokingIfLeaked(of user: User.ID) -> SQL {
    """
    \(revoking(of: user)) AND (
      had_other_readers OR EXISTS (SELECT FROM unnest(session_ids) AS known (id) WHERE NOT \(isKnownToOpenSession))
    )
    """
  }

  /// A condition on `unnest(session_ids) AS known (id)`: whether the session is open, and its user can still end it.
  private static let isKnownToOpenSession: SQL =
    "EXISTS (SELECT FROM sessions AS s WHERE s.id = known.id AND \(Session.isAlive("s")))"
}

extension AppError {
  static let calendarLinkNotFound = AppError(
    .notFound, "calendar-not-found", "This calendar does not exist, or its link was revoked or replaced.")
}
