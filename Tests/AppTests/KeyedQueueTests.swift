import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

@Suite struct KeyedQueueTests {
  /// A list of numbers in the order in which they were added.
  private final class Record: Sendable {
    private let kept = Mutex<[Int]>([])

    var numbers: [Int] { kept.withLock { $0 } }

    func add(_ number: Int) { kept.withLock { $0.append(number) } }
  }

  /// A write that has the turn at a key until it ends.
  private final class Holder: Sendable {
    private let gate = AsyncStream.makeStream(of: Void.self)
    private let task: Task<Void, any Error>

    init(_ queue: KeyedQueue, at event: KeyedQueue.Key) async throws {
      let stream = gate.stream
      task = Task { try await queue.turn(at: [event]) { for await _ in stream {} } }
      try await eventually { queue.waiting(at: event) != nil }
    }

    func end() async throws {
      gate.continuation.finish()
      try await task.value
    }
  }

  /// Counts how many writes are inside each of a few rooms.
  private final class Rooms: Sendable {
    private let inside: Mutex<[Int]>

    init(_ count: Int) { inside = Mutex(Array(repeating: 0, count: count)) }

    func enter(_ room: Int) -> Int {
      inside.withLock { inside in
        inside[room] += 1
        return inside[room]
      }
    }

    func leave(_ room: Int) { inside.withLock { $0[room] -= 1 } }
  }

  @Test func `turns come in the order of the requests, and a cancelled write leaves the line`() async throws {
    let (queue, event, record) = (KeyedQueue(), KeyedQueue.Key.event(.new()), Record())
    let holder = try await Holder(queue, at: event)
    var writes: [Task<Void, any Error>] = []
    for number in 1...5 {
      writes.append(Task { try await queue.turn(at: [event]) { record.add(number) } })
      try await eventually { queue.waiting(at: event) == number }
    }
    let cancelled = writes.remove(at: 1)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(queue.waiting(at: event) == 4 && record.numbers.isEmpty)
    try await holder.end()
    for write in writes { try await write.value }
    #expect(record.numbers == [1, 3, 4, 5])
    #expect(queue.isIdle)
  }

  @Test func `a line that is full refuses more writes`() async throws {
    let (queue, event) = (KeyedQueue(capacity: 2), KeyedQueue.Key.event(.new()))
    let holder = try await Holder(queue, at: event)
    let waiting = (0..<2).map { _ in Task { try await queue.turn(at: [event]) {} } }
    try await eventually { queue.waiting(at: event) == 2 }
    let refusal = await #expect(throws: AppError.self) { try await queue.turn(at: [event]) {} }
    #expect(refusal?.slug == "busy")
    #expect(refusal?.retryAfter == 2)
    try await queue.turn(at: [.event(.new())]) {}
    // A cancelled write makes room.
    waiting[0].cancel()
    try await eventually { queue.waiting(at: event) == 1 }
    let late = Task { try await queue.turn(at: [event]) {} }
    try await eventually { queue.waiting(at: event) == 2 }
    try await holder.end()
    try await waiting[1].value
    try await late.value
    #expect(queue.isIdle)
  }

  @Test func `a write that has waited too long is refused`() async throws {
    let (queue, event, record) = (KeyedQueue(patience: .zero), KeyedQueue.Key.event(.new()), Record())
    let holder = try await Holder(queue, at: event)
    let waiting = (0..<3).map { number in Task { try await queue.turn(at: [event]) { record.add(number) } } }
    try await eventually { queue.waiting(at: event) == 3 }
    try await holder.end()
    for task in waiting {
      let refusal = await #expect(throws: AppError.self) { try await task.value }
      #expect(refusal?.slug == "busy")
    }
    #expect(record.numbers.isEmpty)
    #expect(queue.isIdle)
    // A write does not wait for a free key.
    try await queue.turn(at: [event]) { record.add(1) }
    #expect(record.numbers == [1])
  }

  @Test func `a turn that fails ends like any other`() async throws {
    let (queue, event) = (KeyedQueue(), KeyedQueue.Key.event(.new()))
    for _ in 0..<2 {
      await #expect(throws: AppError.eventNotFound) {
        try await queue.turn(at: [event]) { () -> Void in throw AppError.eventNotFound }
      }
    }
    #expect(queue.isIdle)
  }

  @Test func `a write to two users waits for both, and writes to others continue`() async throws {
    let queue = KeyedQueue()
    let (ana, ben) = (KeyedQueue.Key.user(.new()), KeyedQueue.Key.user(.new()))
    let holder = try await Holder(queue, at: max(ana, ben))
    let both = Task { try await queue.turn(at: [max(ana, ben), min(ana, ben)]) {} }
    try await eventually { queue.waiting(at: max(ana, ben)) == 1 }
    #expect(queue.waiting(at: min(ana, ben)) == 0, "held while it waits for the other")
    try await queue.turn(at: [.user(.new())]) {}
    both.cancel()
    await #expect(throws: CancellationError.self) { try await both.value }
    #expect(queue.waiting(at: min(ana, ben)) == nil, "released")
    try await holder.end()
    #expect(queue.isIdle)
  }

  @Test func `one write at a time holds a key, and writes to several of a few keys never deadlock`() async throws {
    let (queue, record) = (KeyedQueue(), Record())
    let keys: [KeyedQueue.Key] = [.user(.new()), .event(.new()), .user(.new()), .session(.new())]
    let busy = Rooms(keys.count)
    var random = SeededRandom(seed: 7)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<400 {
        let rooms = Array(keys.indices).shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))
        group.addTask {
          // A key that is named twice is waited for once.
          try await queue.turn(at: (rooms + rooms.prefix(1)).map { keys[$0] }) {
            for room in rooms where busy.enter(room) > 1 { record.add(room) }
            await Task.yield()
            for room in rooms { busy.leave(room) }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(record.numbers.isEmpty)
    #expect(queue.isIdle)
  }
}
