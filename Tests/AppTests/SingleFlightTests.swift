import Synchronization
import TestSupport
import Testing

@testable import App

@Suite struct SingleFlightTests {
  @Test func `callers that come while an operation runs get its result, even if the first one is cancelled`()
    async throws
  {
    let flight = SingleFlight<Int>()
    let (gate, opener) = AsyncStream<Void>.makeStream()
    let starts = Atomic(0)
    let first = flight.join {
      starts.add(1, ordering: .relaxed)
      for await _ in gate {}
      return 7
    }
    let caller = Task { try await first.value }
    caller.cancel()
    let second = flight.join { 8 }
    #expect(flight.current != nil)
    opener.finish()
    #expect(try await second.value == 7)
    #expect(try await first.value == 7)
    #expect(starts.load(ordering: .relaxed) == 1)
  }

  @Test func `once an operation has ended or failed, the next caller begins another`() async throws {
    let flight = SingleFlight<Int>()
    await #expect(throws: Unexpected.self) { try await flight.join { throw Unexpected("no") }.value }
    #expect(flight.current == nil)
    #expect(try await flight.join { 8 }.value == 8)
    #expect(try await flight.join { 9 }.value == 9)
  }

  @Test func `cancelling ends the operation that runs`() async throws {
    let flight = SingleFlight<Void>()
    let running = flight.join { try await Task.sleep(for: .seconds(60)) }
    flight.cancel()
    await #expect(throws: CancellationError.self) { try await running.value }
    #expect(flight.current == nil)
  }
}
