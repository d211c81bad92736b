import Foundation
import Postgres

/// An event as a share link shows it to anyone who has the link.
struct SharedEvent: Sendable {
  let event: Event.ID
  let link: ShareLink
  /// The host who created the link.
  let creator: User.ID
  /// Whether the link has expired, or the event is archived.
  let isExpired: Bool
  let facts: EventFacts

  /// Reads in one statement, and writes nothing.
  ///
  /// - Returns: nil for a link that was revoked.
  static func find(
    _ token: (id: ShareLink.ID, kid: String), zones: ZoneDatabase, in database: some Querying
  ) async throws -> SharedEvent? {
    try await database.first(
      """
      SELECT \(ShareLink.columns(of: "l.")), l.event_id, l.creator_id,
        e.archived_at IS NOT NULL OR coalesce(l.expires_at <= clock_timestamp(), false) AS is_expired,
        \(EventFacts.columns(showsNames: "l.shows = 'names'"))
      FROM share_links AS l
      JOIN events AS e ON e.id = l.event_id
      WHERE l.id = \(token.id) AND l.kid = \(token.kid)
      """
    ).map { try SharedEvent(row: $0, zones: zones) }
  }

  private init(row: Row, zones: ZoneDatabase) throws {
    event = try row["event_id"]
    link = try ShareLink(row: row)
    creator = try row["creator_id"]
    isExpired = try row["is_expired"]
    facts = try EventFacts(row: row, zones: zones)
  }

  /// Whether the page has the form.
  var takesAnswers: Bool { !isExpired && refusal == nil }

  /// - Parameter form: the form, if the event takes answers.
  func page(_ form: AnswerForm?) -> SharePage {
    if isExpired { return .expired }
    let state = facts.phase.isCancelled ? "This event is cancelled." : facts.isFull ? "All places are taken." : nil
    let title = facts.phase.isCancelled ? "No answer needed" : refusal == nil ? "Your answer" : "How to answer"
    let text = refusal ?? (facts.isFull ? "You can still join the waiting list." : "")
    var page = SharePage(
      title: facts.title, event: facts.page(state: state, answerTitle: title, answer: text))
    if refusal == nil { page.form = form }
    return page
  }

  /// Why no one can answer through this link; nil if they can.
  private var refusal: String? {
    if facts.phase.isCancelled { return facts.closed }
    guard link.settings.kind == .answer else {
      return "This link only shows the event. Ask a host for an invitation."
    }
    if let closed = facts.closed { return closed }
    if let limit = link.settings.maxGuests, link.joined >= limit {
      return "No more guests can join through this link. Ask a host for an invitation."
    }
    return nil
  }
}

/// An event as a visitor's own page shows it.
struct VisitedEvent: Sendable {
  let visitor: Visitor
  let facts: EventFacts
  /// The maximum number of people whom the visitor may bring from now on.
  private let maxPlusOnes: Int
  /// The host who created the link that the visitor has come through; nil if it takes no more answers.
  let creator: User.ID?
  /// How often a mail that asks to confirm the address was asked for.
  let mailsAsked: Int
  private let isHeld: Bool
  private let lapsesAt: Timestamp?

  /// Reads in one statement, and writes nothing.
  ///
  /// - Returns: nil if there is no such visitor.
  static func find(
    _ token: VisitorTokens.PageToken, zones: ZoneDatabase, in database: some Querying
  ) async throws -> VisitedEvent? {
    try await database.first(
      """
      SELECT \(Visitor.columns), coalesce(l.max_plus_ones, 0) AS link_plus_ones,
        CASE WHEN \(ShareLink.supports("l", answerOf: "v")) THEN l.creator_id END AS creator_id,
        v.mails_asked, v.held_at IS NOT NULL AS is_held, v.lapses_at,
        \(EventFacts.columns(showsNames: "l.shows = 'names'"))
      FROM visitors AS v
      JOIN events AS e ON e.id = v.event_id
      LEFT JOIN share_links AS l ON l.id = v.link_id
      WHERE v.id = \(token.id) AND v.kid = \(token.kid)
      """
    ).map { try VisitedEvent(row: $0, zones: zones) }
  }

  private init(row: Row, zones: ZoneDatabase) throws {
    visitor = try Visitor(row: row)
    facts = try EventFacts(row: row, zones: zones)
    creator = try row["creator_id"]
    mailsAsked = try row["mails_asked"]
    isHeld = try row["is_held"]
    lapsesAt = try row["lapses_at"]
    // A visitor who accepts after declining is bound by the link again. See ``Event/Places``.
    maxPlusOnes =
      try visitor.party.status == .declined ? row["link_plus_ones"] : max(row["link_plus_ones"], visitor.party.plusOnes)
  }

  var takesAnswers: Bool { facts.closed == nil && !visitor.isProposed }

  var form: AnswerForm { AnswerForm(of: visitor, maxPlusOnes: maxPlusOnes) }

  /// - Parameters:
  ///   - form: a form that was refused; nil for a new one.
  ///   - isMailed: whether the reader got the link by mail.
  ///   - calendar: the URL of the event's calendar.
  ///   - eventRetention: days for which events stay in the archive; nil if they are kept.
  func page(_ form: AnswerForm? = nil, isMailed: Bool, calendar: String?, eventRetention: Int?) -> SharePage {
    let state = facts.phase.isCancelled ? "This event is cancelled." : answer
    var page = SharePage(
      title: facts.title,
      event: facts.page(state: state, answerTitle: "Your answer", answer: closed))
    page.visitor = SharePage.Visitor(
      name: visitor.name, calendar: calendar, mayConfirm: isUnconfirmed && isMailed, isHeld: isHeld,
      mustConfirm: isUnconfirmed && !isMailed, deadline: isUnconfirmed ? deadline : nil, mailsAsked: mailsAsked,
      mayWithdraw: takesAnswers && visitor.party.answer != .declined,
      maySubscribe: visitor.isConfirmed && !visitor.isUnsubscribed, isUnsubscribed: visitor.isUnsubscribed,
      eventRetention: eventRetention)
    if takesAnswers { page.form = form ?? self.form }
    return page
  }

  /// Why the visitor cannot change the answer; empty if they can.
  private var closed: String {
    if facts.closed == nil, visitor.isProposed { return AppError.answerProposed.message }
    guard facts.phase.takesVisitorsOnlyByHosts else { return facts.closed ?? "" }
    // Until the event ends, hosts can set the answer of a visitor whom they have approved.
    return "The deadline for answers has passed."
      + (visitor.party.wanted == nil ? " Ask a host to change your answer." : "")
  }

  /// When the answer is deleted, in words. Nil if a host keeps it.
  private var deadline: String? { lapsesAt.map { EventTime.words($0, in: facts.zone) } }

  var isUnconfirmed: Bool { visitor.email != nil && !visitor.isConfirmed }

  /// The visitor's answer, in words.
  private var answer: String {
    let plusOnes = visitor.party.plusOnes
    let others = plusOnes == 0 ? "." : plusOnes == 1 ? ", with 1 other." : ", with \(plusOnes) others."
    func words(_ status: Invitation.Status) -> String {
      switch status {
      case .going: "You are going" + others
      case .maybe: "You might come" + others
      case .waitlisted: "You are on the waiting list" + others
      case .declined, .invited, .pending: "You are not coming."
      }
    }
    // Guests who decline need no approval.
    guard let wanted = visitor.party.wanted, wanted != .declined else { return words(visitor.party.status) }
    return "A host must approve your answer first: "
      + words(wanted).replacing("You are going", with: "you want to come").replacing("You might", with: "you might")
  }
}
