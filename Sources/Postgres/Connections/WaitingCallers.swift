import DequeModule

/// Callers who wait for a connection, in order: each with a deadline, and only so many, with so many bytes of parameters.
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
    timeout = configuration.waitTimeout
    maximumCount = configuration.maximumWaiting
    maximumBytes = configuration.maximumWaitingBytes
  }

  var count: Int { waiters.count }

  private var isFull: Bool { count >= maximumCount || bytes >= maximumBytes }

  /// Lets a caller in, unless too many wait already. Those who gave up do not count.
  mutating func add(
    _ reply: Reply<Connection>, for statements: [SQL], by deadline: ContinuousClock.Instant? = nil
  ) throws {
    if isFull { remove { $0.reply.isDone } }
    guard !isFull else { throw PostgresError(.overloaded, "\(count) callers wait for a connection already") }
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

  /// Takes out those whose time is up.
  mutating func takeLate(at now: ContinuousClock.Instant) -> [Reply<Connection>] {
    // Nothing to do, nearly always; and ThreadSanitizer minds that an empty array made of a deque touches the one that
    // all empty arrays share.
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
