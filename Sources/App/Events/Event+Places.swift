import Postgres

extension Event {
  /// The places of an event whose row is locked. A guest's party takes one place for the guest, and one for each of the
  /// guest's plus-ones. The rules are the same for invitees and visitors.
  struct Places {
    /// The columns of `events` for ``read(_:of:maxPlusOnes:in:)``.
    static let columns: SQL = "capacity, max_plus_ones, going_count, waitlisted_count"

    let capacity: Int?
    let maxPlusOnes: Int
    let going: Int
    /// The places for which guests wait.
    let waiting: Int
    /// Whether every waiting party is larger than the capacity, which was lowered below their size.
    var noWaitingPartyFits = false

    /// - Parameters:
    ///   - row: the locked row, with ``columns``.
    ///   - maxPlusOnes: the maximum number of people whom the guest may bring; nil for the event's own.
    static func read(
      _ row: Row, of event: ID, maxPlusOnes: Int? = nil, in change: Change
    ) async throws -> Places {
      var places = Places(
        capacity: try row["capacity"], maxPlusOnes: try maxPlusOnes ?? row["max_plus_ones"],
        going: try row["going_count"], waiting: try row["waitlisted_count"])
      // Parties rarely wait while places are free. Only then does it matter who waits.
      guard let capacity = places.capacity, places.waiting > 0, places.going < capacity else { return places }
      let row = try await change.first(
        """
        SELECT 1 FROM event_guests WHERE event_id = \(event) AND status = 'waitlisted' AND plus_ones < \(capacity)
        LIMIT 1
        """)
      places.noWaitingPartyFits = row == nil
      return places
    }

    /// An invitee's party after an answer, by all rules.
    ///
    /// - Parameters:
    ///   - isPast: whether the deadline for answers has passed.
    ///   - isSetByHost: hosts may set answers after the deadline.
    /// - Throws: ``AppError/approvalPending`` if no host has approved the guest; ``AppError/answersClosed`` if the answer
    ///   would change the party; what ``party(after:bringing:from:)`` throws.
    func party(
      after answer: Invitation.Status, bringing plusOnes: Int?, from old: Invitation.Party, isPast: Bool,
      isSetByHost: Bool
    ) throws -> Invitation.Party {
      guard old.status != .pending else { throw AppError.approvalPending }
      let new = try party(after: answer, bringing: plusOnes, from: old)
      guard new == old || isSetByHost || !isPast else { throw AppError.answersClosed }
      return new
    }

    /// A guest's party after an answer, as far as places decide.
    ///
    /// - Parameters:
    ///   - plusOnes: the number of people whom the guest brings from now on. Nil keeps the number. A guest who accepts
    ///     after declining then brings at most the maximum. Any other guest may keep what an earlier maximum allowed.
    /// - Throws: ``AppError/noRoom`` if a guest who is going wants to bring more people than there are places, or if
    ///   the party is larger than the whole event.
    func party(after answer: Invitation.Status, bringing plusOnes: Int?, from old: Invitation.Party) throws
      -> Invitation.Party
    {
      let isBack = old.status == .declined && answer != .declined
      let most = isBack ? maxPlusOnes : max(maxPlusOnes, old.plusOnes)
      if let plusOnes { try check(plusOnes, atMost: most) }
      var new = Invitation.Party(status: answer, plusOnes: plusOnes ?? min(old.plusOnes, most))
      guard answer == .going else { return new }
      switch old.status {
      case .going:
        guard new.places <= old.places || hasRoom(for: new.places - old.places) else { throw AppError.noRoom }
      case .waitlisted:
        guard new.places <= old.places || canEverHold(new.places) else { throw AppError.noRoom }
        new.status = .waitlisted
      case .invited, .pending, .maybe, .declined:
        guard canEverHold(new.places) else { throw AppError.noRoom }
        if !hasRoom(for: new.places) { new.status = .waitlisted }
      }
      return new
    }

    private func check(_ plusOnes: Int, atMost most: Int) throws {
      guard plusOnes > most else { return }
      guard most > 0 else {
        throw AppError.invalid("plusOnes", .noPlusOnes, "must be 0: this event does not allow plus-ones")
      }
      throw AppError.invalid("plusOnes", .outOfRange, "must be at most \(most): the event's maxPlusOnes")
    }

    /// While parties wait, there is no room, even if a place is free: the first party may be too large for it, and an
    /// event that is over promotes no one. No one may pass the waiting parties, unless all of them are too large for the
    /// event.
    private func hasRoom(for places: Int) -> Bool {
      (waiting == 0 || noWaitingPartyFits) && (capacity.map { going + places <= $0 } ?? true)
    }

    private func canEverHold(_ places: Int) -> Bool { capacity.map { places <= $0 } ?? true }
  }
}

extension AppError {
  static let noRoom = AppError(.conflict, "no-room", "The event has no room for that many more people.")
}

extension Invitation {
  /// A guest with the people whom the guest brings. They are always in the same state.
  struct Party: Equatable {
    var status: Status
    let plusOnes: Int

    var places: Int { 1 + plusOnes }

    /// Assignments to the counts of `events`, for a party that becomes another one.
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

    /// Assignments to the counts of `events`, for a party that joins or leaves.
    ///
    /// - Parameter sign: 1 or -1.
    func counting(times sign: Int) -> SQL {
      """
      plus_ones_count = plus_ones_count + \(sign * plusOnes), \(status.count) = \(status.count) + \(sign * places)
      """
    }
  }
}

extension Invitation.Status {
  /// The column of `events` with the places in this state.
  var count: SQL { "\(unescaped: rawValue)_count" }
}

/// The steps that answers of invitees and of visitors share.
extension Guest {
  /// The row of a guest.
  enum Key: Sendable {
    case invitee(User.ID)
    case visitor(Visitor.ID)
  }

  /// Writes the new state of a guest's party, and touches the lists that show it. The caller holds the lock on the
  /// event, and has decided with ``Event/Places``.
  static func write(
    _ guest: Key, at event: Event.ID, from old: Invitation.Party, to new: Invitation.Party, in change: Change
  ) throws {
    let time = answeredAt(event, from: old.status, to: new.status)
    let state: SQL = "status = \(new.status), plus_ones = \(Int32(new.plusOnes)), answered_at = \(time)"
    switch guest {
    case .invitee(let user):
      try change.write("UPDATE invitations SET \(state) WHERE event_id = \(event) AND user_id = \(user)")
      change.touch(.events, .invitations, of: user)
    case .visitor(let id):
      try change.write("UPDATE visitors SET \(state), wanted = NULL WHERE id = \(id)")
    }
    try change.write("UPDATE events SET \(old.counting(as: new)) WHERE id = \(event)")
    Invitation.touchWhoSeesCounts(of: [event], in: change)
  }

  /// The time of an answer, in SQL. Later requests wait behind all others, even in the same microsecond or after the
  /// clock was set back. A party that waits already keeps its time.
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
    case .invited, .going, .maybe, .declined, .pending: "clock_timestamp()"
    }
  }
}
