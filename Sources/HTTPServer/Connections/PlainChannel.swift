import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// An HTTP/1 connection that limits what a client may send, and how slowly.
struct PlainChannel: Sendable {
  let settings: ConnectionSettings

  private var limits: ConnectionLimits { settings.limits }

  @Sendable func setUp(_ channel: any Channel) -> EventLoopFuture<HTTPConnection> {
    channel.eventLoop.makeCompletedFuture {
      let pipeline = channel.pipeline.syncOperations
      // `HTTPConnectionHandler` handles pipelined requests and errors. `HTTPFields` validates the headers.
      try pipeline.configureHTTPServerPipeline(
        withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
        withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoderLimits)
      try pipeline.addHandlers([
        RequestHeads(), ConnectionDeadlines(limits: limits, refuse: settings.refuse),
        HTTP1ToHTTPServerCodec(secure: false),
      ])
      channel.keepUnreadBytesVisible()
      return try HTTPConnection(wrapping: channel, refuse: settings.refuse)
    }
  }

  private var decoderLimits: NIOHTTPDecoderLimitConfiguration {
    var decoder = NIOHTTPDecoderLimitConfiguration()
    decoder.maxHeaderFieldSize = limits.headBytes
    decoder.maxHeaderListSize = limits.headBytes
    decoder.maxHeaderFieldCount = 100
    return decoder
  }

  @Sendable func handle(_ connection: HTTPConnection) async {
    await withTaskExecutorPreference(settings.executor) { await connection.serve(settings) }
  }
}

extension Channel {
  /// Bytes that a slow client has not read must wait in the channel's buffer, where its speed is visible, and not in
  /// megabytes of kernel buffers.
  func keepUnreadBytesVisible() {
    // Deadlines also hold without it, but later.
    try? syncOptions?.setOption(.tcpOption(.notSentLowWaterMark), value: 16 << 10)
  }
}

extension NIOBSDSocket.Option {
  #if canImport(Darwin)
    fileprivate static let notSentLowWaterMark = Self(rawValue: 0x201)
  #else
    fileprivate static let notSentLowWaterMark = Self(rawValue: 25)
  #endif
}
