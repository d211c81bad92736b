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
    /// The task reads the body while it arrives.
    case body(Body.Source, isWanted: Bool)
    /// The body of a request that already has its response.
    case unwantedBody
  }

  /// The turn in the exchange of requests and responses.
  private enum Turn {
    /// The task has not begun.
    case beginning
    /// The task waits for a request.
    case client(CheckedContinuation<Request?, Never>)
    /// A request waits for the task to begin.
    case given(Request)
    /// The task makes a response.
    case task(hasBegunResponse: Bool)
    /// The task gets no more requests.
    case over

    /// From the moment that a request is given until its response is complete.
    var isInProgress: Bool {
      switch self {
      case .given, .task: true
      case .beginning, .client, .over: false
      }
    }

    var hasBegunResponse: Bool {
      if case .task(hasBegunResponse: true) = self { true } else { false }
    }
  }

  private var context: ChannelHandlerContext?
  private var arriving = Arriving.nothing
  private var turn = Turn.beginning
  private var ending = ConnectionEnding.open
  /// The parts after the request in progress.
  private var waiting: Deque<HTTPRequestPart> = []
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
    cut(ChannelError.ioOnClosedChannel)
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

  private var mayRead: Bool {
    if case .body(_, isWanted: false) = arriving { return false }
    return waiting.isEmpty && (turn.isInProgress || isWritable)
  }

  /// Whether the client takes its responses. Otherwise one that only sends requests could fill the memory.
  private var isWritable: Bool { context?.channel.isWritable ?? true }

  private var mustWait: Bool { !waiting.isEmpty || !mayTake }

  private var mayTake: Bool {
    if case .nothing = arriving { !turn.isInProgress && isWritable } else { true }
  }

  private var takesRequests: Bool {
    if case .over = turn { false } else { ending.takesRequests }
  }

  private func take(_ part: HTTPRequestPart) {
    switch (part, arriving) {
    case (.head(let head), _):
      arriving = takesRequests ? .request(head, ByteBuffer()) : .unwantedBody
    case (.body(let bytes), .request):
      append(bytes)
    case (.body(let bytes), .body(let source, _)):
      if case .stopProducing = source.yield(bytes) { arriving = .body(source, isWanted: false) }
    case (.end, .request(let head, let body)):
      arriving = .nothing
      give(Request(head: head, body: RequestBody(body)))
    case (.end, .body(let source, _)):
      source.finish()
      arriving = .nothing
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
    switch turn {
    case .client(let task):
      turn = .task(hasBegunResponse: false)
      task.resume(returning: request)
    case .beginning:
      turn = .given(request)
    case .given, .task, .over:
      break
    }
  }

  /// Gives a request with the part of its body that has arrived. The rest follows.
  private func give(_ head: HTTPRequest, _ body: ByteBuffer) {
    guard let context else { return }
    let made = Body.makeSequence(
      backPressureStrategy: .init(lowWatermark: 2, highWatermark: 10), finishOnDeinit: true,
      delegate: BodyReader(handler: NIOLoopBound(self, eventLoop: context.eventLoop), eventLoop: context.eventLoop))
    if body.readableBytes > 0 { _ = made.source.yield(body) }
    arriving = .body(made.source, isWanted: true)
    give(Request(head: head, body: RequestBody(arriving: made.sequence)))
  }

  /// Does what has become possible after a read, a response or an event.
  private func proceed() {
    while !waiting.isEmpty, mayTake { take(waiting.removeFirst()) }
    if case .request(let head, let body) = arriving, ending.mayBeginBody { give(head, body) }
    if !turn.isInProgress, waiting.isEmpty { proceedToEnd() }
    resumeReading()
  }

  private func resumeReading() {
    guard hasPostponedRead, mayRead else { return }
    hasPostponedRead = false
    context?.read()
  }

  private func proceedToEnd() {
    switch ending {
    case .open: break
    case .last: context?.close(promise: nil)
    case .inputClosed, .silent: endTask()
    case .malformed: sendRefusal()
    case .cut:
      endTask()
      context?.close(promise: nil)
    }
  }

  // MARK: Responses

  /// Sends the last parts of a response, and passes the next request on; nil after the last.
  func next(after response: [HTTPResponsePart], _ task: CheckedContinuation<Request?, Never>) {
    if !response.isEmpty {
      send(response, promise: nil)
      if case .body(let source, _) = arriving {
        source.finish()
        arriving = .unwantedBody
      }
    }
    switch turn {
    case .given(let request):
      turn = .task(hasBegunResponse: false)
      task.resume(returning: request)
    case .over:
      task.resume(returning: nil)
    case .beginning, .client, .task:
      turn = .client(task)
      proceed()
    }
  }

  /// - Parameter promise: the task waits for it. It is fulfilled immediately while the client keeps up.
  func write(_ parts: [HTTPResponsePart], promise: EventLoopPromise<Void>) {
    if case .task = turn { turn = .task(hasBegunResponse: true) }
    send(parts, promise: promise)
  }

  private func send(_ parts: [HTTPResponsePart], promise: EventLoopPromise<Void>?) {
    guard let context, let last = parts.last else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    let keepsUp = isWritable
    for part in parts.dropLast() { context.write(wrapOutboundOut(part), promise: nil) }
    context.writeAndFlush(wrapOutboundOut(last), promise: keepsUp ? nil : promise)
    if keepsUp { promise?.succeed() }
  }

  /// Responds to a request whose body is not HTTP, and closes the connection.
  func refuse() {
    sendRefusal()
    resumeReading()
  }

  private func sendRefusal() {
    switch ending {
    case .silent: break
    case .malformed(let reason, let inBody):
      let (isInProgress, hasBegunResponse) = (turn.isInProgress, turn.hasBegunResponse)
      ending = .silent
      waiting.removeAll()
      endTask()
      // A part of a response must not look complete.
      guard !hasBegunResponse else { context?.close(promise: nil); return }
      // A request whose body breaks after its response gets no second one.
      if isInProgress || !inBody {
        let refusal = makeRefusal(reason)
        send([.head(refusal.response), .body(refusal.body), .end(nil)], promise: nil)
      }
      context?.close(mode: .output, promise: nil)
    case .open, .last, .inputClosed, .cut: context?.close(promise: nil)
    }
  }

  // MARK: The end

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case ChannelEvent.inputClosed:
      ending.inputCloses()
      endBody(ChannelError.inputClosed)
      proceed()
    case ChannelEvent.outputClosed:
      ending.outputCloses()
      waiting.removeAll()
      proceed()
    case is ChannelShouldQuiesceEvent where !isStream:
      ending.quiesces()
      proceed()
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  /// Ends the requests immediately, as if the client had closed the connection.
  func cancel() {
    cut(CancellationError())
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard let error = error as? HTTPParserError else {
      if ending.canFail { cut(error) }
      return
    }
    // The decoder reports each further byte.
    guard ending.canBeMalformed else { return }
    let inBody =
      switch arriving {
      case .body, .unwantedBody: true
      case .nothing, .request: false
      }
    ending = .malformed(error == .headerOverflow ? .headersTooLarge : .malformed, inBody: inBody)
    endBody(MalformedRequest())
    proceed()
  }

  func channelInactive(context: ChannelHandlerContext) {
    cut(ChannelError.ioOnClosedChannel)
    context.fireChannelInactive()
  }

  private func cut(_ error: any Error) {
    ending = .cut
    waiting.removeAll()
    if case .request = arriving { arriving = .unwantedBody }
    endBody(error)
    proceed()
  }

  private func endBody(_ error: any Error) {
    guard case .body(let source, _) = arriving else { return }
    source.finish(error)
    arriving = .nothing
  }

  private func endTask() {
    guard case .client(let task) = turn else { return turn = .over }
    turn = .over
    task.resume(returning: nil)
  }

  struct BodyReader: NIOAsyncSequenceProducerDelegate {
    fileprivate let handler: NIOLoopBound<HTTPConnectionHandler>
    fileprivate let eventLoop: any EventLoop

    func produceMore() {
      eventLoop.execute { handler.value.wantBody() }
    }

    func didTerminate() {}
  }

  private func wantBody() {
    guard case .body(let source, isWanted: false) = arriving else { return }
    arriving = .body(source, isWanted: true)
    proceed()
  }
}
