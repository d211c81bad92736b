import Postgres

/// A guest with the people whom the guest brings. They are always in the same state.
struct Party: Sendable, Equatable {
  var status: Invitation.Status
  var plusOnes = 0
  /// The answer of a visitor who waits for approval, which applies once a host approves. Invitees answer after that.
  var wanted: Invitation.Status?

  var places: Int { 1 + plusOnes }

  /// The answer that the guest has given. Guests on the waiting list want to go.
  var answer: Invitation.Status { wanted ?? (status == .waitlisted ? .going : status) }
}

extension Party {
  /// The state of the guest on which an answer is based, as the client has read it. Nil says nothing.
  struct Basis: Sendable {
    var status: Invitation.Status?
    var plusOnes: Int?

    /// Whether there is nothing newer than this, as far as the answer is concerned.
    ///
    /// The waiting list's own move is no newer answer: the guest still wants to go. But "maybe" would give up a place
    /// that its sender does not know of. Nor is a host's approval an answer.
    fileprivate func allows(_ answer: Invitation.Status, over party: Party) -> Bool {
      if let plusOnes, plusOnes != party.plusOnes { return false }
      guard let status, status != party.status else { return true }
      return switch status {
      case .waitlisted: party.status == .going && answer != .maybe
      case .pending: party.status == .invited
      case .invited, .going, .maybe, .declined: false
      }
    }
  }

  /// Refuses an answer if there is a newer one. The current answer is never refused: a request
  /// whose response was lost can be repeated at any age.
  ///
  /// - Throws: ``AppError/superseded(by:)``
  fileprivate func check(_ basis: Basis, before answer: Invitation.Status, bringing plusOnes: Int?) throws {
    let stands = self.answer == answer && (plusOnes ?? self.plusOnes) == self.plusOnes
    guard stands || basis.allows(answer, over: self) else { throw AppError.superseded(by: self) }
  }
}

/// The rules for what an answer becomes, at an event whose row is locked: `going`, `maybe`, `declined`, `waitlisted` or
/// `pending`.
struct AnswerRules: Sendable {
  let phase: Event.Phase
  let places: Event.Places

  /// - Parameters:
  ///   - row: the locked row, with the columns of ``Event/Phase`` and ``Event/Places``.
  ///   - maxPlusOnes: the maximum number of people whom the guest may bring; nil for the event's own.
  static func read(
    _ row: Row, of event: Event.ID, maxPlusOnes: Int? = nil, in change: Change
  ) async throws -> AnswerRules {
    AnswerRules(
      phase: try Event.Phase(row: row),
      places: try await Event.Places.read(row, of: event, maxPlusOnes: maxPlusOnes, in: change))
  }

  /// A guest's party after an answer. While a visitor waits for approval, only the wanted answer changes.
  ///
  /// - Parameters:
  ///   - plusOnes: the number of people whom the guest brings. Nil keeps the number.
  ///   - basis: what the answer is based on. Nil: the last answer wins.
  ///   - isProposed: whether an account decides about the visitor's answer.
  ///   - isSetByHost: hosts may set answers after the deadline.
  /// - Throws: ``AppError/eventCancelled`` or ``AppError/eventArchived``; ``AppError/answerProposed``;
  ///   ``AppError/approvalPending`` if no host has approved the guest; ``AppError/superseded(by:)`` if there is a
  ///   newer answer; ``AppError/answersClosed`` after the deadline, except for an invitee's party that
  ///   stays; what ``Event/Places/party(after:bringing:from:)`` throws.
  func party(
    after answer: Invitation.Status, bringing plusOnes: Int?, basedOn basis: Party.Basis? = nil, from old: Party,
    of kind: Guest.Kind, isProposed: Bool = false, isSetByHost: Bool = false
  ) throws -> Party {
    switch kind {
    case .invitee: try phase.checkIsOpen()
    case .visitor where isSetByHost: try phase.checkIsNotOver()
    case .visitor: try phase.checkTakesVisitors()
    }
    // Otherwise the account could accept something else than it has read.
    if isProposed { throw AppError.answerProposed }
    let waits = old.status == .pending
    if waits, kind == .invitee || isSetByHost { throw AppError.approvalPending }
    if let basis { try old.check(basis, before: answer, bringing: plusOnes) }
    var new = try places.party(after: answer, bringing: plusOnes, from: old)
    if waits { new = Party(status: .pending, plusOnes: new.plusOnes, wanted: answer) }
    guard new == old || isSetByHost || !phase.isPastAnswers else { throw AppError.answersClosed }
    return new
  }

