import Foundation
import Postgres

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
  ///   - verdict: the gate's, on the mail to the draft's address.
  /// - Throws: the refusals of ``ShareLink/join(_:to:by:in:)`` and of ``Event/Places``.
  static func come(
    _ id: ID, _ draft: Draft, by link: (id: ShareLink.ID, kid: String), to event: Event.ID, kid: String,
    _ verdict: MailGate.Verdict?, in change: Change
  ) async throws {
    let eventRow = try await change.first(
      """
      SELECT title, status, archived_at IS NOT NULL AS is_archived, \(Event.isPastAnswers), \(Event.isOver),
        \(Event.total) AS total, \(Event.Places.columns)
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
    try Event.checkTakesAnswers(eventRow)
    let places = try await Event.Places.read(eventRow, of: event, maxPlusOnes: shared.settings.maxPlusOnes, in: change)
    let nothing = Invitation.Group(status: .invited, plusOnes: 0)
    var group = try places.group(after: draft.answer, bringing: draft.plusOnes, from: nothing)
    if shared.settings.approval { group.status = .pending }
    let recent = try VisitorNews.Recent(row: rows[3].first)
    let lapsesAt: SQL =
      draft.email == nil ? "NULL" : "clock_timestamp() + make_interval(secs => \(Double(confirmationTime)))"
    let heldAt: SQL = draft.email != nil && verdict?.isHeld == true ? "clock_timestamp()" : "NULL"
    try change.write(
      """
      INSERT INTO visitors (
        id, event_id, link_id, kid, name, email, status, wanted, plus_ones, answered_at, lapses_at,
        mails_asked, held_at, has_news
      )
      VALUES (
        \(id), \(event), \(link.id), \(kid), \(draft.name), \(draft.email), \(group.status),
        \(group.status == .pending ? draft.answer : nil), \(Int32(group.plusOnes)),
        \(Guest.answeredAt(event, to: group.status)),
        \(lapsesAt), \(draft.email == nil ? 0 : 1 as Int32), \(heldAt), \(recent.waits)
      )
      """)
    try change.write(
      "UPDATE events SET \(group.counting(times: 1)), visitor_count = visitor_count + 1 WHERE id = \(event)")
    try change.write("UPDATE share_links SET joined_count = joined_count + 1 WHERE id = \(link.id)")
    change.touch(.events, ofUsersIn: Event.hosts(of: event))
    if total <= Event.maximumCounted {
      change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: event))
    }
    let hosts: [User.ID] = try rows[2].map { try $0["user_id"] }
    try notify(
      hosts, event, try eventRow["title"], id, draft.name, group, wanting: draft.answer, after: recent, in: change)
    if draft.email != nil, let pass = verdict?.pass { change.mail(.visitorConfirm(id, pass)) }
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
    _ hosts: [User.ID], _ event: Event.ID, _ title: String, _ id: ID, _ name: String, _ group: Invitation.Group,
    wanting answer: Invitation.Status, by host: User.ID? = nil, after recent: VisitorNews.Recent, in change: Change
  ) throws {
    if host == nil {
      try VisitorNews.record(id, at: event, after: recent, in: change)
      if recent.waits { return }
    }
    change.notify(hosts, about: notice(event, title, id, name, group, wanting: answer, by: host))
  }

  /// The notice to the hosts about a visitor. A visitor who declines needs no approval.
  static func notice(
    _ event: Event.ID, _ title: String, _ id: ID, _ name: String, _ group: Invitation.Group,
    wanting answer: Invitation.Status, by host: User.ID? = nil
  ) -> Notice {
    let guest = Guest.ID(rawValue: id.rawValue)
    let isRequest = group.status == .pending && answer != .declined
    let status = group.status == .pending ? answer : group.status
    return isRequest
      ? .approvalRequested(event, title, guest: guest, named: name, with: group.plusOnes)
      : .guestAnswered(event, title, guest: guest, named: name, status, with: group.plusOnes, by: host)
  }
}
