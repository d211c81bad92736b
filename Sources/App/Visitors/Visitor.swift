import Foundation
import Postgres

/// A guest without an account, who answers on the page of a share link.
struct Visitor: Sendable {
  typealias ID = Identifier<Visitor>

  /// Seconds after which an answer with an unconfirmed address is deleted.
  private static let confirmationTime = 24 * 3600
  /// Days after an event for which its visitors' data is kept.
  private static let daysKept = 90

  let id: ID
  let event: Event.ID
  let kid: String
  let name: String
  let email: EmailAddress?
  let isConfirmed: Bool
  let isUnsubscribed: Bool
  /// Whether an account with the address decides about the answer. Until then, the visitor cannot change it.
  let isProposed: Bool
  let party: Invitation.Party
  /// The answer that a pending visitor gets when a host approves.
  let wanted: Invitation.Status?

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
    party = Invitation.Party(status: try row["visitor_status"], plusOnes: try row["visitor_plus_ones"])
    wanted = try row["visitor_wanted"]
  }

  /// Whether this is the visitor's answer. Guests on the waiting list want to go.
  ///
  /// - Parameter plusOnes: nil for any number.
  func says(_ answer: Invitation.Status, bringing plusOnes: Int?) -> Bool {
    let said = wanted ?? (party.status == .waitlisted ? .going : party.status)
    return said == answer && (plusOnes ?? party.plusOnes) == party.plusOnes
  }

  /// The event of a visitor.
  ///
  /// - Throws: ``AppError/visitorNotFound``
  static func event(of token: VisitorTokens.PageToken, in database: some Querying) async throws -> Event.ID {
    let event: Event.ID? = try await database.value(
      "SELECT event_id FROM visitors WHERE id = \(token.id) AND kid = \(token.kid)")
    guard let event else { throw AppError.visitorNotFound }
    return event
  }

  /// A visitor whose event's row is locked.
  static func find(_ id: ID, of event: Event.ID, in change: Change) async throws -> Visitor {
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
    _ id: ID, _ draft: Draft, by link: (id: ShareLink.ID, kid: String), to event: Event.ID, kid: String,
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
    try Event.Phase(row: eventRow).checkTakesVisitors()
    let places = try await Event.Places.read(eventRow, of: event, maxPlusOnes: shared.settings.maxPlusOnes, in: change)
    let nothing = Invitation.Party(status: .invited, plusOnes: 0)
    var party = try places.party(after: draft.answer, bringing: draft.plusOnes, from: nothing)
    if shared.settings.approval { party.status = .pending }
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
        \(party.status == .pending ? draft.answer : nil), \(Int32(party.plusOnes)),
        \(Guest.answeredAt(event, to: party.status)),
        \(lapsesAt), \(draft.email == nil ? 0 : 1 as Int32), \(heldAt), \(recent.waits)
      )
      """)
    try change.write(
      "UPDATE events SET \(party.counting(times: 1)), visitor_count = visitor_count + 1 WHERE id = \(event)")
    try change.write("UPDATE share_links SET joined_count = joined_count + 1 WHERE id = \(link.id)")
    change.touch(.events, ofUsersIn: Event.hosts(of: event))
    if total <= Event.maximumCounted {
      change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: event))
    }
    let hosts: [User.ID] = try rows[2].map { try $0["user_id"] }
    try notify(
      hosts, event, try eventRow["title"], id, draft.name, party, wanting: draft.answer, after: recent, in: change)
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

  /// Notifies the hosts of an answer, or of a request for approval, now or together with other visitors' answers.
  ///
  /// - Parameters:
  ///   - host: the host who set the answer. Then the others are notified now.
  ///   - recent: if the answer waits, the visitor's row has its mark.
  static func notify(
    _ hosts: [User.ID], _ event: Event.ID, _ title: String, _ id: ID, _ name: String, _ party: Invitation.Party,
    wanting answer: Invitation.Status, by host: User.ID? = nil, after recent: VisitorNews.Recent, in change: Change
  ) throws {
    if host == nil {
      try VisitorNews.record(id, at: event, after: recent, in: change)
      if recent.waits { return }
    }
    change.notify(hosts, about: notice(event, title, id, name, party, wanting: answer, by: host))
  }

  /// The notice to the hosts about a visitor. A visitor who declines needs no approval.
  static func notice(
    _ event: Event.ID, _ title: String, _ id: ID, _ name: String, _ party: Invitation.Party,
    wanting answer: Invitation.Status, by host: User.ID? = nil
  ) -> Notice {
    let guest = Guest.ID(rawValue: id.rawValue)
    let isRequest = party.status == .pending && answer != .declined
    let status = party.status == .pending ? answer : party.status
    return isRequest
      ? .approvalRequested(event, title, guest: guest, named: name, with: party.plusOnes)
      : .guestAnswered(event, title, guest: guest, named: name, status, with: party.plusOnes, by: host)
  }
}

/// Actions of a visitor on their own page.
extension Visitor {
  /// Changes a visitor's answer, by the rules of invitees' answers. While a visitor waits for approval, only the wanted
  /// answer changes.
  ///
  /// - Parameters:
  ///   - plusOnes: nil keeps the number.
  ///   - host: the host who sets the answer, who may do so after the deadline. The visitor gets a mail.
  /// - Throws: ``AppError/approvalPending`` if a host sets the answer of a visitor whom no host has approved;
  ///   ``AppError/answerProposed`` while an account decides about the answer.
  static func answer(
    _ answer: Invitation.Status, plusOnes: Int?, to event: Event.ID, by id: ID, setBy host: User.ID? = nil,
    in change: Change
  ) async throws {
    let row = try await lock(event, in: change)
    let rows = try await change.pipeline(
      """
      SELECT \(columns), coalesce(l.max_plus_ones, 0) AS max_plus_ones
      FROM visitors AS v
      LEFT JOIN share_links AS l ON l.id = v.link_id
      WHERE v.id = \(id) AND v.event_id = \(event)
      """,
      Event.hosts(of: event),
      VisitorNews.recent(at: event))
    guard let own = rows[0].first else { throw AppError.visitorNotFound }
    let visitor = try Visitor(row: own)
    let old = visitor.party
    let phase = try Event.Phase(row: row)
    if host == nil { try phase.checkTakesVisitors() } else { try phase.checkIsNotOver() }
    // Otherwise the account could accept something else than it has read.
    if visitor.isProposed { throw AppError.answerProposed }
    if host != nil, old.status == .pending { throw AppError.approvalPending }
    let places = try await Event.Places.read(row, of: event, maxPlusOnes: try own["max_plus_ones"], in: change)
    var new = try places.party(after: answer, bringing: plusOnes, from: old)
    if old.status == .pending { new.status = .pending }
    guard new != old || visitor.wanted.map({ $0 != answer }) ?? false else { return }
    if old.status == .pending {
      try change.write(
        """
        UPDATE visitors
        SET wanted = \(answer), plus_ones = \(Int32(new.plusOnes)), answered_at = clock_timestamp()
        WHERE id = \(id)
        """)
      try change.write("UPDATE events SET \(old.counting(as: new)) WHERE id = \(event)")
      Invitation.touchWhoSeesCounts(of: [event], in: change)
    } else {
      try Guest.write(.visitor(id), at: event, from: old, to: new, in: change)
    }
    let hosts: [User.ID] = try rows[1].map { try $0["user_id"] }
    let recent = try VisitorNews.Recent(row: rows[2].first)
    if host == nil, recent.waits { try change.write("UPDATE visitors SET has_news = true WHERE id = \(id)") }
    try notify(
      hosts, event, try row["title"], id, visitor.name, new, wanting: answer, by: host, after: recent, in: change)
    if host != nil { change.mail(.visitors(.answerSet, at: event, only: id)) }
    let cause: Invitation.Cause = host.map { .user($0) } ?? .visitor
    try await Invitation.promoteWaiting(at: event, after: old, places, by: cause, in: change)
  }

  /// Confirms a visitor's address on behalf of a reader of its mail. The answer then stays. If an account has verified
  /// the address, a worker merges the visitor into it.
  static func confirm(_ id: ID, at event: Event.ID, in change: Change) async throws {
    _ = try await lock(event, in: change)
    let visitor = try await find(id, of: event, in: change)
    guard let email = visitor.email, !visitor.isConfirmed else { return }
    try change.write(takingTurns(at: "\(email.key)"))
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
    _ id: ID, at event: Event.ID, after asked: Int, _ decision: MailGate.Decision, in change: Change
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
  static func unsubscribe(_ id: ID, in change: Change) throws {
    try change.write(
      "UPDATE visitors SET unsubscribed_at = coalesce(unsubscribed_at, clock_timestamp()) WHERE id = \(id)")
  }

  /// Locks the event of a visitor.
  static func lock(_ event: Event.ID, in change: Change) async throws -> Row {
    let row = try await change.first(
      """
      SELECT title, \(Event.Phase.columns), \(Event.Places.columns)
      FROM events WHERE id = \(event)
      FOR NO KEY UPDATE
      """)
    guard let row else { throw AppError.visitorNotFound }
    return row
  }

  /// Serializes confirming an address here and verifying it for an account.
  ///
  /// - Parameter key: an address's key, as a value or a column.
  static func takingTurns(at key: SQL) -> SQL {
    "SELECT pg_advisory_xact_lock(\(addressTurns), hashtext(\(key)))"
  }

  /// The first half of the keys: "mail" in ASCII.
  static let addressTurns: Int32 = 0x6d61_696c

  /// When the visitors of `events AS alias` are erased.
  static func erasureTime(_ alias: SQL) -> SQL {
    // An event is live for a day after its end.
    "\(alias).live_until + make_interval(days => \(Int32(daysKept - 1)))"
  }
}

extension AppError {
  static let answerProposed = AppError(
    .conflict, "answer-proposed", "The account with the visitor's e-mail address decides about this answer, in the app."
  )
}
