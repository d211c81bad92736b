import Foundation
import Postgres
import Testing

@testable import App

/// The decisions of the dispatcher, without a database or network.
@Suite struct DispatchDecisionTests {
  private let start = ContinuousClock.now

  @Test func `each channel, recipient and host has slots of its own`() {
    var capacity = Capacity(perChannel: 10)
    let (ana, ben) = (User.ID.new(), User.ID.new())
    func keys(_ user: User.ID, _ host: String) -> [Capacity.Key] {
      [.channel(.webhook), .recipient(user, .webhook), .host(host)]
    }
    for _ in 0..<Capacity.perRecipient { capacity.take(keys(ana, "a")) }
    #expect(!capacity.hasRoom(for: keys(ana, "b")))
    #expect(capacity.hasRoom(for: [.channel(.ios), .recipient(ana, .ios)]))
    #expect(capacity.hasRoom(for: keys(ben, "a")))
    for _ in 0..<4 { capacity.take(keys(.new(), "a")) }
    #expect(!capacity.hasRoom(for: keys(ben, "a")))
    for _ in 0..<2 { capacity.take(keys(.new(), "b")) }
    #expect(!capacity.hasRoom(for: keys(ben, "c")) && capacity.hasRoom(for: [.channel(.log)]))
    capacity.free(keys(ana, "a"), after: .seconds(1))
    #expect(capacity.hasRoom(for: keys(ana, "c")) && capacity.hasRoom(for: keys(ben, "a")))
  }

  @Test func `rows without a slot wait for their turn, each behind the one before`() {
    var random = SystemRandomNumberGenerator()
    var capacity = Capacity(perChannel: 10)
    let keys = [Capacity.Key.recipient(.new(), .webhook)]
    let none = capacity.wait(for: keys, now: start, using: &random)
    #expect(none == 0)
    for _ in 0...Capacity.perRecipient { capacity.take(keys) }
    // The last send took ten seconds, and four are in flight at once.
    capacity.free(keys, after: .seconds(10))
    #expect(!capacity.isQueued(keys, now: start))
    let waits = (0..<100).map { _ in capacity.wait(for: keys, now: start, using: &random) }
    #expect(waits.prefix(3) == [2.5, 5, 7.5])
    #expect(waits.allSatisfy { $0 <= 62.5 })
    #expect(capacity.isQueued(keys, now: start))
    #expect(!capacity.isQueued(keys, now: start + .seconds(120)))
  }

  @Test func `a circuit opens after consecutive timeouts and lets one send probe`() {
    var circuit = Circuit()
    for _ in 1..<Circuit.maximumTimeouts { circuit.note(isTimeout: true, at: start) }
    #expect(circuit.admit(at: start) == nil)
    // Any response, even a refusal, resets the count.
    circuit.note(isTimeout: false, at: start)
    #expect(circuit.isClosed)
    for _ in 1...Circuit.maximumTimeouts { circuit.note(isTimeout: true, at: start) }
    let until = start + Circuit.shortestBreak
    #expect(circuit.admit(at: start) == until)
    #expect(circuit.admit(at: until) == nil)
    #expect(circuit.admit(at: until) != nil)
    // The probe fails, so the break doubles.
    circuit.note(isTimeout: true, at: until)
    #expect(circuit.admit(at: until) == until + Circuit.shortestBreak * 2)
    let later = until + Circuit.shortestBreak * 2
    #expect(circuit.admit(at: later) == nil)
    circuit.note(isTimeout: false, at: later)
    #expect(circuit.isClosed && circuit.admit(at: later) == nil)
    for _ in 1...100 { circuit.note(isTimeout: true, at: start) }
    #expect(circuit.admit(at: start) == start + Circuit.longestBreak)
  }

  @Test func `polling slows down while nothing is found, and is full now and then`() {
    var polling = Polling(now: start)
    let first = polling.begin(at: start)
    #expect(first)
    var pauses: [Duration] = []
    var now = start
    for _ in 0..<8 {
      polling.end(at: now, found: false, mayHaveMore: false, wasFull: false)
      pauses.append(polling.next - now)
      now = polling.next
      let isFull = polling.begin(at: now)
      #expect(!isFull)
    }
    #expect(pauses.first == .milliseconds(4) && pauses.last == .milliseconds(50))
    // A wake-up during a poll may have come too late for it.
    polling.wake(at: now)
    polling.end(at: now, found: false, mayHaveMore: false, wasFull: false)
    #expect(polling.next == now)
    let isFull = polling.begin(at: start + Polling.fullInterval)
    #expect(isFull)
    polling.end(at: now, found: true, mayHaveMore: true, wasFull: true)
    let isFullAgain = polling.begin(at: now)
    #expect(isFullAgain)
    for _ in 0..<10 { polling.fail(at: now) }
    #expect(polling.next - now == .seconds(5))
  }

