import DequeModule
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// Gives the requests of a connection to its task, one after the other.
///
/// A request is given when all of it has arrived, or when a part of its body is still to come: then the body is a
/// stream. Requests that arrive meanwhile wait, and the connection is not read until they are given.
final class HTTPConnectionHandler: ChannelDuplexHandler {
  typealias InboundIn = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  typealias Body = NIOThrowingAsyncSequenceProducer<
    ByteBuffer, any Error, NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, BodyReader
  >

  /// The request that is arriving.
  private enum Arriving {
    case nothing
    case request(HTTPRequest, ByteBuffer)
    case body(Body.Source)
    /// The body of a request that already has its response.
    case unwantedBody
  }

  private var context: ChannelHandlerContext?
  private var arriving = Arriving.nothing
  /// The parts after the request in progress.
  private var waiting: Deque<HTTPRequestPart> = []
  /// A request that the task has not asked for yet.
  private var given: Request?
  /// Waits for a request.
  private var task: CheckedContinuation<Request?, Never>?

  /// From the moment that a request is given until its response is complete.
  private var isInProgress = false
  private var hasBegunResponse = false
  private var isInputClosed = false
  /// Whether the connection closes after the response in progress.
  private var isLast = false
  private var parserError: HTTPParserError?
  /// Whether the error is in the body of a request that was given, so that its response is the only one.
  private var hasBrokenBody = false
  /// Whether the client gets no more bytes.
  private var isOutputClosed = false

  private var wantsBody = true
  private var hasPostponedRead = false

  private let isStream: Bool
  private let makeRefusal: Refusal.Maker

  /// - Parameter isStream: whether this is a stream of HTTP/2, which its connection ends.
  init(isStream: Bool, refuse: @escaping Refusal.Maker) {
    self.isStream = isStream
    makeRefusal = refuse
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    endInput(ChannelError.ioOnClosedChannel)
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    if mustWait { waiting.append(part) } else { take(part) }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    proceed()
    context.fireChannelReadComplete()
  }

  /// Even a connection with a request in progress is read, to notice that the client closes it, unless another request
  /// waits.
  func read(context: ChannelHandlerContext) {
    if mayRead { context.read() } else { hasPostponedRead = true }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    proceed()
    context.fireChannelWritabilityChanged()
  }

  private var mayRead: Bool { wantsBody && waiting.isEmpty && (isInProgress || isWritable) }

  /// Whether the client takes its responses. Otherwise one that only sends requests could fill the memory.
  private var isWritable: Bool { context?.channel.isWritable ?? true }

  private var mustWait: Bool { !waiting.isEmpty || !mayTake }

  private var mayTake: Bool {
    if case .nothing = arriving { !isInProgress && isWritable } else { true }
  }

  private func take(_ part: HTTPRequestPart) {
    switch (part, arriving) {
    case (.head(let head), _):
      arriving = .request(head, ByteBuffer())
    case (.body(let bytes), .request):
      append(bytes)
    case (.body(let bytes), .body(let source)):
      if case .stopProducing = source.yield(bytes) { wantsBody = false }
    case (.end, .request(let head, let body)):
      arriving = .nothing
      give(Request(head: head, body: RequestBody(body)))
    case (.end, .body(let source)):
      source.finish()
      arriving = .nothing
      wantsBody = true
    case (.end, .unwantedBody):
      arriving = .nothing
    case (.body, _), (.end, .nothing):
      break
    }
  }

  private func append(_ bytes: ByteBuffer) {
    guard case .request(let head, var body) = arriving else { return }
    // Otherwise the body would be copied.
    arriving = .nothing
    if body.readableBytes == 0 { body = bytes } else { body.writeImmutableBuffer(bytes) }
    arriving = .request(head, body)
  }

  private func give(_ request: Request) {
    isInProgress = true
    hasBegunResponse = false
    if let task {
      self.task = nil
      task.resume(returning: request)
    } else {
      given = request
    }
  }

  /// Gives a request with the part of its body that has arrived. The rest follows.
  private func give(_ head: HTTPRequest, _ body: ByteBuffer) {
    guard let context else { return }
    let made = Body.makeSequence(
      backPressureStrategy: .init(lowWatermark: 2, highWatermark: 10), finishOnDeinit: true,
      delegate: BodyReader(handler: NIOLoopBound(self, eventLoop: context.eventLoop), eventLoop: context.eventLoop))
    if body.readableBytes > 0 { _ = made.source.yield(body) }
    arriving = .body(made.source)
    give(Request(head: head, body: RequestBody(arriving: made.sequence)))
  }

