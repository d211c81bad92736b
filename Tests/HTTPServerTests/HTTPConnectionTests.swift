import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTPTypes
import Synchronization
import Testing

@testable import HTTPServer

/// Requests and responses in orders that a socket shows only by chance.
@Suite(.timeLimit(.minutes(5))) struct HTTPConnectionTests {
  @Test func `while the client takes no responses, its requests wait`() async throws {
    let handled = Mutex(0)
    let client = try await Client { _ in
      handled.withLock { $0 += 1 }
      return Response(status: .ok)
    }
    client.channel.isWritable = false
    try await client.send(request("/1") + request("/2"))
    try await Task.sleep(for: .milliseconds(100))
    #expect(handled.withLock { $0 } == 0)
    client.channel.isWritable = true
    try await client.fire { $0.fireChannelWritabilityChanged() }
    for _ in 1...2 { #expect(try await client.response().status == .ok) }
    try await client.end()
  }

  /// - Parameter length: the announced one, which has arrived; nil if the body comes in chunks.
  @Test(arguments: [nil, 4])
  func `a body whose sender closes before its end is not taken for the whole`(length: Int?) async throws {
    let outcome = Mutex<Result<ByteBuffer?, any Error>?>(nil)
    let client = try await Client { request in
      do {
        let body = try await request.body.collect(upTo: 100)
        outcome.withLock { $0 = .success(body) }
      } catch {
        outcome.withLock { $0 = .failure(error) }
      }
      return Response(status: .ok)
    }
    try await client.send(Array(request("/", body: "part", length: length).dropLast()))
    try await client.fire { $0.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
    #expect(try await client.response().status == .ok)
    #expect(throws: ConnectionLost.self) { try outcome.withLock { $0 }?.get() }
    try await client.end()
  }

  @Test func `a client that has finished sending gets the responses to all its requests`() async throws {
    let client = try await Client { _ in Response(status: .ok) }
    try await client.send(request("/1") + request("/2"))
    try await client.fire { $0.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
    for _ in 1...2 { #expect(try await client.response().status == .ok) }
    try await client.end()
  }

  // MARK: Bytes that are not HTTP

  @Test func `after a refusal, further bytes do not close the connection before the client has read it`() async throws {
    let client = try await Client { _ in Response(status: .ok) }
    try await client.fire { $0.fireErrorCaught(HTTPParserError.invalidMethod) }
    #expect(try await client.response().status == .badRequest)
    #expect(Set(client.closes) == [.output])
    try await client.fire {
      $0.fireErrorCaught(
        ByteToMessageDecoderError.dataReceivedInErrorState(HTTPParserError.invalidMethod, ByteBuffer()))
    }
    #expect(Set(client.closes) == [.output])
    #expect(try await client.nextPart() == nil)
    try await client.end()
  }

  @Test func `the request before the bad bytes gets its response first`() async throws {
    let client = try await Client { _ in Response(status: .ok) }
    try await client.fire {
      for part in request("/") { $0.fireChannelRead(part) }
      $0.fireErrorCaught(HTTPParserError.headerOverflow)
    }
    #expect(try await client.response().status == .ok)
    #expect(try await client.response().status == .requestHeaderFieldsTooLarge)
    try await client.end()
  }

  @Test func `a request whose body breaks after its response gets no second response`() async throws {
    let client = try await Client { _ in Response(status: .unauthorized) }
    try await client.send(Array(request("/", body: "part").dropLast()))
    #expect(try await client.response().status == .unauthorized)
    try await client.fire { $0.fireErrorCaught(HTTPParserError.invalidChunkSize) }
    #expect(Set(client.closes) == [.output])
    #expect(try await client.nextPart() == nil)
    try await client.end()
  }

  // MARK: The end

  @Test func `cancellation ends a connection that waits for a request`() async throws {
    let client = try await Client { _ in Response(status: .ok) }
    try await client.send(request("/"))
    #expect(try await client.response().status == .ok)
    client.serving.cancel()
    await client.serving.value
    #expect(client.closes.contains(.all))
  }

  @Test(arguments: [false, true])
  func `a graceful shutdown closes a connection after its response, and leaves a stream to its connection`(
    isStream: Bool
  ) async throws {
    let (began, mayRespond) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
    let client = try await Client(isStream: isStream) { _ in
      began.continuation.finish()
      for await _ in mayRespond.stream {}
      return Response(status: .ok)
    }
    try await client.send(request("/"))
    for await _ in began.stream {}
    try await client.fire { $0.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    #expect(client.closes == [])
    mayRespond.continuation.finish()
    #expect(try await client.response().status == .ok)
    try await client.fire { _ in }
    #expect(client.closes.contains(.all) == !isStream)
    try await client.end()
  }

  @Test func `a response that ends too early closes the connection`() async throws {
    let client = try await Client { _ in
      Response(status: .ok, body: ResponseBody { try await $0.write(ByteBuffer(string: "part")) })
    }
    try await client.send(request("/"))
    await client.serving.value
    #expect(client.closes == [.all])
  }

  @Test(arguments: [["four", "4"], ["abc"], ["abcd", "e", ""]])
  func `a response of another length than it declares closes the connection`(pieces: [String]) async throws {
    let client = try await Client { _ in
      Response(
        status: .ok,
        body: ResponseBody(length: 4) { writer in
          for piece in pieces { try await writer.write(ByteBuffer(string: piece)) }
          writer.finish()
        })
    }
    try await client.send(request("/"))
    await client.serving.value
    #expect(client.closes == [.all])
    var sent = 0
    while let part = try await client.nextPart() {
      if case .body(let bytes) = part { sent += bytes.readableBytes }
      if case .end = part { Issue.record("the response looks complete") }
    }
    #expect(sent < 4)
  }

  @Test func `a response that is finished twice ends once`() async throws {
    let client = try await Client { _ in
      Response(
        status: .ok,
        body: ResponseBody { writer in
          try await writer.write(ByteBuffer(string: "text"))
          writer.finish()
          writer.finish()
        })
    }
    for _ in 1...2 {
      try await client.send(request("/"))
      #expect(try await client.response().status == .ok)
      #expect(try await client.nextPart() == nil)
    }
    try await client.end()
  }

  @Test func `a body that is still arriving is read once, and then an error`() async throws {
    let failure = Mutex<(any Error)?>(nil)
    let client = try await Client { request in
      let whole = try await request.body.collect(upTo: 2)
      #expect(whole == nil)
      do {
        _ = try await request.body.collect(upTo: 100)
      } catch {
        failure.withLock { $0 = error }
      }
      return Response(status: .contentTooLarge)
    }
    try await client.send(Array(request("/", body: "part").dropLast()))
    #expect(try await client.response().status == .contentTooLarge)
    #expect(failure.withLock { $0 is BodyAlreadyRead })
    try await client.end()
  }

  @Test(arguments: [nil, "Fri, 27 Nov 2026 07:00:00 GMT"])
  func `a response has one date`(own: String?) async throws {
    let client = try await Client { _ in
      var response = Response(status: .ok)
      response.headers[.date] = own
      return response
    }
    try await client.send(request("/"))
    let dates = try await client.response().headerFields[values: .date]
    #expect(dates.count == 1 && (own == nil || dates == [own]))
    try await client.end()
  }

  @Test(
    arguments: [(.noContent, nil), (.notModified, nil), (.ok, "0"), (.notFound, "0")]
      as [(HTTPResponse.Status, String?)])
  func `an empty body has a length if the status permits one`(status: HTTPResponse.Status, length: String?) {
    #expect(Response(status: status).headers[.contentLength] == length)
  }

  // MARK: Transitions to the end

  @Test func `a request that the end of the input breaks off is not given`() async throws {
    let handled = Mutex(0)
    let client = try await Client { _ in
      handled.withLock { $0 += 1 }
      return Response(status: .ok)
    }
    try await client.fire { [head = request("/")[0]] in
      $0.fireChannelRead(head)
      $0.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
      $0.fireChannelReadComplete()
    }
    try await client.untilItCloses(.output)
    #expect(handled.withLock { $0 } == 0)
    try await client.end()
  }

  @Test func `a body that breaks before its response is refused, and only once`() async throws {
    let client = try await Client { request in
      _ = try await request.body.collect(upTo: 100)
      return Response(status: .ok)
    }
    try await client.send(Array(request("/", body: "part").dropLast()))
    try await client.fire { $0.fireErrorCaught(HTTPParserError.invalidChunkSize) }
    #expect(try await client.response().status == .badRequest)
    #expect(Set(client.closes) == [.output])
    #expect(try await client.nextPart() == nil)
    try await client.end()
  }

  @Test func `a body that breaks after a part of its response closes the connection without a refusal`() async throws {
    let client = try await Client { request in
      Response(
        status: .ok,
        body: ResponseBody { writer in
          try await writer.write(ByteBuffer(string: "part"))
          _ = try await request.body.collect(upTo: 100)
          writer.finish()
        })
    }
    try await client.send(Array(request("/", body: "part").dropLast()))
    for _ in 1...2 { _ = try await client.channel.waitForOutboundWrite(as: HTTPResponsePart.self) }
    try await client.fire { $0.fireErrorCaught(HTTPParserError.invalidChunkSize) }
    await client.serving.value
    #expect(client.closes.last == .all)
    #expect(try await client.nextPart() == nil)
  }

  @Test func `after the end of its output, a connection handles no more requests`() async throws {
    let handled = Mutex(0)
    let client = try await Client { _ in
      handled.withLock { $0 += 1 }
      return Response(status: .ok)
    }
    try await client.send(request("/1"))
    #expect(try await client.response().status == .ok)
    try await client.fire { $0.fireUserInboundEventTriggered(ChannelEvent.outputClosed) }
    try await client.send(request("/2", body: "part") + request("/3"))
    try await client.untilItCloses(.output)
    #expect(handled.withLock { $0 } == 1)
    try await client.end()
  }

  @Test(arguments: [false, true])
  func `a connection that fails handles no more requests, and closes after the response in progress`(
    isNextLate: Bool
  ) async throws {
    let (began, mayRespond) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
    let handled = Mutex(0)
    let client = try await Client { _ in
      handled.withLock { $0 += 1 }
      began.continuation.finish()
      for await _ in mayRespond.stream {}
      return Response(status: .ok)
    }
    try await client.send(request("/1") + (isNextLate ? [] : request("/2")))
    for await _ in began.stream {}
    try await client.fire { $0.fireErrorCaught(ChannelError.ioOnClosedChannel) }
    if isNextLate { try await client.send(request("/2", body: "part")) }
    #expect(client.closes == [])
    mayRespond.continuation.finish()
    try await client.untilItCloses(.all)
    #expect(handled.withLock { $0 } == 1)
    try await client.end()
  }

  @Test func `a graceful shutdown does not wait for a client that was refused`() async throws {
    let client = try await Client { _ in Response(status: .ok) }
    try await client.fire { $0.fireErrorCaught(HTTPParserError.invalidMethod) }
    #expect(try await client.response().status == .badRequest)
    try await client.fire { $0.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
    #expect(client.closes.contains(.all))
    try await client.end()
  }

  private func request(_ path: String, body: String = "", length: Int? = nil) -> [HTTPRequestPart] {
    var head = HTTPRequest(method: .post, scheme: "http", authority: "test", path: path)
    head.headerFields[.contentLength] = length.map(String.init)
    return [.head(head)] + (body.isEmpty ? [] : [.body(ByteBuffer(string: body))]) + [.end(nil)]
  }
}

/// The client of a connection that exists only in memory.
private struct Client {
  let channel = NIOAsyncTestingChannel()
  let serving: Task<Void, Never>
  private let recorder = CloseRecorder()

  var closes: [CloseMode] { recorder.closes.withLock { $0 } }

  init(isStream: Bool = false, _ responder: @escaping @Sendable (Request) async throws -> Response) async throws {
    let (channel, recorder) = (channel, recorder)
    let connection = try await channel.testingEventLoop.executeInContext {
      try channel.pipeline.syncOperations.addHandler(recorder)
      return try HTTPConnection(wrapping: channel, isStream: isStream, refuse: Refusal.empty)
    }
    try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
    let settings = ConnectionSettings(
      limits: ConnectionLimits(), executor: nil, logger: Logger(label: "test"), refuse: Refusal.empty,
      respond: { request, _ in try await responder(request) }, date: DateHeader())
    serving = Task { await connection.serve(settings) }
  }

  /// Delivers the parts as one read does.
  func send(_ parts: [HTTPRequestPart]) async throws {
    try await fire { pipeline in
      for part in parts { pipeline.fireChannelRead(part) }
      pipeline.fireChannelReadComplete()
    }
  }

  func fire(_ events: @escaping @Sendable (ChannelPipeline) -> Void) async throws {
    try await channel.testingEventLoop.executeInContext { events(channel.pipeline) }
  }

  func response() async throws -> HTTPResponse {
    guard case .head(let head) = try await channel.waitForOutboundWrite(as: HTTPResponsePart.self) else {
      throw ChannelError.inputClosed
    }
    while true {
      if case .end = try await channel.waitForOutboundWrite(as: HTTPResponsePart.self) { return head }
    }
  }

  func nextPart() async throws -> HTTPResponsePart? {
    try await channel.readOutbound(as: HTTPResponsePart.self)
  }

  func untilItCloses(_ mode: CloseMode) async throws {
    while !closes.contains(mode) { try await Task.sleep(for: .milliseconds(5)) }
  }

  func end() async throws {
    _ = try await channel.finish(acceptAlreadyClosed: true)
    await serving.value
  }
}

/// Closes a channel only in full. A real one stays open for a while after its output is closed.
private final class CloseRecorder: ChannelOutboundHandler, Sendable {
  typealias OutboundIn = HTTPResponsePart

  let closes = Mutex<[CloseMode]>([])

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    closes.withLock { $0.append(mode) }
    if mode == .all { context.close(mode: mode, promise: promise) } else { promise?.succeed() }
  }
}
