import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// An HTTP/1 connection that limits what a client may send, and how slowly.
struct LimitedHTTP1Channel: ServerChildChannel {
  private let responder: HTTPConnection.Responder
  private let limits: ConnectionLimits
  let executor: (any TaskExecutor)?

  init(responder: @escaping HTTPConnection.Responder, limits: ConnectionLimits, executor: (any TaskExecutor)?) {
    self.responder = responder
    self.limits = limits
    self.executor = executor
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTPConnection> {
    channel.eventLoop.makeCompletedFuture {
      let pipeline = channel.pipeline.syncOperations
      // `HTTPConnectionHandler` handles pipelined requests and errors. `HTTPFields` validates the headers.
      try pipeline.configureHTTPServerPipeline(
        withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
        withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoderLimits)
      try pipeline.addHandlers([
        RequestHeads(), ConnectionDeadlines(limits: limits), HTTP1ToHTTPServerCodec(secure: false),
      ])
      Self.keepUnreadBytesVisible(on: channel)
      return try HTTPConnection(wrapping: channel)
    }
  }

  private var decoderLimits: NIOHTTPDecoderLimitConfiguration {
    var decoder = NIOHTTPDecoderLimitConfiguration()
    decoder.maxHeaderFieldSize = limits.headBytes
    decoder.maxHeaderListSize = limits.headBytes
    decoder.maxHeaderFieldCount = 100
    return decoder
  }

  /// Bytes that a slow client has not read must wait in the channel's buffer, where its speed is visible, and not in
  /// megabytes of kernel buffers.
  static func keepUnreadBytesVisible(on channel: any Channel) {
    // Deadlines also hold without it, but later.
    try? channel.syncOptions?.setOption(.tcpOption(.notSentLowWaterMark), value: 16 << 10)
  }

  func handle(value: HTTPConnection, logger: Logger) async {
    await withTaskExecutorPreference(executor) { await value.serve(responder, logger: logger) }
  }
}
