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
    let state = facts.isCancelled ? "This event is cancelled." : facts.isFull ? "All places are taken." : nil
    let title = facts.isCancelled ? "No answer needed" : refusal == nil ? "Your answer" : "How to answer"
    let text = refusal ?? (facts.isFull ? "You can still join the waiting list." : "")
    var page = SharePage(
      title: facts.title, event: facts.page(state: state, answerTitle: title, answer: text))
    if refusal == nil { page.form = form }
    return page
  }

  /// Why no one can answer through this link; nil if they can.
  private var refusal: String? {
    if facts.isCancelled { return facts.closed }
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
