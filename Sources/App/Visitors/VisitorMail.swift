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
  static let maximumInformative = 6

  // MARK: Queueing

  static func asking(_ visitor: Visitor.ID) -> SQL {
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
    _ kind: Kind, of event: Event.ID, only visitor: Visitor.ID?, fields: [String]
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
