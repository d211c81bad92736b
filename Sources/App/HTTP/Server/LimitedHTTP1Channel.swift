import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1

/// Hummingbird's HTTP/1 channel with `ConnectionDeadlines` behind its decoder, where there is no hook for handlers.
struct LimitedHTTP1Channel: ServerChildChannel {
  private let http1: HTTP1Channel
  private let limits: ConnectionLimits

  init(responder: @escaping HTTPChannelHandler.Responder, limits: ConnectionLimits) {
    let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
      maxHeaderFieldSize: limits.headBytes, maxHeaderListSize: limits.headBytes, maxHeaderFieldCount: 100)
    http1 = HTTP1Channel(responder: responder, configuration: .init(httpDecoderConfiguration: decoder))
    self.limits = limits
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<HTTP1Channel.Value> {
    http1.setup(channel: channel, logger: logger).flatMapThrowing { value in
      let pipeline = channel.pipeline.syncOperations
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
      try pipeline.addHandlers([RequestHeads(), ConnectionDeadlines(limits: limits)], position: .after(decoder))
      // What a slow reader leaves must wait in our buffer, where its pace is seen, not in megabytes of the kernel's.
      try? channel.syncOptions?.setOption(.tcpOption(.notSentLowWaterMark), value: 16 << 10)
      return value
    }
  }

  func handle(value: HTTP1Channel.Value, logger: Logger) async {
    await http1.handle(value: value, logger: logger)
  }
}
