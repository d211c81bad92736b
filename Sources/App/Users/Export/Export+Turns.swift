import Synchronization

extension Export {
  /// The users to whom this process is sending an export. Each user gets one at a time, because an export reads all of
  /// their data.
  final class Turns: Sendable {
    fileprivate let users = Mutex<Set<User.ID>>([])

    /// - Throws: ``AppError/exportRunning``
    func begin(_ user: User.ID) throws(AppError) -> Turn {
      guard users.withLock({ $0.insert(user).inserted }) else { throw .exportRunning }
      return Turn(user, of: self)
    }
  }

  /// Ends with the export that holds it, even if that is interrupted.
  final class Turn: Sendable {
    private let user: User.ID
    private let turns: Turns
    private let hasEnded = Atomic(false)

    init(_ user: User.ID, of turns: Turns) {
      self.user = user
      self.turns = turns
    }

    func end() {
      guard !hasEnded.exchange(true, ordering: .relaxed) else { return }
      turns.users.withLock { _ = $0.remove(user) }
    }

    deinit { end() }
  }
}
