import Foundation
import Postgres

/// Mails to visitors. Their rows have no address and no text: both are read when a mail is sent, if it still may be.
enum VisitorMail {
  /// The subject of a mail. Each is a mail type of its own.
  enum Kind: String, Sendable, CaseIterable {
    /// Asks the reader to confirm the address. It says nothing about the event: anyone can cause it, for any address.
    case confirm
    case updated, reminder, promoted, approved, cancelled
    /// A host has set the visitor's answer.
    case answerSet = "answer-set"
    /// News after the day's informative mails were used up.
    case digest

    /// The type on the wire.
    var name: String { "visitor-\(rawValue)" }

    /// The type in the queue.
    var type: String { Mail.prefix + name }

    init(type: String) throws {
      guard let kind = Self.allCases.first(where: { $0.type == type }) else {
        throw DeliveryFailure(description: "this release does not know the type of the mail")
      }
      self = kind
    }

    /// A condition on `visitors AS v`: who gets this mail, consent aside.
    fileprivate var condition: SQL {
      switch self {
      case .confirm: "v.confirmed_at IS NULL"
      case .reminder: "v.status = 'going'"
      case .promoted, .approved, .answerSet, .digest: "true"
      case .updated, .cancelled: "v.status <> 'declined'"
      }
    }

    /// Seconds for which several changes become one mail.
    fileprivate var pause: Int {
      switch self {
      case .updated, .answerSet: 60
      case .confirm, .reminder, .promoted, .approved, .cancelled, .digest: 0
      }
    }

    /// Whether the mail counts for ``maximumInformative``. An event is cancelled once.
    fileprivate var isLimited: Bool { self != .cancelled }
  }

  /// The informative mails that a visitor of an event gets in 24 hours. Further ones become one digest.
  private static let maximumInformative = 6

  // MARK: Queueing

  static func asking(_ visitor: Guest.ID) -> SQL {
    "INSERT INTO mails (type, visitor_id, payload) VALUES (\(Kind.confirm.type), \(visitor), '{}')"
  }

  /// Queues a mail for each visitor who wants mails about an event. If one of the same type is waiting, no second one
  /// is queued: its text is composed when it is sent. A visitor who has had the day's mails gets a digest, a day after
  /// the first of them.
  ///
  /// - Parameters:
  ///   - visitor: the only one to get it; nil for all.
  ///   - fields: the names of the event's properties that have changed.
  static func announcing(
    _ kind: Kind, of event: Event.ID, only visitor: Guest.ID?, fields: [String]
  ) -> SQL {
    let some: SQL = visitor.map { "AND v.id = \($0)" } ?? ""
    return """
      WITH readers AS MATERIALIZED (
        SELECT v.id, recent.times, full_day.is_past,
          CASE WHEN full_day.is_past THEN \(Kind.digest.type) ELSE \(kind.type) END AS type,
          CASE
            WHEN full_day.is_past THEN recent.times[1] + interval '24 hours'
            ELSE now() + make_interval(secs => \(Double(kind.pause)))
          END AS due_at
        FROM visitors AS v
        CROSS JOIN LATERAL (
          SELECT ARRAY(
            SELECT sent_at FROM unnest(v.informed_at) AS sent (sent_at)
            WHERE sent_at > now() - interval '24 hours'
            ORDER BY sent_at
          ) AS times
        ) AS recent
        CROSS JOIN LATERAL (
          SELECT \(kind.isLimited) AND cardinality(recent.times) >= \(maximumInformative) AS is_past
        ) AS full_day
        WHERE v.event_id = \(event) AND v.confirmed_at IS NOT NULL AND v.unsubscribed_at IS NULL
          AND \(kind.condition) \(some)
      ),
      waiting AS (
        UPDATE mails AS m SET payload = jsonb_set(m.payload, '{changes}', (m.payload->'changes') || to_jsonb(\(fields)))
        FROM readers
        WHERE m.visitor_id = readers.id AND m.type IN (\(kind.type), \(Kind.digest.type)) AND m.attempts = 0
          AND m.worker_id IS NULL AND m.died_at IS NULL AND (m.type = readers.type OR readers.is_past)
        RETURNING m.visitor_id
      ),
      queued AS (
        INSERT INTO mails (type, visitor_id, payload, due_at)
        SELECT type, id, jsonb_build_object('changes', to_jsonb(\(fields))), due_at
        FROM readers
        WHERE id NOT IN (SELECT visitor_id FROM waiting)
        ORDER BY id
        RETURNING visitor_id, due_at
      )
      UPDATE visitors AS v SET informed_at = readers.times || queued.due_at
      FROM queued
      JOIN readers ON readers.id = queued.visitor_id
      WHERE v.id = queued.visitor_id AND \(kind.isLimited)
      """
  }
}

/// The contents of a mail to a visitor, read when it is sent.
public struct VisitorLetter: Sendable {
  /// The visitor's page. The link proves that its reader reads the address's mail.
  public let url: String
  /// For a link in the mail, and for the header `List-Unsubscribe` (RFC 8058). Nil if the mail asks for a confirmation.
  public let unsubscribeURL: String?
  /// Nil if the mail asks for a confirmation: its reader may have nothing to do with the event.
  let event: About?
  /// The names of the event's properties that have changed.
  let changes: [String]

