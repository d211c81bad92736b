import HTTPServer
import Postgres

/// Reads the inboxes of open streams, as events that are ready to send.
struct InboxReader: Sendable {
  /// Notifications that one read takes from an inbox.
  static let pageLength = 100

  let database: Database
  let publicURL: PublicURL

  /// The next events of an inbox.
  struct Page: Sendable {
    var events: [NotificationStream.Event] = []
    let stamp: Timestamp

    var isFull: Bool { events.count == pageLength }
    /// The page holds everything up to here.
    var end: Timestamp { isFull ? events.last?.place ?? stamp : stamp }
  }

  /// The known state of an inbox: its stamp, and the place up to which it was read.
  struct Known: Sendable {
    let user: User.ID
    let stamp: Timestamp
    let place: Timestamp
  }

  /// A page of each inbox whose stamp has moved.
  func news(of known: ArraySlice<Known>) async throws -> [User.ID: Page] {
    let rows = try await database.rows(
      """
      SELECT moved.user_id, moved.stamp, item.*
      FROM (
        SELECT known.user_id, known.place, s.notifications AS stamp, s.inbox_floor
        FROM unnest(\(known.map(\.user)), \(known.map(\.stamp)), \(known.map(\.place))) AS known (user_id, stamp, place)
        JOIN user_stamps AS s ON s.user_id = known.user_id
        WHERE s.notifications <> known.stamp
      ) AS moved
      LEFT JOIN LATERAL (
        \(items(of: "moved", after: "moved.place"))
      ) AS item ON true
      ORDER BY moved.user_id, item.place
      """)
    var news: [User.ID: Page] = [:]
    for row in rows {
      let user: User.ID = try row["user_id"]
      var page = try news[user] ?? Page(stamp: row["stamp"])
      if let event = try event(row) { page.events.append(event) }
      news[user] = page
    }
    return news
  }

  /// A page of an inbox; nil if the account is gone.
  func page(of user: User.ID, after place: Timestamp) async throws -> Page? {
    // One snapshot: the rows include everything up to the stamp.
    let rows = try await database.rows(
      """
      SELECT s.notifications AS stamp, item.*
      FROM user_stamps AS s
      LEFT JOIN LATERAL (
        \(items(of: "s", after: "\(place)"))
      ) AS item ON true
      WHERE s.user_id = \(user)
      ORDER BY item.place
      """)
    guard let first = rows.first else { return nil }
    return Page(events: try rows.compactMap(event), stamp: try first["stamp"])
  }

  /// - Parameter inbox: a row with `user_id` and `inbox_floor`.
  private func items(of inbox: SQL, after place: SQL) -> SQL {
    """
    SELECT n.filed_at AS place, \(InboxItem.columns)
    FROM notifications AS n
    WHERE n.recipient_id = \(inbox).user_id AND n.filed_at > \(place) AND n.filed_at >= \(inbox).inbox_floor
      AND NOT EXISTS (SELECT 1 FROM hidden AS h WHERE h.user_id = n.recipient_id AND h.hidden_id = n.person_id)
    ORDER BY n.filed_at
    LIMIT \(Self.pageLength)
    """
  }

  private func event(_ row: Row) throws -> NotificationStream.Event? {
    guard let place: Timestamp = try row["place"] else { return nil }
    var json = JSONWriter()
    let item = try InboxItem(row: row)
    PublicURL.$base.withValue(publicURL.text) { item.write(to: &json) }
    var bytes = ByteBuffer(string: "id: \(place.microseconds)\nevent: notification\ndata: ")
    bytes.writeImmutableBuffer(json.buffer)
    bytes.writeStaticString("\n\n")
    return NotificationStream.Event(place: place, bytes: bytes)
  }
}
