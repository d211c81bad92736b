import Foundation
import Postgres

/// A guest without an account, who answers on the page of a share link.
struct Visitor: Sendable {
  /// Seconds after which an answer with an unconfirmed address is deleted.
  private static let confirmationTime = 24 * 3600
  /// Days after an event for which its visitors' data is kept.
  private static let daysKept = 90

  let id: Guest.ID
  let event: Event.ID
  let kid: String
  let name: String
  let email: EmailAddress?
  let isConfirmed: Bool
  let isUnsubscribed: Bool
  /// Whether an account with the address decides about the answer. Until then, the visitor cannot change it.
  let isProposed: Bool
  let party: Party

  /// Of `visitors AS v`. Each name starts with `visitor_`.
  static let columns: SQL = """
    v.id AS visitor_id, v.event_id AS visitor_event, v.kid AS visitor_kid, v.name AS visitor_name,
    v.email AS visitor_email, v.confirmed_at IS NOT NULL AS visitor_confirmed,
    v.unsubscribed_at IS NOT NULL AS visitor_unsubscribed, v.status AS visitor_status,
    v.plus_ones AS visitor_plus_ones, v.wanted AS visitor_wanted, v.proposed_at IS NOT NULL AS visitor_proposed
    """

  init(row: Row) throws {
    id = try row["visitor_id"]
    event = try row["visitor_event"]
    kid = try row["visitor_kid"]
    name = try row["visitor_name"]
    email = try row["visitor_email"]
    isConfirmed = try row["visitor_confirmed"]
    isUnsubscribed = try row["visitor_unsubscribed"]
    isProposed = try row["visitor_proposed"]
    party = Party(
      status: try row["visitor_status"], plusOnes: try row["visitor_plus_ones"], wanted: try row["visitor_wanted"])
  }

  /// Whether this is the visitor's answer.
  ///
  /// - Parameter plusOnes: nil for any number.
  func says(_ answer: Invitation.Status, bringing plusOnes: Int?) -> Bool {
    party.answer == answer && (plusOnes ?? party.plusOnes) == party.plusOnes
  }

  /// A visitor whose event's row is locked.
  static func find(_ id: Guest.ID, of event: Event.ID, in change: Change) async throws -> Visitor {
    let row = try await change.first(
      "SELECT \(columns) FROM visitors AS v WHERE v.id = \(id) AND v.event_id = \(event)")
    guard let row else { throw AppError.visitorNotFound }
    return try Visitor(row: row)
  }
}

extension AppError {
  static let visitorNotFound = AppError(.notFound, "visitor-not-found", "There is no such visitor.")
}

/// Becoming a guest through a link's form.
extension Visitor {
  /// The contents of the form.
  struct Draft: Sendable {
    let name: String
    let answer: Invitation.Status
    let plusOnes: Int
    let email: EmailAddress?
    /// False if the service mails no visitors, so that its forms ask for no address.
    var needsEmail = true
  }

  /// Adds a visitor through a share link. The answer counts immediately, unless the link asks for approval. An answer
  /// with an address is deleted a day later, unless the reader of the address's mail confirms it, or a host keeps the
  /// answer. A form that is sent again changes nothing, and brings no one back who is gone.
  ///
  /// - Parameters:
  ///   - id: from the form's token.
  ///   - kid: the key for the visitor's tokens.
  ///   - decision: the gate's, on the mail to the draft's address.
  /// - Throws: the refusals of ``ShareLink/join(_:to:by:in:)`` and of ``Event/Places``.
  static func come(
    _ id: Guest.ID, _ draft: Draft, by link: (id: ShareLink.ID, kid: String), to event: Event.ID, kid: String,
    _ decision: MailGate.Decision?, in change: Change
  ) async throws {
    let eventRow = try await change.first(
      """
      SELECT title, \(Event.Phase.columns), \(Event.total) AS total, \(Event.Places.columns)
      FROM events WHERE id = \(event)
      FOR NO KEY UPDATE
      """)
    guard let eventRow else { throw AppError.linkNotFound }
    let rows = try await change.pipeline(
      """
      SELECT \(ShareLink.columns), coalesce(expires_at <= clock_timestamp(), false) AS is_expired
      FROM share_links WHERE id = \(link.id) AND event_id = \(event) AND kid = \(link.kid)
      """,
      "SELECT 1 FROM visitors WHERE id = \(id) UNION ALL SELECT 1 FROM spent_forms WHERE id = \(id)",
      Event.hosts(of: event),
      VisitorNews.recent(at: event))
    guard let linkRow = rows[0].first else { throw AppError.linkNotFound }
    guard rows[1].isEmpty else { return }
    let shared = try ShareLink(row: linkRow)
    let total: Int = try eventRow["total"]
    try check(draft, shared, total: total)
    if try linkRow["is_expired"] { throw AppError.linkExpired }
    let rules = try await AnswerRules.read(eventRow, of: event, maxPlusOnes: shared.settings.maxPlusOnes, in: change)
    let party = try rules.party(
      after: draft.answer, bringing: draft.plusOnes,
      from: Party(status: shared.settings.approval ? .pending : .invited),
      of: .visitor)
    let recent = try VisitorNews.Recent(row: rows[3].first)
    let lapsesAt: SQL =
      draft.email == nil ? "NULL" : "clock_timestamp() + make_interval(secs => \(Double(confirmationTime)))"
    let heldAt: SQL = draft.email != nil && decision?.isHeld == true ? "clock_timestamp()" : "NULL"
    try change.write(
      """
      INSERT INTO visitors (
        id, event_id, link_id, kid, name, email, status, wanted, plus_ones, answered_at, lapses_at,
        mails_asked, held_at, has_news
      )
      VALUES (
        \(id), \(event), \(link.id), \(kid), \(draft.name), \(draft.email), \(party.status),
        \(party.wanted), \(Int32(party.plusOnes)),
        \(Guest.answeredAt(event, to: party.status)),
        \(lapsesAt), \(draft.email == nil ? 0 : 1 as Int32), \(heldAt), \(recent.waits)
      )
      """)
    try change.write(
      "UPDATE events SET \(party.joining), visitor_count = visitor_count + 1 WHERE id = \(event)")
    try change.write("UPDATE share_links SET joined_count = joined_count + 1 WHERE id = \(link.id)")
    change.touch(.events, ofUsersIn: Event.hosts(of: event))
    if total <= Event.maximumCounted {
      change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: event))
    }
    let hosts: [User.ID] = try rows[2].map { try $0["user_id"] }
    try VisitorNews.notify(
      hosts, about: .answer(event, try eventRow["title"], Notice.NamedGuest(id: id, name: draft.name), party), of: id,
      at: event, after: recent, in: change)
    if draft.email != nil, let pass = decision?.pass { change.mail(.visitorConfirm(id, pass)) }
  }

  private static func check(_ draft: Draft, _ link: ShareLink, total: Int) throws {
    guard link.settings.kind == .answer else { throw AppError.linkOnlyShows }
    guard total < Invitation.maximumGuests, link.joined < link.settings.maxGuests ?? .max else {
      throw AppError.linkFull
    }
    // The link may have changed since its form was shown.
    if draft.needsEmail, link.settings.email == .required, draft.email == nil {
      throw AppError.invalid("email", .required, "is required")
    }
    if draft.plusOnes > link.settings.maxPlusOnes {
      throw AppError.invalid("plusOnes", .outOfRange, "must be at most \(link.settings.maxPlusOnes)")
    }
  }
}

