import Postgres

/// Notifications to the hosts of an event about visitors' answers. Anyone who has a link can send answers, so hosts get
/// the first one immediately, and those of the following minute as one notification.
///
/// An answer that waits is marked in the visitor's row, in the transaction of the answer. The notification is made of the
/// marked rows when it is due, so it never names a visitor who is gone by then.
enum VisitorNews {
  /// Seconds after a notification for which answers wait.
  static let pause = 60
  /// The most visitors whom a notification names.
  private static let maximumNamed = 3

  /// The hosts' notifications before an answer.
  struct Recent: Sendable {
    /// Whether the answer waits for the next notification.
    let waits: Bool
    fileprivate let isDue: Bool

    /// - Parameter row: the result of ``recent(at:)``, if it has one.
    init(row: Row?) throws {
      waits = try row?["waits"] ?? false
      isDue = try row?["is_due"] ?? false
    }
  }

  /// A query for ``Recent``. The caller has locked the event.
  static func recent(at event: Event.ID) -> SQL {
    """
    SELECT due_at IS NOT NULL AS is_due,
      due_at IS NOT NULL OR told_at > clock_timestamp() - make_interval(secs => \(Double(pause))) AS waits
    FROM visitor_news WHERE event_id = \(event)
    """
  }

  /// Records that hosts are notified of a visitor's answer now, or that it waits. The visitor's row has the mark
  /// already.
  static func record(_ visitor: Visitor.ID, at event: Event.ID, after recent: Recent, in change: Change) throws {
    if !recent.waits {
      try change.write(
        """
        INSERT INTO visitor_news AS n (event_id, first_id, told_at) VALUES (\(event), \(visitor), clock_timestamp())
        ON CONFLICT (event_id) DO UPDATE SET first_id = excluded.first_id, told_at = excluded.told_at
        """)
    } else if !recent.isDue {
      try change.write(
        """
        UPDATE visitor_news SET due_at = told_at + make_interval(secs => \(Double(pause))) WHERE event_id = \(event)
        """)
    }
  }

  /// Notifies the hosts of the event whose notification is due longest.
  ///
  /// - Returns: whether there was one.
  static func tellNext(in change: Change) async throws -> Bool {
    let found = try await change.first(
      """
      SELECT e.id, e.title
      FROM visitor_news AS n
      JOIN events AS e ON e.id = n.event_id
      WHERE n.due_at <= clock_timestamp()
      ORDER BY n.due_at
      LIMIT 1
      FOR NO KEY UPDATE OF e SKIP LOCKED
      """)
    guard let found else { return false }
    let event: Event.ID = try found["id"]
    // A statement of its own: another worker may have been faster.
    let taken = try await change.rows(
      """
      UPDATE visitor_news SET due_at = NULL, told_at = clock_timestamp()
      WHERE event_id = \(event) AND due_at <= clock_timestamp()
      """)
    guard taken.affected == 1 else { return true }
    let results = try await change.pipeline(
      """
      SELECT count(*) FILTER (WHERE v.has_news) AS news, count(*), count(*) FILTER (WHERE \(isPending)) AS pending
      FROM visitors AS v WHERE \(isTold(at: event))
      """,
      """
      SELECT \(Visitor.columns) FROM visitors AS v WHERE \(isTold(at: event))
      ORDER BY v.id = (SELECT first_id FROM visitor_news WHERE event_id = \(event)) DESC, v.has_news DESC, v.answered_at
      LIMIT \(maximumNamed)
      """,
      "UPDATE visitors SET has_news = false WHERE event_id = \(event) AND has_news",
      "UPDATE visitor_news SET first_id = NULL WHERE event_id = \(event)")
    let counts = results[0][0]
    guard try counts["news"] > 0 else { return true }
    let named = try results[1].map(Visitor.init(row:))
    let (count, pending): (Int, Int) = (try counts["count"], try counts["pending"])
    let title: String = try found["title"]
    let told =
      count == 1
      ? notice(of: named[0], at: event, title)
      : Notice.guestsAnswered(
        event, title, count: count, pending: pending,
        named: named.map { Notice.NamedGuest(id: Guest.ID(rawValue: $0.id.rawValue), name: $0.name) })
    change.notify(usersIn: Event.hosts(of: event), about: told)
    return true
  }

  private static func notice(of visitor: Visitor, at event: Event.ID, _ title: String) -> Notice {
    let answer = visitor.wanted ?? visitor.group.status
    return Visitor.notice(event, title, visitor.id, visitor.name, visitor.group, wanting: answer)
  }

  /// A condition on `visitors AS v`: those whose answers wait, and the one whose notification is replaced.
  private static func isTold(at event: Event.ID) -> SQL {
    """
    v.event_id = \(event) AND (
      v.has_news OR v.id = (SELECT first_id FROM visitor_news WHERE event_id = \(event))
    )
    """
  }

  private static let isPending: SQL = "v.status = 'pending' AND v.wanted <> 'declined'"
}