  /// Does what has become possible after a read, a response or an event.
  private func proceed() {
    while !waiting.isEmpty, mayTake { take(waiting.removeFirst()) }
    if case .request(let head, let body) = arriving, parserError == nil, !isInputClosed { give(head, body) }
    if !isInProgress, waiting.isEmpty {
      if parserError != nil { refuse() }
      if isInputClosed { endTask() }
      if isLast { context?.close(promise: nil) }
    }
    if hasPostponedRead, mayRead {
      hasPostponedRead = false
      context?.read()
    }
  }

  // MARK: Responses

  /// Sends the last parts of a response, and passes the next request on; nil after the last.
  func next(after response: [HTTPResponsePart], _ task: CheckedContinuation<Request?, Never>) {
    if !response.isEmpty {
      write(response, promise: nil)
      isInProgress = false
      if case .body(let source) = arriving {
        source.finish()
        arriving = .unwantedBody
        wantsBody = true
      }
    }
    if let given {
      self.given = nil
      task.resume(returning: given)
    } else {
      self.task = task
      proceed()
    }
  }

  /// - Parameter promise: the task waits for it. It is fulfilled immediately while the client keeps up.
  func write(_ parts: [HTTPResponsePart], promise: EventLoopPromise<Void>?) {
    guard let context, let last = parts.last else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    hasBegunResponse = true
    let keepsUp = isWritable
    for part in parts.dropLast() { context.write(wrapOutboundOut(part), promise: nil) }
    context.writeAndFlush(wrapOutboundOut(last), promise: keepsUp ? nil : promise)
    if keepsUp { promise?.succeed() }
  }

  /// Responds to bytes that are not HTTP, and closes the connection.
  func refuse() {
    guard let context, !isOutputClosed else { return }
    isOutputClosed = true
    isInputClosed = true
    guard !(isInProgress && hasBegunResponse) else { return context.close(promise: nil) }
    if !(hasBrokenBody && hasBegunResponse) {
      let refusal = makeRefusal(parserError == .headerOverflow ? .headersTooLarge : .malformed)
      write([.head(refusal.response), .body(refusal.body), .end(nil)], promise: nil)
    }
    context.close(mode: .output, promise: nil)
  }

  // MARK: The end

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case ChannelEvent.inputClosed:
      endInput(ChannelError.inputClosed)
      proceed()
    case ChannelEvent.outputClosed:
      isOutputClosed = true
    case is ChannelShouldQuiesceEvent where !isStream:
      isLast = true
      proceed()
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  /// Ends the requests immediately, as if the client had closed the connection.
  func cancel() {
    endInput(CancellationError())
    isLast = true
    proceed()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The decoder reports each further byte.
    guard parserError == nil else { return }
    if let error = error as? HTTPParserError {
      parserError = error
      switch arriving {
      case .body, .unwantedBody: hasBrokenBody = true
      case .nothing, .request: break
      }
      endBody(MalformedRequest())
    } else {
      endInput(error)
      isLast = true
    }
    proceed()
  }

  func channelInactive(context: ChannelHandlerContext) {
    waiting.removeAll()
    endInput(ChannelError.ioOnClosedChannel)
    context.fireChannelInactive()
  }

  private func endInput(_ error: any Error) {
    isInputClosed = true
    endBody(error)
    if !isInProgress { endTask() }
  }

  private func endBody(_ error: any Error) {
    guard case .body(let source) = arriving else { return }
    source.finish(error)
    arriving = .nothing
    wantsBody = true
  }

  private func endTask() {
    task?.resume(returning: nil)
    task = nil
  }

  struct BodyReader: NIOAsyncSequenceProducerDelegate {
    fileprivate let handler: NIOLoopBound<HTTPConnectionHandler>
    fileprivate let eventLoop: any EventLoop

    func produceMore() {
      eventLoop.execute {
        handler.value.wantsBody = true
        handler.value.proceed()
      }
    }

    func didTerminate() {}
  }
}
