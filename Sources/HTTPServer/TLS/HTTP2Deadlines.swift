import NIOCore

/// Closes an HTTP/2 connection that begins no request in time, stays idle, does not read, or does not close in time.
///
/// The handler comes between TLS and HTTP/2, because it counts bytes. ``StreamDeadlines`` has the deadlines of a single
/// request.
final class HTTP2Deadlines: ChannelDuplexHandler, NIOScheduledCallbackHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let limits: ConnectionLimits
  private var context: ChannelHandlerContext?
  private var timer: NIOScheduledCallback?
  private var closeBy = NIODeadline.distantFuture
  private var isClosing = false

  private var requests = 0
  private var hasRequested = false
  private var idleSince = NIODeadline.now()
  private var backlog: Backlog

  init(limits: ConnectionLimits) {
    self.limits = limits
    backlog = Backlog(bytesPerSecond: limits.bytesPerSecond)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    arm(context, at: .now() + tick)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    self.context = nil
  }

  // MARK: Requests

  func opened() {
    requests += 1
    hasRequested = true
  }

  func closed() {
    requests -= 1
    if requests == 0 { idleSince = .now() }
  }

  // MARK: Bytes and events

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // A closing connection still receives what its client sends, until the client confirms the end.
    if !isClosing { context.fireChannelRead(data) }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    backlog.sent += unwrapOutboundIn(data).readableBytes
    context.write(data, promise: promise)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is ChannelShouldQuiesceEvent:
      closeBy = .now() + .init(seconds: requests == 0 ? limits.lingerSeconds : limits.shutdownSeconds)
      arm(context, at: min(closeBy, .now() + tick))
    // The client has disconnected. HTTP/2 has no half-closed connections.
    case ChannelEvent.inputClosed: close()
    default: break
    }
    context.fireUserInboundEventTriggered(event)
  }

  func close() {
    isClosing = true
    context?.close(promise: nil)
  }

  // MARK: The timer

  private var tick: TimeAmount {
    .init(seconds: min(limits.headSeconds, limits.idleSeconds))
  }

  private func arm(_ context: ChannelHandlerContext, at deadline: NIODeadline) {
    timer?.cancel()
    // Throws only while the event loop shuts down, which also closes the connection.
    timer = try? context.eventLoop.assumeIsolated().scheduleCallback(at: deadline, handler: self)
  }

  func handleScheduledCallback(eventLoop: some EventLoop) {
    guard let context, context.channel.isActive else { return }
    let now = NIODeadline.now()
    backlog.settle(left: (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0, at: now)
    let due = nextDeadline(after: now)
    if due > now { arm(context, at: min(due, now + tick)) } else { close() }
  }

  private func nextDeadline(after now: NIODeadline) -> NIODeadline {
    if backlog.left > 0 { return min(closeBy, now + .init(seconds: limits.idleSeconds - backlog.seconds)) }
    guard requests == 0 else { return closeBy }
    // The end of an idle connection is announced first, and the client can confirm it.
    let seconds = hasRequested ? limits.idleSeconds + limits.lingerSeconds : limits.headSeconds
    return min(closeBy, idleSince + .init(seconds: seconds))
  }
}
