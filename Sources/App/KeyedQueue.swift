import Postgres
import Synchronization

/// Admits one write at a time for each user, session and event, in the order in which the writes came. They would wait
/// for the row anyway, but here they hold no connection that another write needs.
final class KeyedQueue: Sendable {
  /// The resource for which a write waits. After the actor, the order is that of the row locks: users by id, sessions,
  /// events.
  enum Key: Hashable, Comparable {
    /// The acting user. One user's writes pass here one at a time, so that a flood of them holds at most one place in
    /// the lines of other users.
    case actor(User.ID)
    case user(User.ID)
    case session(Session.ID)
    case event(Event.ID)
  }

  private struct Waiter {
    let number: Int
    let deadline: ContinuousClock.Instant
    let continuation: CheckedContinuation<Void, any Error>
  }

  private let capacity: Int
  private let patience: Duration
  private let numbers = Atomic(0)
  /// For each key that a write holds, the writes that wait for it. Other keys are absent.
  private let lines = Mutex<[Key: [Waiter]]>([:])

  /// - Parameters:
  ///   - capacity: how many writes may wait for one key.
  ///   - patience: how long a write may wait. A write that has waited longer is refused when the one before it ends.
  init(capacity: Int = 1000, patience: Duration = .seconds(20)) {
    self.capacity = capacity
    self.patience = patience
  }

  /// Runs `body` when it is the caller's turn at all of the keys. All callers take their keys in the same order, so
  /// that no two deadlock. Cancelling the task ends the wait immediately.
  ///
  /// - Throws: ``AppError/contended`` if too many writes already wait, or if the wait took too long.
  func turn<Value: Sendable>(at keys: [Key], _ body: () async throws -> Value) async throws -> Value {
    try Task.checkCancellation()
    let keys = Self.inOrder(keys)
    var held = takeFree(keys)
    defer { leave(keys[..<held]) }
    while held < keys.count {
      try await wait(at: keys[held])
      held += 1
    }
    return try await body()
  }

  /// The number of writes that wait for a key; nil if no write holds it.
  func waiting(at key: Key) -> Int? { lines.withLock { $0[key]?.count } }

  /// Whether no write holds a key.
  var isIdle: Bool { lines.withLock { $0.isEmpty } }

  /// The keys in the order in which they are taken, each once.
  private static func inOrder(_ keys: [Key]) -> [Key] {
    var ordered: [Key] = []
    for key in keys.sorted() where key != ordered.last { ordered.append(key) }
    return ordered
  }

  /// Takes keys in their order, up to the first that another write holds. Usually all are free and nothing waits.
  ///
  /// - Returns: the number of keys taken.
  private func takeFree(_ keys: [Key]) -> Int {
    lines.withLock { lines in
      for (count, key) in keys.enumerated() {
        guard Self.take(&lines[key]) else { return count }
      }
      return keys.count
    }
  }

  /// Takes a key by its line, which it has only while it is held.
  ///
  /// - Returns: whether the key was free.
  private static func take(_ line: inout [Waiter]?) -> Bool {
    guard line == nil else { return false }
    line = []
    return true
  }

  private func wait(at key: Key) async throws {
    let number = numbers.wrappingAdd(1, ordering: .relaxed).newValue
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let waiter = Waiter(number: number, deadline: .now + patience, continuation: continuation)
        let result = lines.withLock { lines -> Result<Void, any Error>? in
          // A cancellation before this point found no waiter to remove from the line.
          if Task.isCancelled { return .failure(CancellationError()) }
          if Self.take(&lines[key]) { return .success(()) }
          guard lines[key, default: []].count < capacity else { return .failure(AppError.contended) }
          lines[key, default: []].append(waiter)
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      // Nil if it already has its turn. Then `body` ends the turn.
      let waiter = lines.withLock { lines -> Waiter? in
        guard let place = lines[key]?.firstIndex(where: { $0.number == number }) else { return nil }
        return lines[key]?.remove(at: place)
      }
      waiter?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Passes each key to the first write that waits for it.
  private func leave(_ keys: ArraySlice<Key>) {
    let now = ContinuousClock.now
    let (next, late) = lines.withLock { lines in
      var next: [Waiter] = []
      var late: [Waiter] = []
      for key in keys {
        guard let place = lines.index(forKey: key) else { continue }
        guard let first = lines.values[place].firstIndex(where: { $0.deadline > now }) else {
          late += lines.remove(at: place).value
          continue
        }
        late += lines.values[place][..<first]
        next.append(lines.values[place][first])
        lines.values[place].removeFirst(first + 1)
      }
      return (next, late)
    }
    for waiter in next { waiter.continuation.resume() }
    for waiter in late { waiter.continuation.resume(throwing: AppError.contended) }
  }
}

extension AppError {
  static let contended = AppError(
    .unavailable, "busy", "Too many requests are changing the same data. Nothing was changed. Try again.", retryAfter: 2
  )
}
