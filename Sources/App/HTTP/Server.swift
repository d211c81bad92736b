import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle
import Synchronization

/// What a client may take, in time and bytes. The defaults are contract 2's.
public struct ConnectionLimits: Sendable {
  /// For a request's line and headers, from the connection's opening or the first byte of a later request.
  public var headSeconds = 10.0
  /// For a request's line and headers.
  public var headBytes = 16 << 10
  /// How far a client may fall behind `bytesPerSecond`.
  public var bodyGrace = 10.0
  /// The least speed of a request's body, and of a client taking in responses.
  public var bytesPerSecond = 1024.0
  /// For a whole body, however fast it comes: the largest takes 23 KiB/s.
  public var uploadSeconds = 90.0
  /// For a kept-alive connection between requests.
  public var idleSeconds = 75.0
  /// For requests still running when the server is told to stop.
  public var shutdownSeconds = 8.0
  /// For a client to take in the last response, once our side is closed.
  public var lingerSeconds = 2.0
  /// The largest body of any route: a client that awaits `100 Continue` before a larger one doesn't get it.
  public var largestBody = 2 << 20
  /// What is still read of a body that was refused unread, to keep its connection.
  public var unwantedBody = 64 << 10
  /// Streams of notifications that a user has open, and those of all users.
  public var streamsPerUser = 5
  public var streams = 10_000
  /// After which a stream on which nothing happens gives a sign of life.
  public var streamHeartbeat = 15.0

  public init() {}
}

/// The HTTP server as a service: `run()` listens until graceful shutdown, then finishes what it has begun.
///
/// Idle connections close at once on shutdown, others after their response, stuck ones after `shutdownSeconds`.
/// A handler that never returns is the service group's to cancel (`maximumGracefulShutdownDuration`).
/// `onServerRunning` gets the port bound, which `port: 0` leaves to the system; requests wait until it returns.
///
/// - Parameter gate: decides which connections stay.
func makeServer<Responder: HTTPResponder>(
  responder: Responder, host: String, port: Int, limits: ConnectionLimits = .init(), gate: ConnectionGate,
  logger: Logger,
  onServerRunning: @escaping @Sendable (_ port: Int) async -> Void = { _ in }
) -> some Service where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
  HTTPServer(
    responder: responder, host: host, port: port, limits: limits, gate: gate, logger: logger,
    onServerRunning: onServerRunning)
}

/// In place of Hummingbird's `Application`, which makes a logger for each request, whether or not it says anything.
private struct HTTPServer<Responder: HTTPResponder>: Service
where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
  let responder: Responder
  let host: String
  let port: Int
  let limits: ConnectionLimits
  let gate: ConnectionGate
  let logger: Logger
  let onServerRunning: @Sendable (_ port: Int) async -> Void
  private let date = DateHeader()

  func run() async throws {
    // Its own lines at a start say nothing that ours do not.
    var quiet = logger
    quiet.logLevel = max(quiet.logLevel, .notice)
    let server = try HTTPServerBuilder { [limits] in LimitedHTTP1Channel(responder: $0, limits: limits) }.buildServer(
      configuration: ServerConfiguration(address: .hostname(host, port: port), backlog: 1024),
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet,
      responder: { request, writer, channel in try await answer(request, on: channel, to: writer) },
      onServerRunning: { [port, gate, logger, onServerRunning] listener in
        // There is no hook for handlers of the listener before it is bound: a connection that is faster than this is
        // not counted. It fails only for a listener that is closed, which ends `run()`.
        try? await listener.eventLoop.submit {
          let acceptor = ConnectionAcceptor(gate: gate, logger: logger)
          try listener.pipeline.syncOperations.addHandler(acceptor, position: .first)
        }.get()
        await onServerRunning(listener.localAddress?.port ?? port)
      })
    do {
      try await server.run()
      // It ends without an error, too, when it can accept no more.
      guard Task.isShuttingDownGracefully || Task.isCancelled else {
        throw ListenError(description: "port \(port) is not listened on any more")
      }
    } catch let error as IOError {
      switch error.errnoCode {
      case EADDRINUSE: throw ListenError(description: "port \(port) is in use")
      case EACCES: throw ListenError(description: "port \(port) needs privileges that this process doesn't have")
      case EADDRNOTAVAIL: throw ListenError(description: "\(host) is not an address of this machine")
      default: throw error
      }
    } catch is SocketAddressError.UnknownHost {
      throw ListenError(description: "\(host):\(port) is not an address to listen on")
    }
  }

  private func answer(_ request: Request, on channel: any Channel, to writer: consuming ResponseWriter) async throws {
    let context = Responder.Context(source: ApplicationRequestContextSource(channel: channel, logger: logger))
    var response = try await responder.respond(to: request, context: context)
    response.headers.append(HTTPField(name: .date, value: date.text))
    do {
      try await writer.write(response: response.head, body: response.body)
    } catch is HTTPParserError {
      // The channel would write another response because of it.
      throw ChannelError.inputClosed
    }
  }
}

/// The time of day as RFC 9110 wants it, made anew once a second.
private final class DateHeader: Sendable {
  private let current = Mutex((second: time_t(0), text: ""))

  var text: String {
    var now = time(nil)
    return current.withLock { current in
      if current.second != now {
        var parts = tm()
        gmtime_r(&now, &parts)
        let text = String(unsafeUninitializedCapacity: 32) {
          strftime($0.baseAddress, $0.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        }
        current = (now, text)
      }
      return current.text
    }
  }
}

/// Why the server could not start, in a line for whoever started it.
struct ListenError: Error, CustomStringConvertible {
  let description: String
}

/// Hummingbird's HTTP/1 channel with `ConnectionDeadlines` behind its decoder, where there is no hook for handlers.
private struct LimitedHTTP1Channel: ServerChildChannel {
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

extension NIOBSDSocket.Option {
  #if canImport(Darwin)
    fileprivate static let notSentLowWaterMark = Self(rawValue: 0x201)
  #else
    fileprivate static let notSentLowWaterMark = Self(rawValue: 25)
  #endif
}

/// What the server says before any route could.
struct Refusal {
  let head: HTTPResponseHead
  let body: ByteBuffer

  static var malformed: Self {
    Self(.badRequest, type: "malformed-request", detail: "This is not a valid HTTP/1.1 request.")
  }

  static var headTimeout: Self {
    Self(.requestTimeout, type: "request-timeout", detail: "The request's headers did not arrive in time.")
  }

  static var headersTooLarge: Self {
    Self(
      .requestHeaderFieldsTooLarge, type: "headers-too-large", detail: "The request's line or headers are too large.")
  }

  private init(_ status: HTTPResponseStatus, type: String, detail: String) {
    let requestID = RequestID.fresh()
    var json = JSONWriter()
    json.object {
      $0.member("type", type)
      $0.member("title", status.reasonPhrase)
      $0.member("status", Int(status.code))
      $0.member("detail", detail)
      $0.member("requestId", requestID)
    }
    body = json.buffer
    head = HTTPResponseHead(
      version: .http1_1, status: status,
      headers: [
        "Content-Type": "application/problem+json", "Content-Length": "\(body.readableBytes)", "Connection": "close",
        "X-Request-Id": requestID,
      ])
  }
}
