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
    let content = withUnsafeBytes(of: id.rawValue.uuid) { Data($0) }
    guard let token = keys.token(Self.label, content, kid: keys.signing.kid) else {
      throw AppError.calendarLinkNotFound
    }
    return token + Self.ending
  }

  /// The id in a file's name; nil unless one of the keys has signed it. Reads nothing from the database.
  static func id(of file: String, keys: SigningKeys) -> ID? {
    // Every token is shorter.
    guard file.utf8.count <= 200, file.hasSuffix(ending),
      let (_, content) = keys.read(String(file.dropLast(ending.count)), label), content.count == 16
    else { return nil }
    return content.withUnsafeBytes { ID(rawValue: UUID(uuid: $0.loadUnaligned(as: uuid_t.self))) }
  }

  // MARK: Verbs

  /// Makes a link. It replaces the previous one, which stops working.
  ///
  /// - Parameter session: must be open: a change that ends it also revokes the link.
  static func make(for user: User.ID, by session: Session.ID, in change: Change) async throws -> CalendarLink {
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    let row = try await change.first(
      """
      INSERT INTO calendar_links (user_id, id) VALUES (\(user), \(ID.new()))
      ON CONFLICT (user_id) DO UPDATE SET id = excluded.id, created_at = excluded.created_at
      RETURNING id, created_at
      """)
    guard let row else { throw AppError.sessionEnded }
    return CalendarLink(id: try row["id"], createdAt: try row["created_at"])
  }

  static func find(of user: User.ID, in database: some Querying) async throws -> CalendarLink? {
    try await database.first("SELECT id, created_at FROM calendar_links WHERE user_id = \(user)")
      .map { CalendarLink(id: try $0["id"], createdAt: try $0["created_at"]) }
  }

  /// A statement that revokes a user's link. The session that the change ends is locked before.
  static func revoking(of user: User.ID) -> SQL {
    "DELETE FROM calendar_links WHERE user_id = \(user)"
  }
}

extension AppError {
  static let calendarLinkNotFound = AppError(
    .notFound, "calendar-not-found", "This calendar does not exist, or its link was revoked or replaced.")
}
