import Foundation
import Postgres

/// A report as an operator sees it.
public struct ReportEntry: Sendable, Encodable {
  public let id: String
  public let reason: String
  /// The reporter's words; nil if there are none, or if the reporter's account is deleted.
  public let text: String?
  /// The reporter's username; nil if the account is deleted, and for a report from the page of a share link.
  public let reporter: String?
  /// The id of the reported user, event or visitor. The others are nil.
  public let userId: String?
  public let eventId: String?
  public let guestId: String?
  /// The share link on whose page someone reported the event.
  public let linkId: String?
  /// The current username of the reported user, or of the event's creator; nil for a visitor, and if the account is
  /// deleted.
  public let owner: String?
  /// The reported content, by its name, as it was at the time of the report.
  public let snapshot: [String: String]
  /// Whether there is a picture: see ``Report/picture(of:in:)``.
  public let hasPicture: Bool
  public let createdAt: String
  public let closedAt: String?
  public let closingNote: String?
  /// When the report will be deleted, if that is known.
  public let expiresAt: String?

  /// Lists open reports, oldest first, or all reports, latest first.
  public static func list(all: Bool, atMost limit: Int, in database: Database) async throws -> [ReportEntry] {
    let order: SQL = all ? "r.created_at DESC, r.id DESC" : "r.created_at, r.id"
    return try await database.slow.rows(
      """
      SELECT r.id, r.reason, r.text, r.user_id, r.event_id, r.visitor_id, r.link_id, r.snapshot, r.picture IS NOT NULL AS has_picture,
        r.created_at, r.closed_at, r.closing_note, r.expires_at, reporter.username AS reporter, owner.username AS owner
      FROM reports AS r
      LEFT JOIN users AS reporter ON reporter.id = r.reporter_id
      LEFT JOIN users AS owner ON owner.id = r.owner_id
      WHERE \(unescaped: all ? "true" : "r.closed_at IS NULL")
      ORDER BY \(order)
      LIMIT \(limit)
      """
    ).map(ReportEntry.init(row:))
  }

  private init(row: Row) throws {
    let report = try Report(row: row)
    id = report.id.description
    reason = report.reason.rawValue
    text = report.text
    reporter = try row["reporter"]
    userId = report.userID?.description
    eventId = report.eventID?.description
    guestId = report.guestID?.description
    let link: ShareLink.ID? = try row["link_id"]
    linkId = link?.description
    owner = try row["owner"]
    let content: JSONDocument = try row["snapshot"]
    snapshot = try JSONDecoder().decode([String: String].self, from: Data(content.text.utf8))
    hasPicture = try row["has_picture"]
    createdAt = report.createdAt.rfc3339()
    let (closed, expiring): (Timestamp?, Timestamp?) = (try row["closed_at"], try row["expires_at"])
    closedAt = closed?.rfc3339()
    closingNote = try row["closing_note"]
    expiresAt = expiring?.rfc3339()
  }
}
