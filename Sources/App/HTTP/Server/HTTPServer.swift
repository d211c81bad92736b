import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle

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

extension NIOBSDSocket.Option {
  #if canImport(Darwin)
    static let notSentLowWaterMark = Self(rawValue: 0x201)
  #else
    static let notSentLowWaterMark = Self(rawValue: 25)
  #endif
}
