import NIOCore
import NIOHPACK
import NIOHTTP2

/// Ends an HTTP/2 request whose client sends or receives too slowly, as ``ConnectionDeadlines`` does for HTTP/1.
///
/// The client's clock runs only while a read is outstanding, so time in which the application works does not count.
final class StreamDeadlines: ChannelDuplexHandler, NIOScheduledCallbackHandler {
  typealias InboundIn = HTTP2Frame.FramePayload
  typealias InboundOut = HTTP2Frame.FramePayload
  typealias OutboundIn = HTTP2Frame.FramePayload
  typealias OutboundOut = HTTP2Frame.FramePayload

  /// A large body is written in pieces of this size, so that the client's progress is visible.
  private static let piece = 16 << 10

  private let limits: ConnectionLimits
  private var context: ChannelHandlerContext?
  private var timer: NIOScheduledCallback?

  /// The body of the request.
  private var isReceiving = true
  private var upload: Lag
  private var bodyDeadline = NIODeadline.distantFuture
  /// Bytes of the body that have not arrived yet; nil without a `content-length`.
  private var missing: Int?
  private var expectsContinue = false

  /// Bytes of the response that wait for the client.
  private var waiting = 0
  private var backlog: Backlog

  init(limits: ConnectionLimits) {
    self.limits = limits
    upload = Lag(bytesPerSecond: limits.bytesPerSecond, credit: limits.bodyGrace)
    backlog = Backlog(bytesPerSecond: limits.bytesPerSecond)
  }

  func channelActive(context: ChannelHandlerContext) {
    self.context = context
    bodyDeadline = .now() + .init(seconds: limits.uploadSeconds)
    arm(context, at: .now() + tick)
    context.fireChannelActive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    self.context = nil
  }

  // MARK: Inbound

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .headers(let head):
      if head.headers.contains(name: ":method") {
        missing = head.headers.first(name: "content-length").flatMap { Int($0) }
        expectsContinue = head.headers.first(name: "expect")?.lowercased() == "100-continue"
      }
      if head.endStream { received() }
    case .data(let part):
      expectsContinue = false
      upload.bytes += part.data.readableBytes
      missing = missing.map { $0 - part.data.readableBytes }
      if part.endStream { received() }
    default: break
    }
    context.fireChannelRead(data)
  }

  private func received() {
    isReceiving = false
    upload.reset()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    if upload.isRunning { upload.stop(at: .now()) }
    if isReceiving { greet(context) }
    context.fireChannelReadComplete()
  }

  func read(context: ChannelHandlerContext) {
    if isReceiving { upload.run(at: .now()) }
    context.read()
  }

  /// Responds to `Expect: 100-continue`, unless the body is too large for every route.
  private func greet(_ context: ChannelHandlerContext) {
    guard expectsContinue, missing.map({ $0 <= limits.largestBody }) ?? true else { return }
    expectsContinue = false
    context.writeAndFlush(wrapOutboundOut(.headers(.init(headers: [":status": "100"]))), promise: nil)
  }

  // MARK: Outbound

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .data(var part):
      if case .byteBuffer(var bytes) = part.data {
        while bytes.readableBytes > Self.piece, let piece = bytes.readSlice(length: Self.piece) {
          write(.data(.init(data: .byteBuffer(piece))), piece.readableBytes, nil, context)
        }
        part.data = .byteBuffer(bytes)
      }
      write(.data(part), part.data.readableBytes, promise, context, isLast: part.endStream)
    case .headers(let head) where head.endStream:
      write(.headers(head), 0, promise, context, isLast: true)
    default:
      context.write(data, promise: promise)
    }
  }

  private func write(
    _ payload: HTTP2Frame.FramePayload, _ bytes: Int, _ promise: EventLoopPromise<Void>?,
    _ context: ChannelHandlerContext, isLast: Bool = false
  ) {
    waiting += bytes
    backlog.sent += bytes
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.cascade(to: promise)
    written.futureResult.assumeIsolated().whenComplete { [self] _ in
      waiting -= bytes
      if isLast { responded() }
    }
    context.write(wrapOutboundOut(payload), promise: written)
  }

  /// If the response is complete before the request's body, the rest of the body is unwanted, unless little is missing.
  private func responded() {
    guard let context, isReceiving, missing.map({ $0 > limits.unwantedBody }) ?? true else { return }
    context.writeAndFlush(wrapOutboundOut(.rstStream(.noError)), promise: nil)
  }

  // MARK: The timer

  private var tick: TimeAmount {
    .init(seconds: min(limits.bodyGrace, limits.uploadSeconds, limits.idleSeconds))
  }

  private func arm(_ context: ChannelHandlerContext, at deadline: NIODeadline) {
    // Throws only while the event loop shuts down, which also closes the connection.
    timer = try? context.eventLoop.assumeIsolated().scheduleCallback(at: deadline, handler: self)
  }

  func handleScheduledCallback(eventLoop: some EventLoop) {
    guard let context, context.channel.isActive else { return }
    let now = NIODeadline.now()
    upload.settle(at: now)
    backlog.settle(left: waiting, at: now)
    let due = nextDeadline(after: now)
    if due > now { arm(context, at: min(due, now + tick)) } else { context.close(promise: nil) }
  }

  private func nextDeadline(after now: NIODeadline) -> NIODeadline {
    var due = isReceiving ? bodyDeadline : .distantFuture
    if upload.isRunning { due = min(due, now + .init(seconds: limits.bodyGrace - upload.seconds)) }
    if waiting > 0 { due = min(due, now + .init(seconds: limits.idleSeconds - backlog.seconds)) }
    return due
  }
}
