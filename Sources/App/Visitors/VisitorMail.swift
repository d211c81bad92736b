import Foundation
import Postgres

/// Mails to visitors. Their rows have no address and no text: both are read when a mail is sent, if it still may be.
enum VisitorMail {
  /// What a mail is about. Each is a mail type of its own.
  enum Kind: String, Sendable, CaseIterable {
    /// Asks the reader to confirm the address. It says nothing about the event: anyone can cause it, for any address.
    case confirm
    case updated, reminder, promoted, approved, cancelled
    /// A host has set the visitor's answer.
    case answerSet = "answer-set"

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
      case .promoted, .approved, .answerSet: "true"
      case .updated, .cancelled: "v.status <> 'declined'"
      }
    }

    /// Seconds for which several changes become one mail.
    fileprivate var pause: Int {
      switch self {
      case .updated, .answerSet: 60
      case .confirm, .reminder, .promoted, .approved, .cancelled: 0
      }
    }
  }

  /// The limits on mails that ask for a confirmation, in 24 hours.
  static let maximumPerAddress = 3
  static let maximumPerHost = 200

  // MARK: Queueing

  static func asking(_ visitor: Visitor.ID, at time: Timestamp) -> SQL {
    """
    INSERT INTO mails (type, visitor_id, payload, due_at)
    VALUES (\(Kind.confirm.type), \(visitor), '{}', greatest(now(), \(time)))
    """
  }

  /// Queues a mail for each visitor who wants mails about an event. If one of the same type is waiting, no second one
  /// is queued: its text is composed when it is sent.
  ///
  /// - Parameters:
  ///   - visitor: the only one to get it; nil for all.
  ///   - fields: the names of the event's properties that have changed.
  static func announcing(
    _ kind: Kind, of event: Event.ID, only visitor: Visitor.ID?, fields: [String]
  ) -> SQL {
    let some: SQL = visitor.map { "AND v.id = \($0)" } ?? ""
    return """
      WITH readers AS MATERIALIZED (
        SELECT v.id FROM visitors AS v
        WHERE v.event_id = \(event) AND v.confirmed_at IS NOT NULL AND v.unsubscribed_at IS NULL
          AND \(kind.condition) \(some)
      ),
      waiting AS (
        UPDATE mails AS m SET payload = jsonb_set(m.payload, '{changes}', (m.payload->'changes') || to_jsonb(\(fields)))
        FROM readers
        WHERE m.visitor_id = readers.id AND m.type = \(kind.type) AND m.attempts = 0 AND m.worker_id IS NULL
          AND m.died_at IS NULL
        RETURNING m.visitor_id
      )
      INSERT INTO mails (type, visitor_id, payload, due_at)
      SELECT \(kind.type), id, jsonb_build_object('changes', to_jsonb(\(fields))),
        now() + make_interval(secs => \(Double(kind.pause)))
      FROM readers
      WHERE id NOT IN (SELECT visitor_id FROM waiting)
      ORDER BY id
      """
  }

  // MARK: Limits

  /// When an unconfirmed address gets its next mail, which is counted: now, or a day after the third one before it. The
  /// page is the same in all cases.
  ///
  /// - Parameters:
  ///   - address: see ``VisitorTokens/fingerprint(of:)``.
  ///   - host: the creator of the link.
  /// - Throws: ``AppError/tooManyUnconfirmed`` if the host's links have caused too many mails.
  static func timeToAsk(_ address: Data, for host: User.ID, in change: Change) async throws -> Timestamp {
    // Each counts what the ones before it have added. First the address, then the host, so that no two deadlock.
    try change.write("SELECT pg_advisory_xact_lock(\(addressLimit), hashtext(encode(\(address), 'hex')))")
    try change.write("SELECT pg_advisory_xact_lock(\(hostLimit), hashtext(\(host)::text))")
    let counted = try await change.rows(
      """
      INSERT INTO visitor_mails (address, host_id, queued_at)
      SELECT \(address), \(host), greatest(clock_timestamp(), (
        SELECT queued_at + interval '1 day' FROM visitor_mails
        WHERE address = \(address)
        ORDER BY queued_at DESC
        OFFSET \(maximumPerAddress - 1) LIMIT 1
      ))
      WHERE (
        SELECT count(*) FROM visitor_mails
        WHERE host_id = \(host) AND queued_at > clock_timestamp() - interval '1 day'
      ) < \(maximumPerHost)
      RETURNING queued_at
      """)
    guard let row = counted.first else { throw AppError.tooManyUnconfirmed }
    return try row["queued_at"]
  }

  /// The first halves of the keys: "vmad" and "vmho" in ASCII.
  private static let addressLimit: Int32 = 0x766d_6164
  private static let hostLimit: Int32 = 0x766d_686f

  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("visitor_mails", by: "queued_at", upTo: "now() - interval '1 day'", atMost: limit)
  }
}
