import NIOCore
import NIOTLS

/// Closes a connection whose TLS handshake takes too long, or is not complete when the server begins to stop.
final class HandshakeDeadline: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private let seconds: Double
  private var timer: Scheduled<Void>?

  init(seconds: Double) {
    self.seconds = seconds
  }

  func handlerAdded(context: ChannelHandlerContext) {
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: .init(seconds: seconds)) {
      context.close(promise: nil)
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is ChannelShouldQuiesceEvent { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
    if case .handshakeCompleted? = event as? TLSUserEvent {
      context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
  }
}
