import Foundation
import Postgres

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
        answer: visitor.wanted ?? visitor.group.status, plusOnes: visitor.group.plusOnes)
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
      case .promoted: isOpen && visitor.group.status == .going
      case .reminder: isOpen && visitor.group.status == .going && about.plan.startTime > now
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
    about visitors: [Visitor.ID], _ gate: MailGate, in database: Database
  ) async throws -> [Visitor.ID: Facts] {
    guard !visitors.isEmpty else { return [:] }
    let rows = try await database.rows(
      """
      SELECT \(Visitor.columns), v.lapses_at, e.status, e.status = 'scheduled' AND e.archived_at IS NULL AS is_open,
        e.live_until > clock_timestamp() + interval '24 hours'
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
