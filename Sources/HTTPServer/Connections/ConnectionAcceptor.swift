import Foundation
import Logging
import NIOCore

/// The first handler in a listener's pipeline. It closes connections that the gate refuses, before anything is set up
/// for them, and it pauses if the system has no more file descriptors. Without it, the first failure to accept would
/// end the listener. Without the pause, the listener would retry in a busy loop.
final class ConnectionAcceptor: ChannelDuplexHandler {
  typealias InboundIn = any Channel
  typealias InboundOut = any Channel
  typealias OutboundIn = Never
  typealias OutboundOut = Never

  private static let pause = TimeAmount.milliseconds(100)

  private let gate: ConnectionGate
  private let logger: Logger
  private var isFailing = false
  private var isPaused = false

  init(gate: ConnectionGate, logger: Logger) {
    self.gate = gate
    self.logger = logger
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if isFailing {
      isFailing = false
      logger.notice("connections are accepted again")
    }
    let connection = unwrapInboundIn(data)
    let address = connection.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
    guard gate.enter(address) == nil else {
      connection.close(promise: nil)
      return
    }
    connection.closeFuture.whenComplete { [gate] _ in gate.leave(address) }
    context.fireChannelRead(data)
  }

  func read(context: ChannelHandlerContext) {
    if !isPaused { context.read() }
  }

  /// Usually the process or the machine has reached its limit of open files. The listener itself is intact, or the
  /// channel closes it after this call.
  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A client that disconnected before it was accepted is no reason to pause.
    if (error as? IOError)?.errnoCode == ECONNABORTED { return }
    gate.failed()
    if !isFailing { logger.error("connections cannot be accepted", metadata: ["error": "\(error)"]) }
    isFailing = true
    guard !isPaused else { return }
    isPaused = true
    // Throws if the channel is closed, and then there is nothing to pause.
    try? context.channel.syncOptions?.setOption(.autoRead, value: false)
    let channel = context.channel
    context.eventLoop.assumeIsolated().scheduleTask(in: Self.pause) { [self] in
      isPaused = false
      try? channel.syncOptions?.setOption(.autoRead, value: true)
    }
  }
}
