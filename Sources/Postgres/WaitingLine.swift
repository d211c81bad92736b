import DequeModule
import HeapModule

/// Callers that wait, first come, first served, each with a deadline. Their number and their size are limited.
///
/// A caller waits with ``Place/value()``. Cancelling its task ends the wait, and the place is free immediately. The
/// owner's lock protects the line. The service also uses it, hence `package`.
///
/// Joining, serving and being refused take about the same time however long the line is.
package struct WaitingLine<Value: Sendable>: Sendable {
  /// Numbers the callers in the order in which they came.
  fileprivate typealias Ticket = Int

  /// A caller's place in the line.
  package struct Place: Sendable {
    fileprivate let reply: Reply<Value>
    fileprivate let ticket: Ticket
    fileprivate let departed: Lock<[Ticket]>

    /// Waits for the value. Cancelling the task ends the wait immediately with `CancellationError`.
    package func value() async throws -> Value {
      try await withTaskCancellationHandler {
        try await reply.uncancellableValue()
      } onCancel: {
        // Before the wait ends, so that a caller whose wait has ended has no place. The line's lock is not needed.
        departed.withLock { $0.append(ticket) }
        reply.fulfil(.failure(CancellationError()))
      }
    }
  }

  private struct Caller {
    let reply: Reply<Value>
    let size: Int
  }

  private struct Deadline: Comparable {
    let time: ContinuousClock.Instant
    let ticket: Ticket

    static func < (one: Deadline, other: Deadline) -> Bool { one.time < other.time }
  }

  /// Why a caller cannot wait.
  package struct IsFull: Error {
    package let count: Int
  }

  private var callers: [Ticket: Caller] = [:]
  /// The tickets of the callers, and of some that have left.
  private var order: Deque<Ticket> = []
  private var nextTicket = 0
  private var size = 0
  /// The deadlines of the callers that have one, and of some that were served or have left.
  private var deadlines = Heap<Deadline>()
  /// The tickets of callers that have given up and are still among `callers`. Nil until the first one comes: most lines
  /// never have a caller.
  private var departed: Lock<[Ticket]>?
  private let maximumCount: Int
  private let maximumSize: Int

  package init(maximumCount: Int = .max, maximumSize: Int = .max) {
    self.maximumCount = maximumCount
    self.maximumSize = maximumSize
  }

  /// The number of callers that wait.
  package var count: Int {
    callers.count - (departed?.withLock { $0.count { callers[$0] != nil } } ?? 0)
  }

  /// Adds a caller.
  ///
  /// - Parameters:
  ///   - size: what it adds to the line's size.
  ///   - deadline: see ``takeLate(at:)``.
  /// - Throws: ``IsFull`` if there is no place left.
  package mutating func join(size: Int = 0, until deadline: ContinuousClock.Instant? = nil) throws -> Place {
    removeDeparted()
    guard callers.count < maximumCount, self.size < maximumSize else { throw IsFull(count: callers.count) }
    let departed = self.departed ?? Lock([])
    self.departed = departed
    let place = Place(reply: Reply(), ticket: nextTicket, departed: departed)
    nextTicket += 1
    callers[place.ticket] = Caller(reply: place.reply, size: size)
    order.append(place.ticket)
    self.size += size
    if let deadline { add(Deadline(time: deadline, ticket: place.ticket)) }
    return place
  }

  private mutating func add(_ deadline: Deadline) {
    deadlines.insert(deadline)
    // Before most of them are of callers that were served or have left.
    guard deadlines.count > 2 * callers.count + 16 else { return }
    deadlines = Heap(deadlines.unordered.filter { callers[$0.ticket] != nil })
  }

  /// Hands the value to the first caller that still waits.
  ///
  /// - Returns: false if there is none.
  package mutating func serve(_ value: Value) -> Bool {
    while let ticket = order.popFirst() {
      if let caller = remove(ticket), caller.reply.fulfil(.success(value)) { return true }
    }
    return false
  }

  /// Removes and returns the callers whose deadline has passed, in their order.
  package mutating func takeLate(at now: ContinuousClock.Instant) -> [Reply<Value>] {
    guard let first = deadlines.min, first.time < now else { return [] }
    removeDeparted()
    var late: [Ticket] = []
    while let deadline = deadlines.min, deadline.time < now {
      deadlines.removeMin()
      if callers[deadline.ticket] != nil { late.append(deadline.ticket) }
    }
    let replies = late.sorted().compactMap { remove($0)?.reply }
    shortenOrder()
    return replies
  }

  /// Removes and returns all callers, in their order.
  package mutating func takeAll() -> [Reply<Value>] {
    removeDeparted()
    guard !callers.isEmpty else { return [] }
    defer { order = [] }
    return order.compactMap { remove($0)?.reply }
  }

  @discardableResult
  private mutating func remove(_ ticket: Ticket) -> Caller? {
    guard let caller = callers.removeValue(forKey: ticket) else { return nil }
    size -= caller.size
    return caller
  }

  private mutating func removeDeparted() {
    let tickets = departed?.withLock { departed -> [Ticket] in
      guard !departed.isEmpty else { return [] }
      defer { departed = [] }
      return departed
    }
    guard let tickets, !tickets.isEmpty else { return }
    for ticket in tickets { remove(ticket) }
    shortenOrder()
  }

  /// Before most of the tickets are of callers that have left.
  private mutating func shortenOrder() {
    if order.count > 2 * callers.count { order.removeAll { callers[$0] == nil } }
  }
}

extension Array {
  package func fail<Value>(_ error: any Error) where Element == Reply<Value> {
    for reply in self { reply.fulfil(.failure(error)) }
  }
}
