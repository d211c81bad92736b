import Foundation
import Postgres

/// Becoming a guest through a link's form.
extension Visitor {
  /// What the form says.
  struct Draft: Sendable {
    let name: String
    let answer: Invitation.Status
    let plusOnes: Int
    let email: EmailAddress?
  }

  /// Adds a visitor through a share link. The answer counts at once, unless the link asks for approval. An answer
  /// with an address is deleted a day after the mail, unless the reader confirms the address. A form that is sent again
  /// changes nothing.
  ///
  /// - Parameters:
  ///   - id: from the form's token.
  ///   - kid: the key for the visitor's tokens.
  ///   - address: the fingerprint of the address.
  /// - Throws: the refusals of ``ShareLink/join(_:to:by:in:)``, of ``Event/Places``, and
  ///   ``AppError/tooManyUnconfirmed``.
  static func come(
    _ id: ID, _ draft: Draft, by link: (id: ShareLink.ID, kid: String), to event: Event.ID, kid: String, address: Data?,
    in change: Change
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
      SELECT \(ShareLink.columns), creator_id, coalesce(expires_at <= clock_timestamp(), false) AS is_expired
      FROM share_links WHERE id = \(link.id) AND event_id = \(event) AND kid = \(link.kid)
      """,
      "SELECT 1 FROM visitors WHERE id = \(id)",
      """
      SELECT count(*) AS unconfirmed FROM visitors
      WHERE event_id = \(event) AND confirmed_at IS NULL AND email IS NOT NULL
      """,
      Event.hosts(of: event),
      VisitorNews.recent(at: event))
    guard let linkRow = rows[0].first else { throw AppError.linkNotFound }
    guard rows[1].isEmpty else { return }
    let shared = try ShareLink(row: linkRow)
    let total: Int = try eventRow["total"]
    try check(draft, shared, total: total, unconfirmed: try rows[2][0]["unconfirmed"])
    if try linkRow["is_expired"] { throw AppError.linkExpired }
    try Event.checkTakesAnswers(eventRow)
    let places = try await Event.Places.read(eventRow, of: event, maxPlusOnes: shared.settings.maxPlusOnes, in: change)
    let nothing = Invitation.Group(status: .invited, plusOnes: 0)
    var group = try places.group(after: draft.answer, bringing: draft.plusOnes, from: nothing)
    if shared.settings.approval { group.status = .pending }
    let recent = try VisitorNews.Recent(row: rows[4].first)
    var mailedAt: Timestamp?
    if let address {
      mailedAt = try await VisitorMail.timeToAsk(address, for: try linkRow["creator_id"], in: change)
    }
    try change.write(
      """
      INSERT INTO visitors (
        id, event_id, link_id, kid, name, email, status, wanted, plus_ones, answered_at, lapses_at,
        has_news
      )
      VALUES (
        \(id), \(event), \(link.id), \(kid), \(draft.name), \(draft.email), \(group.status),
        \(group.status == .pending ? draft.answer : nil), \(Int32(group.plusOnes)),
        \(Guest.answeredAt(event, to: group.status)),
        \(mailedAt.map { $0.adding(seconds: confirmationTime) }), \(recent.waits)
      )
      """)
    try change.write(
      "UPDATE events SET \(group.counting(times: 1)), visitor_count = visitor_count + 1 WHERE id = \(event)")
    try change.write("UPDATE share_links SET joined_count = joined_count + 1 WHERE id = \(link.id)")
    change.touch(.events, ofUsersIn: Event.hosts(of: event))
    if total <= Event.maximumCounted {
      change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: event))
    }
    let hosts: [User.ID] = try rows[3].map { try $0["user_id"] }
    try notify(
      hosts, event, try eventRow["title"], id, draft.name, group, wanting: draft.answer, after: recent, in: change)
    if let mailedAt { change.mail(.visitorConfirm(id, at: mailedAt)) }
  }

  private static func check(_ draft: Draft, _ link: ShareLink, total: Int, unconfirmed: Int) throws {
    guard link.settings.kind == .answer else { throw AppError.linkOnlyShows }
    guard total < Invitation.maximumGuests, link.joined < link.settings.maxGuests ?? .max else {
      throw AppError.linkFull
    }
    // The link may have changed since its form was shown.
    if link.settings.email == .required, draft.email == nil {
      throw AppError.invalid("email", .required, "is required")
    }
    if draft.plusOnes > link.settings.maxPlusOnes {
      throw AppError.invalid("plusOnes", .outOfRange, "must be at most \(link.settings.maxPlusOnes)")
    }
    if draft.email != nil, unconfirmed >= maximumUnconfirmed { throw AppError.tooManyUnconfirmed }
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

  /// What hosts hear of a visitor. A visitor who declines needs no approval.
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

extension AppError {
  static let tooManyUnconfirmed = AppError(
    .conflict, "too-many-unconfirmed",
    "Too many visitors have not confirmed their e-mail addresses yet. Try again later, or ask a host.")
}
