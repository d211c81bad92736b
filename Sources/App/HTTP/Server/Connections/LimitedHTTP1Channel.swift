import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// Hummingbird's HTTP/1 channel with `RequestHeads` and `ConnectionDeadlines` after its decoder, for which Hummingbird
/// has no hook.
struct LimitedHTTP1Channel: ServerChildChannel {
  private let http1: HTTP1Channel
  private let limits: ConnectionLimits
  let executor: (any TaskExecutor)?

  init(
    responder: @escaping HTTPChannelHandler.Responder, limits: ConnectionLimits, executor: (any TaskExecutor)?
  ) {
    let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
      maxHeaderFieldSize: limits.headBytes, maxHeaderListSize: limits.headBytes, maxHeaderFieldCount: 100)
    http1 = HTTP1Channel(responder: responder, configuration: .init(httpDecoderConfiguration: decoder))
    self.limits = limits
    self.executor = executor
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
    http1.setup(channel: channel, logger: logger).flatMapThrowing { value in
      let pipeline = channel.pipeline.syncOperations
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
      try pipeline.addHandlers([RequestHeads(), ConnectionDeadlines(limits: limits)], position: .after(decoder))
      Self.keepUnreadBytesVisible(on: channel)
      return value
    }
  }

  /// Bytes that a slow client has not read must wait in the channel's buffer, where its speed is visible, and not in
  /// megabytes of kernel buffers.
  static func keepUnreadBytesVisible(on channel: any Channel) {
    // Deadlines also hold without it, but later.
    try? channel.syncOptions?.setOption(.tcpOption(.notSentLowWaterMark), value: 16 << 10)
  }

  func handle(value: HTTP1Channel.Value, logger: Logger) async {
    await withTaskExecutorPreference(executor) { await http1.handle(value: value, logger: logger) }
  }
}