/// Actions of a visitor on their own page.
extension Visitor {
  /// Confirms a visitor's address on behalf of a reader of its mail. The answer then stays. If an account has verified
  /// the address, a worker merges the visitor into it.
  static func confirm(_ id: Guest.ID, at event: Event.ID, in change: Change) async throws {
    _ = try await lock(event, in: change)
    let visitor = try await find(id, of: event, in: change)
    guard let email = visitor.email, !visitor.isConfirmed else { return }
    try change.takeTurn(addressTurns, at: "hashtext(\(email.key))")
    try change.write(
      """
      UPDATE visitors AS v
      SET confirmed_at = clock_timestamp(), lapses_at = (
        SELECT \(erasureTime("e")) FROM events AS e WHERE e.id = v.event_id AND e.archived_at IS NOT NULL
      )
      WHERE v.id = \(id)
      """)
    // After the turn, in a statement of its own: an account that verifies the address at the same time is found here,
    // or finds this visitor.
    try change.write(
      """
      UPDATE visitors AS v SET merges_into = u.id
      FROM users AS u
      WHERE v.id = \(id) AND u.email_key = v.email_key AND u.email_verified_at IS NOT NULL
      """)
    change.wakeWorkers()
  }

  /// Asks the reader of a visitor's address once more to confirm it. The deadline stays.
  ///
  /// - Parameter asked: how often it was asked before. If it was asked more often by now, nothing happens.
  static func askAgain(
    _ id: Guest.ID, at event: Event.ID, after asked: Int, _ decision: MailGate.Decision, in change: Change
  ) async throws {
    _ = try await lock(event, in: change)
    let updated = try await change.rows(
      """
      UPDATE visitors
      SET mails_asked = mails_asked + 1, held_at = CASE WHEN \(decision.isHeld) THEN clock_timestamp() END
      WHERE id = \(id) AND event_id = \(event) AND confirmed_at IS NULL AND mails_asked = \(Int32(clamping: asked))
      """)
    if updated.affected == 1, let pass = decision.pass { change.mail(.visitorConfirm(id, pass)) }
  }

  /// Ends all mails to a visitor.
  static func unsubscribe(_ id: Guest.ID, in change: Change) throws {
    try change.write(
      "UPDATE visitors SET unsubscribed_at = coalesce(unsubscribed_at, clock_timestamp()) WHERE id = \(id)")
  }

  /// Locks the event of a visitor.
  static func lock(_ event: Event.ID, in change: Change) async throws -> Row {
    guard let row = try await change.first(Event.Places.locking(event)) else { throw AppError.visitorNotFound }
    return row
  }

  /// Serializes confirming an address here and verifying it for an account: "mail" in ASCII.
  static let addressTurns: Int32 = 0x6d61_696c

  /// When the visitors of `events AS alias` are erased.
  static func erasureTime(_ alias: SQL) -> SQL {
    // An event is live for a day after its end.
    "\(alias).live_until + make_interval(days => \(Int32(daysKept - 1)))"
  }
}