  @Test func `while nothing is found, every poll looks at recent rows only, except for one each 800 milliseconds`() {
    var polling = Polling(now: start)
    var (full, recent): ([Duration], Int) = ([], 0)
    var now = start
    while now < start + .seconds(8) {
      let isFull = polling.begin(at: now)
      if isFull { full.append(now - start) } else { recent += 1 }
      polling.end(at: now, found: false, mayHaveMore: false, wasFull: isFull)
      now = polling.next
    }
    #expect(full == (0..<10).map { .milliseconds(800 * $0) })
    #expect(recent >= 150)
  }

  @Test func `while there is more work than a poll can take, full polls can alternate with others`() {
    var polling = Polling(alternates: true, now: start)
    var kinds: [Bool] = []
    // A poll of recent rows that finds nothing neither slows down the next one nor lets work gather.
    for hasRecent in [true, true, false, false, true, true] {
      let isFull = polling.begin(at: start)
      kinds.append(isFull)
      polling.end(
        at: start, found: isFull || hasRecent, mayHaveMore: isFull || hasRecent, wasFull: isFull,
        rest: .milliseconds(30))
      #expect(polling.next == start)
    }
    #expect(kinds == [true, false, true, false, true, false])
    // The same if a poll takes longer than the time between two full ones.
    _ = polling.begin(at: start)
    let late = start + Polling.fullInterval * 2
    polling.end(at: late, found: true, mayHaveMore: true, wasFull: true)
    let isFullAtOnce = polling.begin(at: late)
    #expect(!isFullAtOnce)
    polling.end(at: late, found: false, mayHaveMore: false, wasFull: false)
    let isFull = polling.begin(at: late)
    polling.end(at: late, found: true, mayHaveMore: false, wasFull: isFull)
    #expect(isFull && polling.next > late)
    let isFullAgain = polling.begin(at: polling.next)
    #expect(!isFullAgain)
  }

  @Test func `a wake-up does not shorten the time in which work gathers`() {
    var polling = Polling(now: start)
    _ = polling.begin(at: start)
    polling.wake(at: start)
    polling.end(at: start, found: true, mayHaveMore: false, wasFull: true, rest: .milliseconds(30))
    #expect(polling.next == start + .milliseconds(30))
    polling.wake(at: start + .milliseconds(10))
    #expect(polling.next == start + .milliseconds(30))
    _ = polling.begin(at: start + .milliseconds(30))
    polling.end(at: start + .milliseconds(31), found: false, mayHaveMore: false, wasFull: false)
    polling.wake(at: start + .milliseconds(32))
    #expect(polling.next == start + .milliseconds(32))
  }

  @Test func `a wake-up that comes during a failing poll is not forgotten, and does not hammer the database`() {
    var polling = Polling(now: start)
    for _ in 0..<10 { polling.fail(at: start) }
    #expect(polling.next == start + Polling.longestPauseAfterFailures)
    var now = polling.next
    for _ in 0..<3 {
      _ = polling.begin(at: now)
      polling.wake(at: now)
      polling.fail(at: now)
      #expect(polling.next == now + Polling.shortestPauseAfterFailure)
      now = polling.next
    }
    _ = polling.begin(at: now)
    polling.fail(at: now)
    #expect(polling.next == now + Polling.longestPauseAfterFailures)
  }

  @Test func `the wait between attempts doubles, up to an hour`() {
    var random = SystemRandomNumberGenerator()
    for attempts in 0..<10 {
      let expected = Double(1 << attempts)
      let delay = Backoff.delay(after: attempts, notBefore: nil, using: &random)
      #expect((expected * 0.8...expected * 1.2).contains(delay))
    }
    for attempts in [12, 40, 2000, .max] {
      let delay = Backoff.delay(after: attempts, notBefore: nil, using: &random)
      #expect((2400...3600).contains(delay))
    }
    let delay = Backoff.delay(after: 0, notBefore: 90, using: &random)
    #expect(delay >= 90)
  }

  // MARK: Suspects

  private var now: DeliveryState.Moment { DeliveryState.Moment(instant: start, timestamp: .now()) }

  private func row(_ id: Int64) -> LeasedRow {
    LeasedRow(
      lease: LeasedRow.Lease(id: id, token: UUID()), attempts: 0, createdAt: now.timestamp, fields: .none)
  }

  private func newState(_ mode: DeliveryState.Mode, queues: Int) -> DeliveryState {
    DeliveryState(
      Array(repeating: DeliveryState.Policy(patience: 60), count: queues), mode: mode, concurrency: 1, at: now)
  }

