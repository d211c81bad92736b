import Foundation
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
}
