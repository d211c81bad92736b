import Testing

@testable import HTTPServer

/// Each event in each state.
@Suite struct TurnTests {
  private typealias Turn = HTTPServer.Turn<Int, String>

  private static var states: [Turn] {
    [
      .beginning, .client(1), .given("first"), .task(hasBegunResponse: false), .task(hasBegunResponse: true), .over,
    ]
  }

  /// The states after an event, and what the event returned.
  private func after<Result>(_ event: (inout Turn) -> Result) -> (states: [Turn], results: [Result]) {
    var states = Self.states
    let results = states.indices.map { event(&states[$0]) }
    return (states, results)
  }

  @Test func `a request goes to the task that waits, and else waits for the first question`() {
    let (states, waiters) = after { $0.requestArrives("next") }
    let working = Turn.task(hasBegunResponse: false)
    #expect(states == [.given("next"), working, .given("first"), working, .task(hasBegunResponse: true), .over])
    #expect(waiters == [nil, 1, nil, nil, nil, nil])
  }

  @Test func `a task that asks gets the request that waits, or waits itself, or has no more to do`() {
    let (states, replies) = after { $0.taskAsks(2) }
    #expect(states == [.client(2), .client(2), .task(hasBegunResponse: false), .client(2), .client(2), .over])
    #expect(replies == [.later, .later, .now("first"), .later, .later, .never])
  }

  @Test func `only a task with a request can begin a response`() {
    let begun = Turn.task(hasBegunResponse: true)
    #expect(after { $0.responseBegins() }.states == [.beginning, .client(1), .given("first"), begun, begun, .over])
  }

  @Test func `at the end, only the task that waits must be resumed`() {
    let (states, waiters) = after { $0.ends() }
    #expect(states == Self.states.map { _ in .over })
    #expect(waiters == [nil, 1, nil, nil, nil, nil])
  }

  @Test func `a request is in progress from the moment that it is given`() {
    #expect(Self.states.map(\.isInProgress) == [false, false, true, true, true, false])
  }

  @Test func `a refusal is possible until the response has begun`() {
    #expect(Self.states.map(\.hasBegunResponse) == [false, false, false, false, true, false])
  }

  @Test func `no request is taken after the end`() {
    #expect(Self.states.map(\.isOver) == [false, false, false, false, false, true])
  }
}