  /// The event.
  struct About: Sendable {
    let plan: Event.Plan
    let status: Event.Status
    let hosts: [String]
    let answer: Invitation.Status
    let plusOnes: Int
  }
}

extension VisitorLetter {
  /// A visitor with the event, as both are now.
  struct Facts: Sendable {
    let visitor: Visitor
    let about: About
    let isOpen: Bool
    /// Whether the event has not ended, and the link that the visitor has come through still takes answers, by a host who
    /// may cause mails.
    let isExpected: Bool
    let lapsesAt: Timestamp?

    /// Nil if no one asks to confirm an address.
    var unprovenAddress: String? { visitor.isConfirmed ? nil : visitor.email?.text }

    fileprivate init(row: Row) throws {
      visitor = try Visitor(row: row)
      about = About(
        plan: try row["plan"], status: try row["status"], hosts: try row["hosts"],
        answer: visitor.party.wanted ?? visitor.party.status, plusOnes: visitor.party.plusOnes)
      isOpen = try row["is_open"]
      isExpected = try row["is_expected"]
      lapsesAt = try row["lapses_at"]
    }

    /// Whether to send the mail: the visitor still wants it, and its content is still true.
    func wants(_ kind: VisitorMail.Kind, at now: Timestamp = .now()) -> Bool {
      // Without a deadline, a host has kept the answer.
      guard !visitor.isUnsubscribed else { return false }
      if kind == .confirm { return !visitor.isConfirmed && isOpen && isExpected && lapsesAt.map { $0 > now } ?? true }
      guard visitor.isConfirmed else { return false }
      return switch kind {
      case .confirm: false
      case .cancelled: about.status == .cancelled
      case .updated, .approved, .answerSet, .digest: isOpen
      case .promoted: isOpen && visitor.party.status == .going
      case .reminder: isOpen && visitor.party.status == .going && about.plan.startTime > now
      }
    }

    /// - Returns: nil if the visitor's key is no longer configured.
    func letter(_ kind: VisitorMail.Kind, changes: [String], base: String, _ tokens: VisitorTokens) -> VisitorLetter? {
      guard let token = tokens.mailed(to: visitor) else { return nil }
      let url = "\(base)/g/\(token)"
      let isAsking = kind == .confirm
      return VisitorLetter(
        url: url, unsubscribeURL: isAsking ? nil : "\(url)/unsubscribe", event: isAsking ? nil : about,
        changes: changes)
    }
  }

  static func facts(
    about visitors: [Guest.ID], _ gate: MailGate, in database: Database
  ) async throws -> [Guest.ID: Facts] {
    guard !visitors.isEmpty else { return [:] }
    let rows = try await database.rows(
      """
      SELECT \(Visitor.columns), v.lapses_at, e.status, \(Event.Phase.isOpen("e")) AS is_open,
        NOT \(Event.Phase.isOver("e"))
          AND EXISTS (
            SELECT FROM share_links AS l
            JOIN event_hosts AS h ON h.event_id = l.event_id AND h.user_id = l.creator_id
            WHERE l.id = v.link_id AND \(ShareLink.supports("l", answerOf: "v")) AND \(gate.mayMailStrangers("l.creator_id"))
          ) AS is_expected,
        \(Event.Plan.record("e")) AS plan,
        \(Event.hostNames) AS hosts
      FROM visitors AS v
      JOIN events AS e ON e.id = v.event_id
      WHERE v.id = ANY(\(visitors))
      """)
    return Dictionary(uniqueKeysWithValues: try rows.map(Facts.init(row:)).map { ($0.visitor.id, $0) })
  }
}

extension VisitorLetter.About: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object {
      $0.member("title", plan.title)
      $0.member("startTime", plan.startTime)
      $0.member("endTime", plan.endTime)
      $0.member("timeZone", plan.timeZone)
      $0.member("location", plan.location)
      $0.member("status", status.rawValue)
      $0.member("hosts", hosts)
      $0.member("answer", answer.rawValue)
      $0.member("plusOnes", plusOnes)
    }
  }
}

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

  /// Notifies the hosts of a visitor's answer now, or together with other visitors' answers. If it waits, the visitor's
  /// row has the mark already.
  static func notify(
    _ hosts: [User.ID], about notice: Notice, of visitor: Guest.ID, at event: Event.ID, after recent: Recent,
    in change: Change
  ) throws {
    if !recent.waits {
      try change.write(
        """
        INSERT INTO visitor_news AS n (event_id, first_id, told_at) VALUES (\(event), \(visitor), clock_timestamp())
        ON CONFLICT (event_id) DO UPDATE SET first_id = excluded.first_id, told_at = excluded.told_at
        """)
      change.notify(hosts, about: notice)
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
      ? Notice.answer(event, title, Notice.NamedGuest(id: named[0].id, name: named[0].name), named[0].party)
      : Notice.guestsAnswered(
        event, title, count: count, pending: pending,
        named: named.map { Notice.NamedGuest(id: $0.id, name: $0.name) })
    change.notify(usersIn: Event.hosts(of: event), about: told)
    return true
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
