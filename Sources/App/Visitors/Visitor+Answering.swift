import Postgres

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
    let old = visitor.group
    if host == nil { try Event.checkTakesAnswers(row) } else { try Event.checkIsNotOver(row) }
    // Otherwise the account could accept something else than it has read.
    if visitor.isProposed { throw AppError.answerProposed }
    if host != nil, old.status == .pending { throw AppError.approvalPending }
    let places = try await Event.Places.read(row, of: event, maxPlusOnes: try own["max_plus_ones"], in: change)
    var new = try places.group(after: answer, bringing: plusOnes, from: old)
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
      try Guest.move(.visitor(id), at: event, from: old, to: new, in: change)
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
    _ id: ID, at event: Event.ID, after asked: Int, _ verdict: MailGate.Verdict, in change: Change
  ) async throws {
    _ = try await lock(event, in: change)
    let updated = try await change.rows(
      """
      UPDATE visitors
      SET mails_asked = mails_asked + 1, held_at = CASE WHEN \(verdict.isHeld) THEN clock_timestamp() END
      WHERE id = \(id) AND event_id = \(event) AND confirmed_at IS NULL AND mails_asked = \(Int32(clamping: asked))
      """)
    if updated.affected == 1, let pass = verdict.pass { change.mail(.visitorConfirm(id, pass)) }
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
      SELECT title, status, archived_at IS NOT NULL AS is_archived, \(Event.isPastAnswers), \(Event.isOver),
        \(Event.Places.columns)
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

extension Event {
  /// Whether the event has ended, as a column of `events` named `is_over`. It is live for a day after its end.
  static let isOver: SQL = "live_until <= clock_timestamp() + interval '24 hours' AS is_over"

  /// - Parameter row: a locked row of `events`, with `status`, `is_archived`, `is_over` and `is_past_answers`.
  static func checkTakesAnswers(_ row: Row) throws {
    try checkIsNotOver(row)
    if try row["is_past_answers"] { throw AppError.answersClosed }
  }

  /// - Parameter row: a locked row of `events`, with `status`, `is_archived` and `is_over`.
  static func checkIsNotOver(_ row: Row) throws {
    try checkIsOpen(row)
    if try row["is_over"] { throw AppError.eventArchived }
  }
}
