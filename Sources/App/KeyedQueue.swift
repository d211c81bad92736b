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

  private let capacity: Int
  private let patience: Duration
  /// The keys that writes hold.
  private let held = Mutex<[Key: Hold]>([:])

  private struct Hold {
    /// The writes that wait for the key. Nil until one does, which few keys see.
    var line: WaitingLine<Void>?

    mutating func join(upTo capacity: Int, until deadline: ContinuousClock.Instant) throws -> WaitingLine<Void>.Place? {
      if line == nil { line = WaitingLine(maximumCount: capacity) }
      return try line?.join(until: deadline)
    }
  }

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
    var taken = takeFree(keys)
    defer { leave(keys[..<taken]) }
    while taken < keys.count {
      try await wait(at: keys[taken])
      taken += 1
    }
    return try await body()
  }

  /// The number of writes that wait for a key; nil if no write holds it.
  func waiting(at key: Key) -> Int? { held.withLock { $0[key].map { $0.line?.count ?? 0 } } }

  /// Whether no write holds a key.
  var isIdle: Bool { held.withLock { $0.isEmpty } }

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
    held.withLock { held in
      for (count, key) in keys.enumerated() {
        guard Self.take(&held[key]) else { return count }
      }
      return keys.count
    }
  }

  /// - Returns: whether the key was free.
  private static func take(_ hold: inout Hold?) -> Bool {
    guard hold == nil else { return false }
    hold = Hold()
    return true
  }

  private func wait(at key: Key) async throws {
    try Task.checkCancellation()
    let turn = try held.withLock { held -> WaitingLine<Void>.Place? in
      if Self.take(&held[key]) { return nil }
      do {
        return try held[key]?.join(upTo: capacity, until: .now + patience)
      } catch {
        throw AppError.contended
      }
    }
    try await turn?.value()
  }

  /// Passes each key to the first write that waits for it.
  private func leave(_ keys: ArraySlice<Key>) {
    let now = ContinuousClock.now
    let late = held.withLock { held in
      var late: [Reply<Void>] = []
      for key in keys {
        guard let place = held.index(forKey: key) else { continue }
        late += held.values[place].line?.takeLate(at: now) ?? []
        if held.values[place].line?.serve(()) != true { held.remove(at: place) }
      }
      return late
    }
    late.fail(AppError.contended)
  }
}

extension AppError {
  static let contended = AppError(
    .unavailable, "busy", "Too many requests are changing the same data. Nothing was changed. Try again.", retryAfter: 2
  )
}
