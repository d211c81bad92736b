import HTTPTypes
import NIOCore
import Testing

@testable import HTTPServer

/// Each event in each state.
@Suite struct ArrivingTests {
  private typealias Arriving = HTTPServer.Arriving<Int>

  private static let head = HTTPRequest(method: .post, scheme: "http", authority: "test", path: "/")
  private static let part = ByteBuffer(string: "part")
  private static var states: [Arriving] {
    [
      .nothing, .request(head, part), .body(1, isWanted: true), .body(1, isWanted: false), .unwantedBody,
    ]
  }

  /// The states after an event, and what the event returned.
  private func after<Result>(_ event: (inout Arriving) -> Result) -> (states: [Arriving], results: [Result]) {
    var states = Self.states
    let results = states.indices.map { event(&states[$0]) }
    return (states, results)
  }

  @Test func `a head begins a request, or one whose body no one reads`() {
    var next = Self.head
    next.path = "/next"
    #expect(after { $0.headArrives(next, isHandled: true) }.states == Self.states.map { _ in .request(next, .init()) })
    #expect(after { $0.headArrives(next, isHandled: false) }.states == Self.states.map { _ in .unwantedBody })
  }

  @Test func `bytes go to the reader, and are kept while there is none`() {
    let (states, readers) = after { $0.bytesArrive(ByteBuffer(string: "ial")) }
    var expected = Self.states
    expected[1] = .request(Self.head, ByteBuffer(string: "partial"))
    #expect(states == expected)
    #expect(readers == [nil, nil, 1, 1, nil])
  }

  @Test func `the first bytes of a body are not copied`() {
    var arriving = Arriving.request(Self.head, ByteBuffer())
    let address = Self.part.withUnsafeReadableBytes { $0.baseAddress }
    #expect(arriving.bytesArrive(Self.part) == nil)
    #expect(arriving.incomplete?.body.withUnsafeReadableBytes { $0.baseAddress } == address)
  }

  @Test func `the end completes a request, or the body of one that is given`() {
    let (states, ends) = after { $0.endArrives() }
    #expect(states == Self.states.map { _ in .nothing })
    #expect(ends == [nil, .request(Self.head, Self.part), .body(1), .body(1), nil])
  }

  @Test func `a request that is given has a reader, and only once`() {
    var expected = Self.states
    expected[1] = .body(2, isWanted: true)
    #expect(after { $0.isGiven(readBy: 2) }.states == expected)
  }

  @Test func `a reader that is behind stops the reading, until it catches up`() {
    var expected = Self.states
    expected[2] = .body(1, isWanted: false)
    #expect(after { $0.readerIsBehind() }.states == expected)
    let (states, wereBehind) = after { $0.readerCatchesUp() }
    expected = Self.states
    expected[3] = .body(1, isWanted: true)
    #expect(states == expected)
    #expect(wereBehind == [false, false, false, true, false])
    #expect(Self.states.map(\.takesMore) == [true, true, true, false, true])
  }

  @Test func `after the response, the rest of the body is read for no one`() {
    let (states, readers) = after { $0.responseEnds() }
    #expect(states == [.nothing, .request(Self.head, Self.part), .unwantedBody, .unwantedBody, .unwantedBody])
    #expect(readers == [nil, nil, 1, 1, nil])
  }

  @Test func `a body that breaks off ends for its reader`() {
    let (states, readers) = after { $0.bodyBreaks() }
    #expect(states == [.nothing, .request(Self.head, Self.part), .nothing, .nothing, .unwantedBody])
    #expect(readers == [nil, nil, 1, 1, nil])
  }

  @Test func `only a request that is not given can be dropped`() {
    var expected = Self.states
    expected[1] = .unwantedBody
    #expect(after { $0.isDropped() }.states == expected)
  }

  @Test func `only a request that is not given is incomplete`() {
    #expect(Self.states.map { $0.incomplete?.body } == [nil, Self.part, nil, nil, nil])
    #expect(Self.states.map { $0.incomplete?.head } == [nil, Self.head, nil, nil, nil])
  }

  @Test func `another request waits until one has arrived`() {
    #expect(Self.states.map(\.isNothing) == [true, false, false, false, false])
  }

  @Test func `malformed bytes are of the body once a request is given or refused`() {
    #expect(Self.states.map(\.isPastHead) == [false, false, true, true, true])
  }
}
