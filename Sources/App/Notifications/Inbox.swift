import Foundation
import Postgres

/// A notification in somebody's inbox, where it stays for 90 days, whatever becomes of its delivery.
struct InboxItem: Sendable {
  typealias ID = Identifier<InboxItem>

  /// The same in the queue, in the stream and on devices.
  let id: ID
  /// Its place: no two of one inbox have the same, and they rise in the order of the commits.
  let filedAt: Timestamp
  let readAt: Timestamp?
  /// A JSON object: `type`, `message` and ids.
  let payload: JSONDocument

  /// How many may be marked one by one at once.
  static let maximumBatch = 500

  /// Of ``source(of:)``.
  static let columns: SQL = "n.id, n.filed_at, n.read_at, n.payload"

  /// What a user sees of their inbox, up to a WHERE clause that may be continued with AND: nothing that names somebody
  /// who is hidden from them.
  static func source(of user: User.ID) -> SQL {
    "notifications AS n WHERE \(isShown(to: user))"
  }

  private static func isShown(to user: User.ID) -> SQL {
    "n.recipient_id = \(user) AND (n.actor_id IS NULL OR \(User.visible("n.actor_id", to: user)))"
  }

  init(row: Row) throws {
    id = try row["id"]
    filedAt = try row["filed_at"]
    readAt = try row["read_at"]
    payload = try row["payload"]
  }

  /// Newest first.
  static func list(of user: User.ID, page: Page, in database: some Querying) async throws -> List<InboxItem> {
    try await List.read(
      .notifications, of: user, page: page,
      query: Keyset(
        list: .inbox, columns: columns, source: source(of: user), time: "n.filed_at", id: "n.id", order: .descending),
      in: database, item: InboxItem.init(row:))
  }

  /// What is marked as read.
  enum Marked: Sendable {
    case these([ID])
    /// All that had arrived at this time. The list's stamp is the time of its newest item, or later: echoed, it marks
    /// what was in the list, and nothing that came since.
    case arrived(by: Timestamp)
  }

  /// Marks as read what the user sees and has not read yet. Ids that are none of theirs are passed over.
  ///
  /// - Returns: how many are unread after it.
  /// - Throws: ``AppError/sessionEnded`` without an account.
  static func markRead(_ marked: Marked, by user: User.ID, in change: Change) async throws -> Int {
    let isMarked: SQL
    switch marked {
    case .these(let ids): isMarked = "n.id = ANY(\(ids))"
    case .arrived(let time): isMarked = "n.filed_at <= \(time)"
    }
    let answers = try await change.pipeline(
      // The one stamp that is locked before what it is the stamp of: notifications are filed, and deleted with accounts,
      // under it. So none is being filed meanwhile, and two who mark do not wait for each other crosswise. No other stamp
      // is touched here, nor any row that somebody else locks before a stamp.
      """
      SELECT 1 FROM collection_stamps
      WHERE user_id = \(user) AND collection = \(Collection.notifications)::collection
      FOR NO KEY UPDATE
      """,
      """
      UPDATE notifications AS n SET read_at = clock_timestamp()
      WHERE \(isShown(to: user)) AND n.read_at IS NULL AND \(isMarked)
      """,
      "SELECT count(*) FROM \(source(of: user)) AND n.read_at IS NULL")
    guard !answers[0].isEmpty else { throw AppError.sessionEnded }
    if answers[1].affected > 0 { change.touch(.notifications, of: user) }
    return try answers[2].first.map { try $0[0] } ?? 0
  }
}

extension InboxItem: JSONWritable {
  /// The payload's members stand beside the item's own.
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("id", id)
      $0.member("createdAt", filedAt)
      $0.member("readAt", readAt)
      $0.raw(",")
      $0.raw(payload.text.utf8.dropFirst().dropLast())
    }
  }
}
