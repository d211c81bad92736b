import Postgres

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

    /// Assignments to the counts of `events`, for a group that joins or leaves.
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
