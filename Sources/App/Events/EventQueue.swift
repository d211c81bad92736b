import Postgres
import Synchronization

/// Lets one write at a time at each event, and the others behind it in the order in which they came. They would wait for
/// the event's row anyway; here they hold no connection meanwhile that another event's write needs.
final class EventQueue: Sendable {
  private struct Waiter {
    let number: Int
    let deadline: ContinuousClock.Instant
    let continuation: CheckedContinuation<Void, any Error>
  }

  private let capacity: Int
  private let patience: Duration
  private let numbers = Atomic(0)
  /// For each event that somebody writes to, those behind. Other events are not in it.
  private let lines = Mutex<[Event.ID: [Waiter]]>([:])

  /// - Parameters:
  ///   - capacity: how many may wait for one event.
  ///   - patience: for how long, and then until the write before them has ended.
  init(capacity: Int = 1000, patience: Duration = .seconds(20)) {
    self.capacity = capacity
    self.patience = patience
  }

  /// Runs `body` when it is the caller's turn. Cancelling the task ends the wait at once.
  ///
  /// - Throws: ``AppError/eventBusy`` if too many wait already, or if it took too long.
  func turn<Value: Sendable>(at event: Event.ID, _ body: () async throws -> Value) async throws -> Value {
    try await wait(at: event)
    defer { leave(event) }
    return try await body()
  }

  /// How many wait for an event; nil while nobody writes to it.
  func waiting(at event: Event.ID) -> Int? { lines.withLock { $0[event]?.count } }

  /// Whether nothing is kept of any event.
  var isIdle: Bool { lines.withLock { $0.isEmpty } }

  private func wait(at event: Event.ID) async throws {
    let number = numbers.wrappingAdd(1, ordering: .relaxed).newValue
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let waiter = Waiter(number: number, deadline: .now + patience, continuation: continuation)
        let answer = lines.withLock { lines -> Result<Void, any Error>? in
          // A cancellation that came before now has found nobody to take out of the line.
          if Task.isCancelled { return .failure(CancellationError()) }
          guard let length = lines[event]?.count else {
            lines[event] = []
            return .success(())
          }
          guard length < capacity else { return .failure(AppError.eventBusy) }
          lines[event]?.append(waiter)
          return nil
        }
        if let answer { continuation.resume(with: answer) }
      }
    } onCancel: {
      // Nil once it has had its turn: then the turn is for `body` to end.
      let waiter = lines.withLock { lines -> Waiter? in
        guard let place = lines[event]?.firstIndex(where: { $0.number == number }) else { return nil }
        return lines[event]?.remove(at: place)
      }
      waiter?.continuation.resume(throwing: CancellationError())
    }
  }

  private func leave(_ event: Event.ID) {
    let now = ContinuousClock.now
    let (next, late) = lines.withLock { lines -> (Waiter?, [Waiter]) in
      var late: [Waiter] = []
      while let first = lines[event]?.first {
        lines[event]?.removeFirst()
        if first.deadline > now { return (first, late) }
        late.append(first)
      }
      lines[event] = nil
      return (nil, late)
    }
    next?.continuation.resume()
    for waiter in late { waiter.continuation.resume(throwing: AppError.eventBusy) }
  }
}

extension Dependencies {
  /// Runs and commits a verb on one event, which waits for its turn before it takes a connection.
  ///
  /// - Parameter body: refuses whoever does not see the event, before and after it.
  /// - Returns: the event as the verb leaves it, for who did it.
  /// - Throws: ``AppError/eventNotFound`` rather than let somebody wait who may not see the event, or the body's errors.
  func change(
    of event: Event.ID, by user: User.ID, _ body: (Change) async throws -> Void
  ) async throws -> Event.Detail {
    // Strangers who know its id would take the places in the line from its guests. Without a line there are none to take,
    // and `body` refuses them.
    if eventQueue.waiting(at: event) != nil {
      let mayWait: Bool? = try await database.value("SELECT \(Event.isVisible(event, to: user))")
      guard mayWait == true else { throw AppError.eventNotFound }
    }
    return try await eventQueue.turn(at: event) {
      try Event.Detail(rows: try await database.change(thenReading: Event.Detail.query(event, for: user), body))
    }
  }
}

extension AppError {
  static var eventBusy: AppError {
    var error = AppError(.unavailable, "busy", "Too many people are writing to this event just now.")
    error.retryAfter = 2
    return error
  }
}
