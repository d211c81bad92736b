import Logging
import NIOCore
import NIOHTTP2
import NIOHTTPTypesHTTP2
import NIOSSL

/// A connection with TLS. The client chooses between HTTP/2 and HTTP/1.1 during the handshake.
///
/// Each HTTP/2 request is a stream with a pipeline of its own, whose last part is that of an HTTP/1 connection. So both
/// versions are the same for everything that handles requests.
struct SecureChannel: Sendable {
  typealias Requests = NIOHTTP2Handler.AsyncStreamMultiplexer<HTTPConnection>

  struct Connection: Sendable {
    fileprivate let negotiated: EventLoopFuture<NIONegotiatedHTTPVersion<HTTPConnection, Requests>>
    fileprivate let channel: any Channel
  }

  let plain: PlainChannel
  let certificate: ServerCertificate

  private var settings: ConnectionSettings { plain.settings }
  private var limits: ConnectionLimits { settings.limits }

  @Sendable func setUp(_ channel: any Channel) -> EventLoopFuture<Connection> {
    channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandlers([
        NIOSSLServerHandler(context: certificate.context), HandshakeDeadline(seconds: limits.headSeconds),
      ])
    }.flatMap {
      channel.configureHTTP2AsyncSecureUpgrade(
        http1ConnectionInitializer: { plain.setUp($0) }, http2ConnectionInitializer: { setUpHTTP2($0) })
    }.map { Connection(negotiated: $0, channel: channel) }
  }

  private func setUpHTTP2(_ channel: any Channel) -> EventLoopFuture<Requests> {
    channel.eventLoop.makeCompletedFuture {
      let deadlines = HTTP2Deadlines(limits: limits)
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(deadlines)
      // A stream runs on the event loop of its connection.
      let connection = NIOLoopBound(deadlines, eventLoop: channel.eventLoop)
      let requests: Requests = try pipeline.configureAsyncHTTP2Pipeline(
        mode: .server, connectionManagerConfiguration: manager, http2HandlerConfiguration: http2
      ) { stream in
        connection.value.opened()
        stream.closeFuture.whenComplete { _ in connection.value.closed() }
        return stream.eventLoop.makeCompletedFuture { try setUp(stream: stream) }
      }
      try pipeline.addHandler(HTTP2Errors(closing: deadlines))
      channel.keepUnreadBytesVisible()
      return requests
    }
  }

  /// Announces the end of a connection before it closes, so that clients send further requests on another one.
  private var manager: NIOHTTP2ServerConnectionManagementHandler.Configuration {
    .init(maxIdleTime: TimeAmount(seconds: limits.idleSeconds), maxAge: nil, maxGraceTime: nil, keepalive: nil)
  }

  private var http2: NIOHTTP2Handler.Configuration {
    var http2 = NIOHTTP2Handler.Configuration()
    http2.connection.initialSettings = [
      HTTP2Setting(parameter: .maxConcurrentStreams, value: limits.requestsPerConnection),
      HTTP2Setting(parameter: .maxHeaderListSize, value: limits.headBytes),
    ]
    return http2
  }

  private func setUp(stream: any Channel) throws -> HTTPConnection {
    try stream.pipeline.syncOperations.addHandlers([
      StreamHeads(refuse: settings.refuse), StreamDeadlines(limits: limits), HTTP2FramePayloadToHTTPServerCodec(),
    ])
    return try HTTPConnection(wrapping: stream, isStream: true, refuse: settings.refuse)
  }

  @Sendable func handle(_ connection: Connection) async {
    // Fails if the handshake does.
    switch try? await connection.negotiated.get() {
    case .http1_1(let connection)?: await plain.handle(connection)
    case .http2(let requests)?: await handle(requests, on: connection.channel)
    case nil: break
    }
  }

  private func handle(_ requests: Requests, on channel: any Channel) async {
    let handling = Task {
      await withDiscardingTaskGroup { group in
        do {
          for try await request in requests.inbound {
            group.addTask(executorPreference: settings.executor) { await plain.handle(request) }
          }
        } catch {
          settings.logger.trace("an HTTP/2 connection failed", metadata: ["error": "\(error)"])
        }
      }
    }
    await withTaskCancellationHandler {
      await handling.value
    } onCancel: {
      // Close first. A stream that arrives after the loop has ended would end the process.
      channel.close(promise: nil)
      channel.closeFuture.whenComplete { _ in handling.cancel() }
    }
  }
}

/// Closes an HTTP/2 connection whose client breaks the protocol or its limits. NIO only reports this.
private final class HTTP2Errors: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame

  private let deadlines: HTTP2Deadlines

  init(closing deadlines: HTTP2Deadlines) {
    self.deadlines = deadlines
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // These two concern one request only.
    if error is NIOHTTP2Errors.NoSuchStream || error is NIOHTTP2Errors.StreamError { return }
    deadlines.close()
  }
}
