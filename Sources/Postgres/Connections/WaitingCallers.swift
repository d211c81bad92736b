import DequeModule

/// Callers that wait for a connection, in order, each with a deadline. Their number and the bytes of their parameters
/// are limited.
struct WaitingCallers {
  private struct Waiter {
    let reply: Reply<Connection>
    let bytes: Int
    let deadline: ContinuousClock.Instant
  }

  private var waiters: Deque<Waiter> = []
  private var bytes = 0
  private let timeout: Duration
  private let maximumCount: Int
  private let maximumBytes: Int

  init(_ configuration: Database.Configuration) {
    timeout = configuration.acquireTimeout
    maximumCount = configuration.maximumWaiting
    maximumBytes = configuration.maximumWaitingBytes
  }

  var count: Int { waiters.count }

  private var isFull: Bool { count >= maximumCount || bytes >= maximumBytes }

  /// Adds a caller, unless too many are already waiting. Callers that gave up do not count.
  mutating func add(
    _ reply: Reply<Connection>, for statements: [SQL], by deadline: ContinuousClock.Instant? = nil
  ) throws {
    if isFull { remove { $0.reply.isDone } }
    guard !isFull else { throw PostgresError(.overloaded, "\(count) callers are already waiting for a connection") }
    let latest = ContinuousClock.now + timeout
    let waiter = Waiter(reply: reply, bytes: statements.parameterBytes, deadline: min(deadline ?? latest, latest))
    waiters.append(waiter)
    bytes += waiter.bytes
  }

  mutating func popFirst() -> Reply<Connection>? {
    guard let waiter = waiters.popFirst() else { return nil }
    bytes -= waiter.bytes
    return waiter.reply
  }

  /// Removes and returns the callers whose deadline has passed.
  mutating func takeLate(at now: ContinuousClock.Instant) -> [Reply<Connection>] {
    // Returning early is the usual case. It also avoids a ThreadSanitizer report: an empty array made from a deque
    // touches the storage that all empty arrays share.
    guard waiters.contains(where: { $0.deadline < now }) else { return [] }
    defer { remove { $0.deadline < now } }
    return waiters.filter { $0.deadline < now }.map(\.reply)
  }

  mutating func takeAll() -> [Reply<Connection>] {
    guard count > 0 else { return [] }
    defer { remove { _ in true } }
    return waiters.map(\.reply)
  }

  private mutating func remove(where condition: (Waiter) -> Bool) {
    waiters.removeAll(where: condition)
    bytes = waiters.reduce(0) { $0 + $1.bytes }
  }
}

extension [Reply<Connection>] {
  func fail(_ error: any Error) {
    for reply in self { reply.fulfil(.failure(error)) }
  }
}

extension PostgresError {
  static let acquireTimeout = PostgresError(.timeout, "no connection became free in time")
}
