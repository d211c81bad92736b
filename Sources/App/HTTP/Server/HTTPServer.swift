import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle

/// The HTTP server as a service: `run()` listens until graceful shutdown, then finishes the requests in progress.
///
/// On shutdown, idle connections close immediately, others after their response, and stuck ones after
/// `shutdownSeconds`. The service group cancels a handler that never returns (`maximumGracefulShutdownDuration`).
/// `onServerRunning` gets the bound port, which the system chooses for `port: 0`. Requests wait until it returns.
///
/// - Parameters:
///   - certificate: nil for plain HTTP/1.
///   - gate: limits the open connections.
///   - executor: runs the tasks of connections; nil for the global pool.
func makeServer<Responder: HTTPResponder>(
  responder: Responder, host: String, port: Int, limits: ConnectionLimits = .init(),
  certificate: ServerCertificate? = nil, gate: ConnectionGate, executor: (any TaskExecutor)? = nil, logger: Logger,
  onServerRunning: @escaping @Sendable (_ port: Int) async -> Void = { _ in }
) -> some Service where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
  HTTPServer(
    responder: responder, host: host, port: port, limits: limits, certificate: certificate, gate: gate,
    executor: executor, logger: logger, onServerRunning: onServerRunning)
}

/// Replaces Hummingbird's `Application`, which makes a logger for every request, even if the request logs nothing.
private struct HTTPServer<Responder: HTTPResponder>: Service
where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
  let responder: Responder
  let host: String
  let port: Int
  let limits: ConnectionLimits
  let certificate: ServerCertificate?
  let gate: ConnectionGate
  let executor: (any TaskExecutor)?
  let logger: Logger
  let onServerRunning: @Sendable (_ port: Int) async -> Void
  private let date = DateHeader()

  func run() async throws {
    // Hummingbird's own lines at startup repeat ours.
    var quiet = logger
    quiet.logLevel = max(quiet.logLevel, .notice)
    let server = channel.server(
      configuration: ServerConfiguration(address: .hostname(host, port: port), backlog: 1024),
      onServerRunning: { [port, gate, logger, onServerRunning] listener in
        // Hummingbird has no hook for the listener's handlers before it is bound, so a connection that arrives before
        // this call is not counted. It fails only if the listener is closed, which ends `run()`.
        try? await listener.eventLoop.submit {
          let acceptor = ConnectionAcceptor(gate: gate, logger: logger)
          try listener.pipeline.syncOperations.addHandler(acceptor, position: .first)
        }.get()
        await onServerRunning(listener.localAddress?.port ?? port)
      },
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quiet)
    do {
      try await server.run()
      // The server also ends without an error if it can no longer accept connections.
      guard Task.isShuttingDownGracefully || Task.isCancelled else {
        throw ListenError(description: "the server stopped listening on port \(port)")
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

  private var channel: any ServerChildChannel {
    guard let certificate else { return LimitedHTTP1Channel(responder: respond, limits: limits, executor: executor) }
    return SecureChannel(responder: respond, certificate: certificate, limits: limits, executor: executor)
  }

  @Sendable private func respond(to request: Request, on channel: any Channel) async throws -> Response {
    let context = Responder.Context(source: ApplicationRequestContextSource(channel: channel, logger: logger))
    var response = try await responder.respond(to: request, context: context)
    response.headers.append(HTTPField(name: .date, value: date.text))
    return response
  }
}

extension NIOBSDSocket.Option {
  #if canImport(Darwin)
    static let notSentLowWaterMark = Self(rawValue: 0x201)
  #else
    static let notSentLowWaterMark = Self(rawValue: 25)
  #endif
}
