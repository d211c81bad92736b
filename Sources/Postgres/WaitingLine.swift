import DequeModule

/// Callers that wait, first come, first served, each with a deadline. Their number and their size are limited.
///
/// A caller waits with ``Reply/value()``, and cancelling its task ends the wait. It then keeps its place until it would
/// be served, or until the line is full, but is passed over. The owner's lock protects the line. The service also
/// uses it, hence `package`.
package struct WaitingLine<Value: Sendable>: Sendable {
  private struct Caller {
    let reply: Reply<Value>
    let size: Int
    let deadline: ContinuousClock.Instant?

    func isLate(at now: ContinuousClock.Instant) -> Bool { deadline.map { $0 < now } ?? false }
  }

  /// Why a caller cannot wait.
  package struct IsFull: Error {
    package let count: Int
  }

  private var callers: Deque<Caller> = []
  private var size = 0
  private let maximumCount: Int
  private let maximumSize: Int

  package init(maximumCount: Int = .max, maximumSize: Int = .max) {
    self.maximumCount = maximumCount
    self.maximumSize = maximumSize
  }

  /// The number of places that are taken, some perhaps by callers that have given up.
  package var count: Int { callers.count }

  /// The number of callers that still wait.
  package var patientCount: Int { callers.count { !$0.reply.isDone } }

  private var isFull: Bool { count >= maximumCount || size >= maximumSize }

  /// Adds a caller.
  ///
  /// - Parameters:
  ///   - size: what it adds to the line's size.
  ///   - deadline: see ``takeLate(at:)``.
  /// - Throws: ``IsFull`` if there is no place left, not even one whose caller has given up.
  package mutating func join(size: Int = 0, until deadline: ContinuousClock.Instant? = nil) throws -> Reply<Value> {
    if isFull { remove { $0.reply.isDone } }
    guard !isFull else { throw IsFull(count: count) }
    let caller = Caller(reply: Reply(), size: size, deadline: deadline)
    callers.append(caller)
    self.size += size
    return caller.reply
  }

  /// Hands the value to the first caller that still waits.
  ///
  /// - Returns: false if there is none.
  package mutating func serve(_ value: Value) -> Bool {
    while let caller = callers.popFirst() {
      size -= caller.size
      if caller.reply.fulfil(.success(value)) { return true }
    }
    return false
  }

  /// Removes and returns the callers whose deadline has passed.
  package mutating func takeLate(at now: ContinuousClock.Instant) -> [Reply<Value>] {
    // Returning early is the usual case. It also avoids a ThreadSanitizer report: an empty array made from a deque
    // touches the storage that all empty arrays share.
    guard callers.contains(where: { $0.isLate(at: now) }) else { return [] }
    defer { remove { $0.isLate(at: now) } }
    return callers.filter { $0.isLate(at: now) }.map(\.reply)
  }

  package mutating func takeAll() -> [Reply<Value>] {
    guard count > 0 else { return [] }
    defer { remove { _ in true } }
    return callers.map(\.reply)
  }

  private mutating func remove(where condition: (Caller) -> Bool) {
    callers.removeAll(where: condition)
    size = callers.reduce(0) { $0 + $1.size }
  }
}

extension Array {
  package func fail<Value>(_ error: any Error) where Element == Reply<Value> {
    for reply in self { reply.fulfil(.failure(error)) }
  }
}
