import Postgres

extension Event {
  /// The places of an event whose row is locked. A guest's party takes one place for the guest, and one for each of the
  /// guest's plus-ones. The rules are the same for invitees and visitors.
  struct Places {
    /// The columns of `events` for ``read(_:of:maxPlusOnes:in:)``.
    static let columns: SQL = "capacity, max_plus_ones, going_count, waitlisted_count"

    /// Locks an event before an answer: `title`, ``columns``, and those of ``Phase``. The lock orders all answers, so no
    /// place is given twice.
    static func locking(_ event: ID) -> SQL {
      """
      SELECT title, \(Phase.columns), \(columns)
      FROM events WHERE id = \(event)
      FOR NO KEY UPDATE
      """
    }

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

    /// A guest's party after an answer, as far as places decide. See ``AnswerRules`` for the other rules.
    ///
    /// - Parameters:
    ///   - plusOnes: the number of people whom the guest brings from now on. Nil keeps the number. A guest who accepts
    ///     after declining then brings at most the maximum. Any other guest may keep what an earlier maximum allowed.
    /// - Throws: ``AppError/noRoom`` if a guest who is going wants to bring more people than there are places, or if
    ///   the party is larger than the whole event.
    func party(after answer: Invitation.Status, bringing plusOnes: Int?, from old: Party) throws -> Party {
      let isBack = old.status == .declined && answer != .declined
      let most = isBack ? maxPlusOnes : max(maxPlusOnes, old.plusOnes)
      if let plusOnes { try check(plusOnes, atMost: most) }
      var new = Party(status: answer, plusOnes: plusOnes ?? min(old.plusOnes, most))
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
