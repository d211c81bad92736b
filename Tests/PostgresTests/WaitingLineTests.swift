import TestSupport
import Testing

@testable import Postgres

@Suite struct WaitingLineTests {
  private let start = ContinuousClock.now

  private func instant(_ seconds: Int) -> ContinuousClock.Instant { start + .seconds(seconds) }

  /// A caller's task, once it waits.
  private func wait(at place: WaitingLine<Int>.Place) -> Task<Int, any Error> { Task { try await place.value() } }

  private func giveUp(_ caller: Task<Int, any Error>) async {
    caller.cancel()
    await #expect(throws: CancellationError.self) { try await caller.value }
  }

  @Test func `callers are served in the order in which they came`() async throws {
    var line = WaitingLine<Int>()
    let places = try (0..<4).map { _ in try line.join() }
    #expect(line.count == 4)
    for number in 0..<4 {
      let isServed = line.serve(number)
      #expect(isServed && line.count == 3 - number)
    }
    let isServed = line.serve(4)
    #expect(!isServed)
    for (number, place) in places.enumerated() { #expect(try await place.value() == number) }
  }

  @Test func `a caller that gives up is passed over, and those behind it move up`() async throws {
    var line = WaitingLine<Int>()
    let callers = try (0..<3).map { _ in wait(at: try line.join()) }
    await giveUp(callers[1])
    #expect(line.count == 2)
    let served = [line.serve(1), line.serve(2), line.serve(3)]
    #expect(served == [true, true, false])
    #expect(try await callers[0].value == 1)
    #expect(try await callers[2].value == 2)
  }

  @Test func `a caller whose task was cancelled before it waits has no place`() async throws {
    var line = WaitingLine<Int>()
    let place = try line.join()
    let gate = AsyncStream<Void>.makeStream()
    let caller = Task {
      for await _ in gate.stream {}
      return try await place.value()
    }
    await giveUp(caller)
    let isServed = line.serve(1)
    #expect(!isServed && line.count == 0)
  }

  @Test func `a full line refuses callers, and a caller that gives up leaves its place to the next one`() async throws {
    var line = WaitingLine<Int>(maximumCount: 2)
    let callers = try (0..<2).map { _ in wait(at: try line.join()) }
    for _ in 0..<3 {
      let refusal = #expect(throws: WaitingLine<Int>.IsFull.self) { _ = try line.join() }
      #expect(refusal?.count == 2)
    }
    await giveUp(callers[0])
    let last = try line.join()
    #expect(throws: WaitingLine<Int>.IsFull.self) { _ = try line.join() }
    // It does not take the place of the one that left, but the last one.
    let served = [line.serve(1), line.serve(2)]
    #expect(served == [true, true])
    #expect(try await callers[1].value == 1)
    #expect(try await last.value() == 2)
    _ = try line.join()
  }

  @Test func `a line is full when it has reached its size, by whatever its callers add to it`() async throws {
    var line = WaitingLine<Int>(maximumSize: 10)
    // The one that reaches the limit may exceed it: a caller that is larger than the line can wait alone.
    let first = wait(at: try line.join(size: 4, until: instant(1)))
    let second = wait(at: try line.join(size: 100))
    func expectFull() { #expect(throws: WaitingLine<Int>.IsFull.self) { _ = try line.join() } }
    expectFull()
    await giveUp(second)
    let third = try line.join(size: 6, until: instant(2))
    expectFull()
    let isServed = line.serve(1)
    #expect(isServed)
    #expect(try await first.value == 1)
    let fourth = try line.join(size: 4)
    expectFull()
    line.takeLate(at: instant(3)).fail(Late())
    await #expect(throws: Late.self) { try await third.value() }
    _ = try line.join(size: 6)
    expectFull()
    line.takeAll().fail(Late())
    await #expect(throws: Late.self) { try await fourth.value() }
    _ = try line.join(size: 10)
    expectFull()
  }

  private struct Late: Error {}

  @Test func `callers are late by their own deadlines, whatever the order of these`() async throws {
    var line = WaitingLine<Int>()
    let seconds = [30, nil, 10, 20, 10]
    let places = try seconds.map { try line.join(until: $0.map(instant)) }
    func late(at second: Int) -> [Int] {
      let replies = line.takeLate(at: instant(second))
      return replies.compactMap { reply in places.firstIndex { $0.reply === reply } }
    }
    #expect(late(at: 9) == [])
    #expect(late(at: 10) == [], "a deadline is a caller's last moment")
    #expect(late(at: 11) == [2, 4])
    #expect(late(at: 11) == [])
    // A later caller may have an earlier deadline than all others.
    let last = try line.join(until: instant(15))
    let early = line.takeLate(at: instant(16))
    #expect(early.first === last.reply)
    #expect(late(at: 31) == [0, 3], "in the order of the line")
    #expect(late(at: 1000) == [])
    let served = [line.serve(1), line.serve(2)]
    #expect(served == [true, false])
    #expect(try await places[1].value() == 1)
  }

  @Test func `after many callers were served, those that wait are late by their own deadlines`() async throws {
    var line = WaitingLine<Int>()
    for number in 0..<200 {
      let place = try line.join(until: instant(number % 7))
      let isServed = line.serve(number)
      #expect(isServed)
      #expect(try await place.value() == number)
    }
    let places = try [9, 8, 9].map { try line.join(until: instant($0)) }
    let none = line.takeLate(at: instant(8))
    #expect(none.isEmpty)
    let late = line.takeLate(at: instant(9))
    #expect(late.count == 1 && late.first === places[1].reply)
    let last = line.takeLate(at: instant(10))
    #expect(last.count == 2 && last.first === places[0].reply && last.last === places[2].reply)
    #expect(line.count == 0)
  }

  @Test func `a caller that was served or has given up is not late, and hides no other that is`() async throws {
    var line = WaitingLine<Int>()
    let first = try line.join(until: instant(1))
    let second = wait(at: try line.join(until: instant(2)))
    let third = try line.join(until: instant(3))
    let isServed = line.serve(1)
    #expect(isServed)
    await giveUp(second)
    let none = line.takeLate(at: instant(3))
    #expect(none.isEmpty)
    #expect(try await first.value() == 1)
    let late = line.takeLate(at: instant(4))
    #expect(late.count == 1 && late.first === third.reply)
    #expect(line.count == 0)
  }

  @Test func `all callers can be taken at once, and others may come after them`() async throws {
    var line = WaitingLine<Int>(maximumCount: 2)
    let none = line.takeAll()
    #expect(none.isEmpty)
    let places = [try line.join(until: instant(1)), try line.join()]
    let all = line.takeAll()
    #expect(all.count == 2 && zip(all, places).allSatisfy { $0 === $1.reply })
    all.fail(Late())
    for place in places { await #expect(throws: Late.self) { try await place.value() } }
    let late = line.takeLate(at: instant(2))
    #expect(late.isEmpty)
    let next = try line.join()
    let isServed = line.serve(1)
    #expect(isServed)
    #expect(try await next.value() == 1)
  }

  @Test func `nothing is kept of callers that have given up, while another one waits in front of them`() async throws {
    struct Weak { weak var reply: Reply<Int>? }
    var line = WaitingLine<Int>()
    let patient = try line.join()
    var gone: [Weak] = []
    for _ in 0..<500 {
      let caller = wait(at: try remembered(&line, { gone.append(Weak(reply: $0)) }))
      await giveUp(caller)
    }
    #expect(line.count == 1)
    let next = try line.join()
    // The task of the last caller may still be going.
    try await eventually { gone.allSatisfy { $0.reply == nil } }
    let served = [line.serve(1), line.serve(2)]
    #expect(served == [true, true])
    #expect(try await patient.value() == 1)
    #expect(try await next.value() == 2)
  }

  private func remembered(
    _ line: inout WaitingLine<Int>, _ remember: (Reply<Int>?) -> Void
  ) throws -> WaitingLine<Int>.Place {
    let place = try line.join()
    remember(place.reply)
    return place
  }

  @Test func `however many give up at any moment, each value has one receiver, and the line is empty after them`()
    async throws
  {
    let line = Lock(WaitingLine<Int>())
    var random = SeededRandom(seed: 3)
    for _ in 0..<20 {
      let callers = try (0..<100).map { _ in wait(at: try line.withLock { try $0.join() }) }
      let leaving = callers.shuffled(using: &random).prefix(50)
      async let cancelled: Void = { for caller in leaving { caller.cancel() } }()
      let served = (0..<30).filter { number in line.withLock { $0.serve(number) } }
      await cancelled
      line.withLock { $0.takeAll() }.fail(Late())
      var received: [Int] = []
      for caller in callers {
        if case .success(let number) = await caller.result { received.append(number) }
      }
      #expect(received.sorted() == served)
      #expect(line.withLock { $0.count } == 0)
    }
  }
}

extension WaitingLine.Place {
  /// Only the line itself can fulfil it.
  fileprivate var reply: Reply<Value>? { Mirror(reflecting: self).descendant("reply") as? Reply<Value> }
}
