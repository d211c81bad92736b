import DequeModule
import NIOCore
import NIOHTTP1

/// Closes an HTTP/1 connection whose client sends or receives too slowly, or does not close in time.
///
/// The handler comes directly after the HTTP decoder, because deadlines apply to messages. Bytes that are not a
/// complete head yet show up as a `channelReadComplete` without a part. The client's clock runs only while a read is
/// outstanding: it does not count time in which the application works or leaves a body unread. Requests do not set or
/// cancel timers. Each connection has one timer, which fires every few seconds and checks all deadlines.
final class ConnectionDeadlines: ChannelDuplexHandler, NIOScheduledCallbackHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// The part of a request that the client is sending; `closed` if nothing more is expected of it.
  private enum Sending { case nothing, head, body, closed }

  /// A request whose response is not complete.
  private struct Exchange {
    /// HTTP/1.0, without chunks, interim responses, and connections that stay open by themselves.
    let isOld: Bool
    /// Whether the response has no body, whatever its headers say.
    let isHead: Bool

    init(_ head: HTTPRequestHead) {
      isOld = head.version.major < 1 || head.version.major == 1 && head.version.minor < 1
      isHead = head.method == .HEAD
    }
  }

  private let limits: ConnectionLimits
  private let refuse: Refusal.Maker
  private var context: ChannelHandlerContext?
  private var timer: NIOScheduledCallback?
  private var closeBy = NIODeadline.distantFuture

  private var sending = Sending.head
  /// How far behind the client is with it.
  private var upload: Lag
  private var bodyDeadline = NIODeadline.distantFuture
  private var request: HTTPRequestHead?
  private var received = 0
  private var hasSpoken = false
  private var hasParsed = false

  private var pending: Deque<Exchange> = []
  /// Whether the connection closes after the pending requests.
  private var isLast = false
  /// Whether the response in progress says that the connection closes after it.
  private var isFinal = false
  /// Whether nothing more is written.
  private var isEnding = false
  private var isUpgrade = false
  private var idleSince = NIODeadline.now()

  private var backlog: Backlog

  init(limits: ConnectionLimits, refuse: @escaping Refusal.Maker) {
    self.limits = limits
    self.refuse = refuse
    upload = Lag(bytesPerSecond: limits.bytesPerSecond, credit: limits.bodyGrace)
    backlog = Backlog(bytesPerSecond: limits.bytesPerSecond)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    // With TLS, the handshake comes first.
    if context.channel.isActive { start(context) }
  }

  func channelActive(context: ChannelHandlerContext) {
    start(context)
    context.fireChannelActive()
  }

  private func start(_ context: ChannelHandlerContext) {
    self.context = context
    upload.run(at: .now())
    arm(context, at: .now() + tick)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    self.context = nil
  }

  // MARK: Inbound

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isEnding else { return }
    hasParsed = true
    switch unwrapInboundIn(data) {
    case .head(let head):
      sending = .body
      upload.reset()
      bodyDeadline = .now() + .init(seconds: limits.uploadSeconds)
      request = head
      received = 0
      pending.append(Exchange(head))
      // The server never upgrades, but the decoder stops at an upgrade request, so nothing can follow it.
      isUpgrade = head.method == .CONNECT || head.headers.contains(name: "upgrade")
      if isUpgrade || !head.isKeepAlive { isLast = true }
    case .body(let bytes):
      received += bytes.readableBytes
      upload.bytes += bytes.readableBytes
    case .end:
      sending = .nothing
      upload.reset()
      if pending.isEmpty { idleSince = .now() }
    }
    context.fireChannelRead(data)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if sending == .nothing, !hasParsed { sending = .head }
    hasParsed = false
    hasSpoken = true
    if upload.isRunning { upload.stop(at: .now()) }
    if sending == .body { greet(context) }
    context.fireChannelReadComplete()
  }

  func read(context: ChannelHandlerContext) {
    // Bytes after an upgrade request would pile up in the decoder.
    if isUpgrade, sending != .body { return }
    if sending == .head || sending == .body { upload.run(at: .now()) }
    context.read()
  }

  /// Responds to `Expect: 100-continue`, unless the body is too large for every route.
  private func greet(_ context: ChannelHandlerContext) {
    // HTTP/1.0 has no interim responses.
    guard received == 0, pending.count == 1, pending.first?.isOld == false,
      request?.headers.first(name: "expect")?.lowercased() == "100-continue",
      missingBytes.map({ $0 <= limits.largestBody }) ?? true
    else { return }
    request?.headers.remove(name: "expect")
    context.writeAndFlush(wrapOutboundOut(.head(.init(version: .http1_1, status: .continue))), promise: nil)
  }

  /// Bytes of the request's body that have not arrived yet; nil without a `Content-Length`.
  private var missingBytes: Int? {
    request?.headers.first(name: "content-length").flatMap { Int($0) }.map { $0 - received }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case ChannelEvent.inputClosed:
      sending = .closed
      upload.reset()
    case ChannelEvent.outputClosed: close(context, within: limits.lingerSeconds)
    case is ChannelShouldQuiesceEvent:
      isLast = true
      close(context, within: limits.shutdownSeconds)
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  // MARK: Outbound

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    // The response to a request that was refused meanwhile.
    guard !isEnding else {
      promise?.fail(ChannelError.outputClosed)
      return
    }
    var data = data
    switch unwrapOutboundIn(data) {
    case .head(var head):
      backlog.sent += 256
      // If the response comes before the whole body, the connection stays open only if little of the body is missing.
      if pending.count == 1, sending == .body, missingBytes.map({ $0 > limits.unwantedBody }) ?? true { isLast = true }
      let isOld = pending.first?.isOld ?? false
      // HTTP/1.0 has no chunks, so the body ends with the connection.
      let hasOpenEnd = isOld && head.status.mayHaveResponseBody && !head.headers.contains(name: "content-length")
      if hasOpenEnd { head.version = .http1_0 }
      isFinal = hasOpenEnd && pending.first?.isHead == false || isLast && pending.count == 1
      guard isFinal || isOld else { break }
      // A client of HTTP/1.0 expects the end of the connection, unless both sides say otherwise.
      head.headers.replaceOrAdd(name: "connection", value: isFinal ? "close" : "keep-alive")
      data = wrapOutboundOut(.head(head))
    case .body(let bytes):
      backlog.sent += bytes.readableBytes
    case .end:
      // The encoder would send the end of a body in chunks.
      let isHead = pending.popFirst()?.isHead ?? false
      context.write(isHead ? wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))) : data, promise: promise)
      if pending.isEmpty || isFinal { responded(context) }
      return
    }
    context.write(data, promise: promise)
  }

  private func responded(_ context: ChannelHandlerContext) {
    if isLast || isFinal {
      context.flush()
      end(context, nil)
    } else if sending == .nothing {
      idleSince = .now()
    }
  }

  /// On graceful shutdown, the connection closes right after a response. The response must leave the buffer first.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    switch mode {
    case .output: end(context, promise)
    case .all where bytesInBuffer(context) > 0: end(context, promise)
    case .all, .input: context.close(mode: mode, promise: promise)
    }
  }

  /// Closes the output when everything is sent. NIO would close the whole connection immediately if the client has
  /// closed its side, and drop the rest of the response.
  ///
  /// Requests that arrive from now on can get no response, so they are not passed on, and those that wait are dropped.
  private func end(_ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>?) {
    guard !isEnding else { return context.channel.closeFuture.cascade(to: promise) }
    isEnding = true
    sending = .closed
    upload.reset()
    if bytesInBuffer(context) > 0 {
      let sent = context.eventLoop.makePromise(of: Void.self)
      sent.futureResult.assumeIsolated().whenComplete { _ in context.close(mode: .output, promise: promise) }
      context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer()))), promise: sent)
      context.fireUserInboundEventTriggered(ChannelEvent.outputClosed)
    } else {
      context.close(mode: .output, promise: promise)
    }
  }

  private func bytesInBuffer(_ context: ChannelHandlerContext) -> Int {
    (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
  }

  // MARK: The timer

  /// Short enough that no deadline begins and passes between two ticks.
  private var tick: TimeAmount {
    .init(seconds: min(limits.headSeconds, limits.bodyGrace, limits.uploadSeconds, limits.idleSeconds))
  }

  private func arm(_ context: ChannelHandlerContext, at deadline: NIODeadline) {
    timer?.cancel()
    // Throws only while the event loop shuts down, which also closes the connection.
    timer = try? context.eventLoop.assumeIsolated().scheduleCallback(at: deadline, handler: self)
  }

  private func close(_ context: ChannelHandlerContext, within seconds: Double) {
    closeBy = min(closeBy, .now() + .init(seconds: seconds))
    arm(context, at: min(closeBy, .now() + tick))
  }

  func handleScheduledCallback(eventLoop: some EventLoop) {
    guard let context, context.channel.isActive else { return }
    let now = NIODeadline.now()
    upload.settle(at: now)
    backlog.settle(left: bytesInBuffer(context), at: now)

    let due = nextDeadline(after: now)
    guard due <= now else { return arm(context, at: min(due, now + tick)) }
    if sending == .head, hasSpoken, pending.isEmpty, upload.seconds >= limits.headSeconds {
      let refusal = refuse(.headTimeout)
      context.write(wrapOutboundOut(.head(refusal.head)), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(refusal.body))), promise: nil)
    }
    context.close(promise: nil)
  }

  private func nextDeadline(after now: NIODeadline) -> NIODeadline {
    var due = sending == .body ? min(closeBy, bodyDeadline) : closeBy
    if upload.isRunning {
      let limit = sending == .head ? limits.headSeconds : limits.bodyGrace
      due = min(due, now + .init(seconds: limit - upload.seconds))
    }
    if backlog.left > 0 {
      // A reader's progress is visible only in steps of a TCP window, so it gets as much time as an idle connection.
      due = min(due, now + .init(seconds: limits.idleSeconds - backlog.seconds))
    } else if pending.isEmpty, sending == .nothing || sending == .closed {
      due = min(due, idleSince + .init(seconds: limits.idleSeconds))
    }
    return due
  }
}
