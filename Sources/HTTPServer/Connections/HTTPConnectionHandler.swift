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

  private var context: ChannelHandlerContext?
  private var arriving = Arriving<Body.Source>.nothing
  private var turn = Turn<CheckedContinuation<Request?, Never>, Request>.beginning
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
    arriving.takesMore && waiting.isEmpty && (turn.isInProgress || isWritable)
  }

  /// Whether the client takes its responses. Otherwise one that only sends requests could fill the memory.
  private var isWritable: Bool { context?.channel.isWritable ?? true }

  private var mustWait: Bool { !waiting.isEmpty || !mayTake }

  private var mayTake: Bool { !arriving.isNothing || !turn.isInProgress && isWritable }

  private func take(_ part: HTTPRequestPart) {
    switch part {
    case .head(let head):
      arriving.headArrives(head, isHandled: !turn.isOver && ending.takesRequests)
    case .body(let bytes):
      guard let source = arriving.bytesArrive(bytes) else { return }
      if case .stopProducing = source.yield(bytes) { arriving.readerIsBehind() }
    case .end:
      switch arriving.endArrives() {
      case .request(let head, let body): give(Request(head: head, body: RequestBody(body)))
      case .body(let source): source.finish()
      case nil: break
      }
    }
  }

  private func give(_ request: Request) {
    turn.requestArrives(request)?.resume(returning: request)
  }

  /// Gives a request with the part of its body that has arrived. The rest follows.
  private func give(_ head: HTTPRequest, _ body: ByteBuffer) {
    guard let context else { return }
    let made = Body.makeSequence(
      backPressureStrategy: .init(lowWatermark: 2, highWatermark: 10), finishOnDeinit: true,
      delegate: BodyReader(handler: NIOLoopBound(self, eventLoop: context.eventLoop), eventLoop: context.eventLoop))
    if body.readableBytes > 0 { _ = made.source.yield(body) }
    arriving.isGiven(readBy: made.source)
    give(Request(head: head, body: RequestBody(arriving: made.sequence)))
  }

  /// Does what has become possible after a read, a response or an event.
  private func proceed() {
    while !waiting.isEmpty, mayTake { take(waiting.removeFirst()) }
    if ending.mayBeginBody, let (head, body) = arriving.incomplete { give(head, body) }
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
      arriving.responseEnds()?.finish()
    }
    switch turn.taskAsks(task) {
    case .now(let request): task.resume(returning: request)
    case .never: task.resume(returning: nil)
    case .later: proceed()
    }
  }

  /// - Parameter promise: the task waits for it. It is fulfilled immediately while the client keeps up.
  func write(_ parts: [HTTPResponsePart], promise: EventLoopPromise<Void>) {
    turn.responseBegins()
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
    ending = .malformed(error == .headerOverflow ? .headersTooLarge : .malformed, inBody: arriving.isPastHead)
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
    arriving.isDropped()
    endBody(error)
    proceed()
  }

  private func endBody(_ error: any Error) {
    arriving.bodyBreaks()?.finish(error)
  }

  private func endTask() {
    turn.ends()?.resume(returning: nil)
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
    if arriving.readerCatchesUp() { proceed() }
  }
}