  /// The party of a guest who waits, after a host has approved: an invitee can answer, and a visitor's wanted answer
  /// applies.
  ///
  /// - Throws: ``AppError/noRoom`` if the party has become larger than the event.
  func approved(_ old: Party) throws -> Party {
    guard let wanted = old.wanted else { return Party(status: .invited, plusOnes: old.plusOnes) }
    return try places.party(after: wanted, bringing: nil, from: old)
  }
}

extension AppError {
  static let approvalPending = AppError(
    .conflict, "approval-pending", "A host must approve the guest first. Until then, the answer cannot be set.")
  /// Tells the current answer.
  static func superseded(by party: Party) -> AppError {
    var error = AppError(
      .conflict, "superseded",
      "There is a newer answer. Show both to the user, who decides whether to answer again.")
    error.current = party
    return error
  }

  static let answerProposed = AppError(
    .conflict, "answer-proposed", "The account with the visitor's e-mail address decides about this answer, in the app."
  )
}

/// Writing.
extension Guest {
  /// Writes the new state of a guest's party, and touches the lists that show it. The caller holds the lock on the
  /// event, and has decided with ``AnswerRules``.
  ///
  /// - Parameter answeredAt: the time of the answer, if it was given before.
  static func write(
    _ guest: ID, as kind: Kind, at event: Event.ID, from old: Party, to new: Party, answeredAt: Timestamp? = nil,
    in change: Change
  ) throws {
    let time: SQL = answeredAt.map { "\($0)" } ?? self.answeredAt(event, from: old.status, to: new.status)
    let state: SQL = "status = \(new.status), plus_ones = \(Int32(new.plusOnes)), answered_at = \(time)"
    switch kind {
    case .invitee:
      try change.write("UPDATE invitations SET \(state) WHERE event_id = \(event) AND user_id = \(guest)")
      change.touch(.events, .invitations, of: guest.user)
    case .visitor:
      try change.write("UPDATE visitors SET \(state), wanted = \(new.wanted) WHERE id = \(guest)")
    }
    try change.write("UPDATE events SET \(old.counting(as: new)) WHERE id = \(event)")
    Invitation.touchWhoSeesCounts(of: [event], in: change)
  }

  /// The time of an answer, in SQL. Later requests wait behind all others, even in the same microsecond or after the
  /// clock was set back. A party that waits already keeps its time. One that waits for approval has asked after all
  /// copies of the event that hosts have seen.
  static func answeredAt(
    _ event: Event.ID, from old: Invitation.Status? = nil, to new: Invitation.Status
  ) -> SQL {
    switch new {
    case .waitlisted where old == .waitlisted: "answered_at"
    case .waitlisted:
      """
      greatest(clock_timestamp(), (
        SELECT max(answered_at) + interval '1 microsecond' FROM event_guests
        WHERE event_id = \(event) AND status = 'waitlisted'
      ))
      """
    // A host has approved the guest, who has not answered yet.
    case .invited: "answered_at"
    case .pending:
      "greatest(clock_timestamp(), (SELECT stamp + interval '1 microsecond' FROM events WHERE id = \(event)))"
    case .going, .maybe, .declined: "clock_timestamp()"
    }
  }
}

/// Counting, in the columns of `events`.
extension Party {
  /// Assignments for a party that becomes another one.
  func counting(as new: Party) -> SQL {
    let difference: SQL = "plus_ones_count = plus_ones_count + \(new.plusOnes - plusOnes)"
    guard status != new.status else {
      return "\(difference), \(status.count) = \(status.count) + \(new.places - places)"
    }
    return """
      \(difference), \(status.count) = \(status.count) - \(places), \(new.status.count) = \(new.status.count) + \
      \(new.places)
      """
  }

  /// Assignments for a party that joins.
  var joining: SQL {
    "plus_ones_count = plus_ones_count + \(plusOnes), \(status.count) = \(status.count) + \(places)"
  }
}

extension Invitation.Status {
  /// The column of `events` with the places in this state.
  var count: SQL { "\(unescaped: rawValue)_count" }
}

extension Party: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.currentAnswer(status: status, plusOnes: plusOnes)
  }
}
