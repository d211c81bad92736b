import Testing

@testable import HTTPServer

/// Each event in each state.
@Suite struct ConnectionEndingTests {
  private static let malformed = ConnectionEnding.malformed(.malformed, inBody: false)
  private static let states = [ConnectionEnding.open, .last, .inputClosed, malformed, .silent, .cut]

  private func after(_ event: (inout ConnectionEnding) -> Void) -> [ConnectionEnding] {
    Self.states.map { state in
      var state = state
      event(&state)
      return state
    }
  }

  @Test func `a client that closes its side still gets responses, and the refusal of what is not HTTP`() {
    #expect(after { $0.inputCloses() } == [.inputClosed, .inputClosed, .inputClosed, Self.malformed, .silent, .cut])
  }

  @Test func `after the end of the output nothing is sent, whatever was to come`() {
    #expect(after { $0.outputCloses() } == [.silent, .cut, .silent, .silent, .silent, .cut])
  }

  @Test func `a shutdown leaves an end that has begun, and does not wait for a client that gets no more`() {
    #expect(after { $0.quiesces() } == [.last, .last, .inputClosed, Self.malformed, .cut, .cut])
  }

  @Test func `only the first bytes that are not HTTP count`() {
    #expect(Self.states.map(\.canBeMalformed) == [true, true, true, false, false, false])
  }

  @Test func `errors that follow bytes that are not HTTP do not cut the refusal off`() {
    #expect(Self.states.map(\.canFail) == [true, true, true, false, false, true])
  }

  @Test func `no request is handled that arrives when no response can be sent`() {
    #expect(Self.states.map(\.takesRequests) == [true, true, true, true, false, false])
  }

  @Test func `a request is given before its end only if its rest can arrive`() {
    #expect(Self.states.map(\.mayBeginBody) == [true, true, false, false, false, false])
  }
}
