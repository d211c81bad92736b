import Foundation
import Postgres

/// A notification in a user's inbox. It stays there for 90 to 120 days, whether it is delivered or not.
struct InboxItem: Sendable {
  typealias ID = Identifier<InboxItem>

  /// The same in the queue, in the stream and on devices.
  let id: ID
  /// Its place in the inbox. Places are unique there and rise in commit order.
  let filedAt: Timestamp
  /// When the change was made.
  let createdAt: Timestamp
  let readAt: Timestamp?
  /// A JSON object: `type`, `message` and ids.
  let payload: JSONDocument

  /// The channel on which a worker announces that it has added to inboxes.
  static let channel = "muster_inbox"
  /// Items marked in one change, under the lock of the user's stamps.
  static let maximumMarked = 1000
  /// Unread items are counted up to this number, which stands for itself and all above it.
  static let maximumUnread = 999

  /// The columns of ``source(of:)``.
  static let columns: SQL = "n.id, n.filed_at, n.created_at, n.read_at, n.payload"

  /// The items that a user sees in their inbox, up to a WHERE clause that may be continued with AND. Items that name a
  /// user who is hidden from them are left out, and so are those below the inbox's floor.
  static func source(of user: User.ID) -> SQL {
    """
    notifications AS n WHERE n.recipient_id = \(user)
      AND n.filed_at >= (SELECT inbox_floor FROM user_stamps WHERE user_id = \(user))
      AND (n.person_id IS NULL OR \(User.visible("n.person_id", to: user)))
    """
  }

  init(row: Row) throws {
    id = try row["id"]
    filedAt = try row["filed_at"]
    createdAt = try row["created_at"]
    readAt = try row["read_at"]
    payload = try row["payload"]
  }

  /// Newest first, with the number of all unread items, up to ``maximumUnread``, as the list's ``List/count``.
  ///
  /// - Parameter onlyUnread: leaves out read items. Phones do not keep this list, so it has no stamp.
  static func list(
    of user: User.ID, onlyUnread: Bool = false, page: PageRequest, in database: some Querying
  ) async throws -> List<InboxItem> {
    let unread: SQL = "\(source(of: user)) AND n.read_at IS NULL"
    var list = try await List.read(
      .notifications, of: user, page: page,
      query: Keyset(
        list: onlyUnread ? .unreadInbox : .inbox, columns: columns, source: onlyUnread ? unread : source(of: user),
        time: "n.filed_at", id: "n.id", order: .descending, hasUniqueTimes: true,
        count: "(\(counting(unread, upTo: maximumUnread)))"),
      in: database, item: InboxItem.init(row:))
    if onlyUnread { list.stamp = nil }
    return list
  }

  /// As a subquery, the limit has no value that the planner knows, so that it never prefers to read all rows.
  private static func counting(_ source: SQL, upTo limit: Int) -> SQL {
    "SELECT count(*) FROM (SELECT FROM \(source) LIMIT (SELECT \(limit))) AS counted"
  }

  /// The items to mark as read.
  enum Marked: Sendable {
    case these([ID])
    /// All items that had arrived at this time. The list's stamp is the time of its newest item, or later: sent back,
    /// it marks the items in the list and none that came after.
    case arrived(by: Timestamp)
    case all
  }

  /// Marks unread items that the user sees as read, at most one batch, and queues the new number for the badges of
  /// their other iPhones. Ignores ids that are not theirs.
  ///
  /// The statements are sent together with COMMIT, so that the stamp's lock is not held across a round trip: fan-out
  /// would wait for it, and so would all recipients in the same step. The stamp is locked first here. Items are filed,
  /// and deleted with accounts, under this lock, so concurrent marks do not deadlock.
  ///
  /// - Parameter session: its device shows the number by itself.
  static func markRead(_ marked: Marked, by user: User.ID, on session: Session.ID, in change: Change) throws {
    try change.write(LeaseQueue.byIndex)
    try change.write("SELECT FROM user_stamps WHERE user_id = \(user) FOR NO KEY UPDATE")
    try change.write(
      """
      WITH unread AS (
        SELECT n.recipient_id, n.filed_at FROM \(source(of: user)) AND n.read_at IS NULL AND \(marked.condition)
        LIMIT \(maximumMarked)
      ),
      marked AS (
        UPDATE notifications AS n SET read_at = clock_timestamp()
        FROM unread
        WHERE n.recipient_id = unread.recipient_id AND n.filed_at = unread.filed_at
        RETURNING 1
      ),
      \(Delivery.queueingBadges(of: user, except: session, ifAny: "marked"))
      UPDATE user_stamps AS s SET notifications = \(Stamps.next("notifications"))
      WHERE s.user_id = \(user) AND EXISTS (SELECT FROM marked)
      """)
  }

  /// A query for the number of unread items that remain once the given ones are marked, up to ``maximumUnread``, and for
  /// how many are still to be marked, up to one more than a batch. No row if the account is gone.
  static func unread(of user: User.ID, besides marked: Marked) -> SQL {
    let unread: SQL = "\(source(of: user)) AND n.read_at IS NULL"
    return """
      SELECT (\(counting("\(unread) AND NOT (\(marked.condition))", upTo: maximumUnread))) AS unread,
        (\(counting("\(unread) AND \(marked.condition)", upTo: maximumMarked + 1))) AS rest
      FROM user_stamps
      WHERE user_id = \(user)
      """
  }
}

extension InboxItem.Marked {
  fileprivate var condition: SQL {
    switch self {
    case .these(let ids): "n.id = ANY(\(ids))"
    case .arrived(let time): "n.filed_at <= \(time)"
    case .all: "true"
    }
  }
}

extension InboxItem: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.notification(
      id: id, createdAt: createdAt, readAt: readAt, content: Notice.rendered(payload, at: createdAt))
  }
}
