import Synchronization

/// Limits how much users hold at once: each of them, and all together.
final class PerUser: Sendable {
  enum Refusal: Error {
    /// The user holds all places that one user may have.
    case limit
    /// Other users hold all places.
    case total
  }

  private let limit: Int
  private let total: Int
  private let counts = Mutex<[User.ID: Int]>([:])

  init(limit: Int, total: Int = .max) {
    self.limit = limit
    self.total = total
  }

  func take(for user: User.ID) throws(Refusal) -> Place {
    try counts.withLock { counts throws(Refusal) in
      if counts[user, default: 0] >= limit { throw .limit }
      if total < .max, counts.values.reduce(0, +) >= total { throw .total }
      counts[user, default: 0] += 1
    }
    return Place(of: user, in: self)
  }

  private func free(_ user: User.ID) {
    counts.withLock { counts in
      let rest = (counts[user] ?? 1) - 1
      counts[user] = rest > 0 ? rest : nil
    }
  }

  /// Ends with the work that holds it, even if that is interrupted.
  final class Place: Sendable {
    private let user: User.ID
    private let owner: PerUser
    private let hasEnded = Atomic(false)

    fileprivate init(of user: User.ID, in owner: PerUser) {
      self.user = user
      self.owner = owner
    }

    func end() {
      if !hasEnded.exchange(true, ordering: .relaxed) { owner.free(user) }
    }

    deinit { end() }
  }
}
