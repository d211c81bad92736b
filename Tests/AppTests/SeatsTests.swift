import TestSupport
import Testing

@testable import App

@Suite struct SeatsTests {
  @Test func `callers wait for a seat in order, and a cancelled one leaves the line`() async throws {
    let seats = Seats(1)
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let (order, done) = AsyncStream<Int>.makeStream()
    let first = Task {
      try await seats.hold {
        done.yield(0)
        for await _ in gate {}
      }
    }
    var finished = order.makeAsyncIterator()
    let holder = await finished.next()
    #expect(holder == 0)
    var waiting: [Task<Void, any Error>] = []
    for number in 1...3 {
      waiting.append(Task { try await seats.hold { _ = done.yield(number) } })
      try await eventually(within: .seconds(60)) { seats.waiting == number }
    }
    let cancelled = waiting.remove(at: 1)
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    #expect(seats.waiting == 2)
    await #expect(throws: Seats.AreFull.self) { try await seats.hold(waitingAtMost: 2) {} }
    opener.finish()
    try await first.value
    let next = [await finished.next(), await finished.next()]
    #expect(next == [1, 3])
    for task in waiting { try await task.value }
    // The seat is free again, even after an error.
    await #expect(throws: AppError.picturesUnavailable) { try await seats.hold { throw AppError.picturesUnavailable } }
    try await seats.hold {}
  }

  @Test func `as many callers as there are seats come in at once`() async throws {
    let seats = Seats(2)
    try await seats.hold {
      try await seats.hold {
        let third = Task { try await seats.hold {} }
        try await eventually(within: .seconds(60)) { seats.waiting == 1 }
        third.cancel()
        await #expect(throws: CancellationError.self) { try await third.value }
      }
    }
  }
}