  /// The event that follows from a command, if all goes well. Each queue has as many suspects as `suspects` says.
  private func result(of command: DeliveryState.Command, _ suspects: inout [Int]) -> DeliveryState.Event? {
    switch command {
    case .claim(let queue, let scope, _):
      var claim = LeaseQueue.Claim()
      claim.hasSuspects = suspects[queue] > 0
      if scope == .suspect, claim.hasSuspects {
        suspects[queue] -= 1
        claim.runs = [[row(Int64(10 * queue + suspects[queue]))]]
      }
      return .claimed(queue: queue, .success(claim))
    case .check(_, let checks):
      let send = Dispatcher.Send(channel: .log) {}
      return .checked(checks, .success(Dictionary(uniqueKeysWithValues: checks.map { ($0.row.id, .send(send)) })))
    case .send(let run, _): return .sent(run: run, after: .zero, .delivered)
    case .write: return .written(failure: nil)
    case .renew: return .renewed(failure: nil)
    case .setAlarm, .cutShort, .logFailure, .logDeadLetter: return nil
    }
  }

  private func suspectClaims(_ commands: [DeliveryState.Command]) -> [Int] {
    commands.compactMap { command in
      if case .claim(let queue, .suspect, _) = command { queue } else { nil }
    }
  }

  @Test func `the queues send their suspects in turns`() {
    var (state, suspects, order) = (newState(.untilNothingIsDue, queues: 3), [3, 1, 2], [Int]())
    var events: [DeliveryState.Event] = [.started]
    while !events.isEmpty {
      let commands = state.handle(events.removeFirst(), at: now)
      for queue in suspectClaims(commands) where suspects[queue] > 0 { order.append(queue) }
      events += commands.compactMap { result(of: $0, &suspects) }
    }
    #expect(order == [0, 1, 2, 0, 2, 0])
    #expect(state.isDone)
  }

  @Test func `a queue's turn to send a suspect does not pass while another of its claims is in flight`() {
    var (state, suspects) = (newState(.untilStopped, queues: 2), [1, 2])
    func handle(_ event: DeliveryState.Event?) -> [DeliveryState.Command] {
      event.map { state.handle($0, at: now) } ?? []
    }
    func claims(_ queue: Int, in commands: [DeliveryState.Command]) -> [DeliveryState.Command] {
      commands.filter { if case .claim(queue, _, _) = $0 { true } else { false } }
    }
    let first = handle(.started)
    // The second queue claims a suspect. Meanwhile, the first one learns that it also has one, and claims other rows.
    var commands = claims(1, in: first).flatMap { handle(result(of: $0, &suspects)) }
    #expect(suspectClaims(commands) == [1])
    let waiting = claims(0, in: first).flatMap { handle(result(of: $0, &suspects)) }
    #expect(suspectClaims(waiting) == [])
    let inFlight = claims(0, in: handle(.woken))
    #expect(inFlight.count == 1)
    var writes = 0
    while !commands.isEmpty {
      let event = result(of: commands.removeFirst(), &suspects)
      if case .written? = event { writes += 1 }
      let next = handle(event)
      #expect(suspectClaims(next) == [], "it is the first queue's turn")
      commands += next
    }
    #expect(writes == 1 && suspects == [1, 1])
    let last = inFlight.flatMap { handle(result(of: $0, &suspects)) }
    #expect(suspectClaims(last) == [0])
  }

  @Test(arguments: [false, true])
  func `a queue whose claims hang or fail does not keep the others from sending their suspects`(fails: Bool) throws {
    var (state, suspects, time) = (newState(.untilStopped, queues: 2), [1, 2], now)
    var alarms: [DeliveryState.Instant] = []
    func handle(_ event: DeliveryState.Event?) -> [DeliveryState.Command] {
      let commands = event.map { state.handle($0, at: time) } ?? []
      for case .setAlarm(let instant) in commands { alarms.append(instant) }
      return commands
    }
    func claims(_ queue: Int, in commands: [DeliveryState.Command]) -> [DeliveryState.Command] {
      commands.filter { if case .claim(queue, _, _) = $0 { true } else { false } }
    }
    // The second queue sends a suspect. Then it is the turn of the first one, which has one, and whose next claim hangs.
    let first = handle(.started)
    var commands = claims(1, in: first).flatMap { handle(result(of: $0, &suspects)) }
    _ = claims(0, in: first).flatMap { handle(result(of: $0, &suspects)) }
    let hanging = claims(0, in: handle(.woken))
    #expect(hanging.count == 1)
    while !commands.isEmpty { commands += handle(result(of: commands.removeFirst(), &suspects)) }
    if fails {
      struct Failure: Error {}
      commands = handle(.claimed(queue: 0, .failure(Failure())))
    } else {
      while suspectClaims(commands) == [] {
        time.instant = try #require(alarms.filter { $0 > time.instant }.min())
        try #require(time.instant <= start + DeliveryState.longestTurn)
        commands = handle(.alarm(time.instant))
        // Nothing else is found meanwhile.
        for claim in claims(1, in: commands) where suspectClaims([claim]) == [] {
          var none = [0, 0]
          commands += handle(result(of: claim, &none))
        }
      }
    }
    #expect(suspectClaims(commands) == [1])
  }
}
