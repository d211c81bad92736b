import Postgres

extension Event {
  /// The most people whom an event can let each guest bring.
  static let maximumPlusOnes = 10

  /// The places of an event whose row is locked. A guest's group takes one place for the guest, and one for each of the
  /// guest's plus-ones.
  struct Places {
    /// The columns of `events` for ``init(row:)``.
    static let columns: SQL = "capacity, max_plus_ones, going_count, waitlisted_count"

    private let capacity: Int?
    private let maxPlusOnes: Int
    private let going: Int
    /// The places for which guests wait.
    let waiting: Int

    init(row: Row) throws {
      capacity = try row["capacity"]
      maxPlusOnes = try row["max_plus_ones"]
      going = try row["going_count"]
      waiting = try row["waitlisted_count"]
    }

    /// A guest's group after an answer.
    ///
    /// - Parameters:
    ///   - plusOnes: the number of people whom the guest brings from now on. Nil keeps the number. A guest who has
    ///     declined and comes back then brings at most the maximum of the event.
    /// - Throws: ``AppError/noRoom`` if a guest who is going wants to bring more people than there are places.
    func group(after answer: Invitation.Status, bringing plusOnes: Int?, from old: Invitation.Group) throws
      -> Invitation.Group
    {
      if let plusOnes { try check(plusOnes) }
      let isBack = old.status == .declined && answer != .declined
      let plusOnes = plusOnes ?? (isBack ? min(old.plusOnes, maxPlusOnes) : old.plusOnes)
      var new = Invitation.Group(status: answer, plusOnes: plusOnes)
      guard answer == .going else { return new }
      switch old.status {
      case .going:
        guard new.places <= old.places || hasRoom(for: new.places - old.places) else { throw AppError.noRoom }
      case .waitlisted:
        new.status = .waitlisted
      case .invited, .maybe, .declined:
        if !hasRoom(for: new.places) { new.status = .waitlisted }
      }
      return new
    }

    private func check(_ plusOnes: Int) throws {
      guard plusOnes > maxPlusOnes else { return }
      guard maxPlusOnes > 0 else {
        throw AppError.invalid("plusOnes", .noPlusOnes, "must be 0: this event takes no plus-ones")
      }
      throw AppError.invalid("plusOnes", .outOfRange, "must be at most \(maxPlusOnes): the event's maxPlusOnes")
    }

    /// While anyone waits, nothing is free, even if a place is: the first group may be too large for it, and an event
    /// that is over promotes no one. No one may pass them.
    private func hasRoom(for places: Int) -> Bool {
      waiting == 0 && (capacity.map { going + places <= $0 } ?? true)
    }
  }
}

extension Invitation {
  /// A guest with the people whom the guest brings. They are always in the same state.
  struct Group: Equatable {
    var status: Status
    let plusOnes: Int

    var places: Int { 1 + plusOnes }

    /// Assignments to the counts of `events`, for a group that becomes another one.
    func counting(as new: Group) -> SQL {
      let difference: SQL = "plus_ones_count = plus_ones_count + \(new.plusOnes - plusOnes)"
      guard status != new.status else {
        return "\(difference), \(status.count) = \(status.count) + \(new.places - places)"
      }
      return """
        \(difference), \(status.count) = \(status.count) - \(places), \(new.status.count) = \(new.status.count) + \
        \(new.places)
        """
    }
  }
}

extension Invitation.Status {
  /// The column of `events` with the places in this state.
  fileprivate var count: SQL { "\(unescaped: rawValue)_count" }
}

extension AppError {
  static let noRoom = AppError(.conflict, "no-room", "The event has no room for that many more people.")
}
