import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOExtras
import NIOHTTP1
import NIOPosix
import ServiceLifecycle

/// An HTTP server as a service: `run()` listens until graceful shutdown, then finishes the requests in progress.
///
/// On shutdown, idle connections close immediately, others after their response, and stuck ones after
/// ``ConnectionLimits/shutdownSeconds``. A handler that never returns must be cancelled by the service group
/// (`maximumGracefulShutdownDuration`).
public struct Server: Service {
  /// Responds to a request. If it throws, the connection closes.
  public typealias Responder = @Sendable (Request, Peer) async throws -> Response

  private static let backlog: Int32 = 1024

  private let host: String
  private let port: Int
  private let settings: ConnectionSettings
  private let certificate: ServerCertificate?
  private let gate: ConnectionGate
  private let onListening: @Sendable (_ port: Int) async -> Void

  /// - Parameters:
  ///   - port: 0 for one that the system chooses.
  ///   - certificate: nil for plain HTTP/1.
  ///   - gate: limits the open connections.
  ///   - executor: runs the tasks of connections; nil for the global pool.
  ///   - refusing: makes the responses to bytes that are not HTTP.
  ///   - onListening: gets the bound port. Requests wait until it returns.
  public init(
    host: String, port: Int, limits: ConnectionLimits = ConnectionLimits(), certificate: ServerCertificate? = nil,
    gate: ConnectionGate, executor: (any TaskExecutor)? = nil, refusing refuse: @escaping Refusal.Maker = Refusal.empty,
    logger: Logger, onListening: @escaping @Sendable (_ port: Int) async -> Void = { _ in },
    responder respond: @escaping Responder
  ) {
    self.host = host
    self.port = port
    self.certificate = certificate
    self.gate = gate
    self.onListening = onListening
    settings = ConnectionSettings(
      limits: limits, executor: executor, logger: logger, refuse: refuse, respond: respond, date: DateHeader())
  }

  public func run() async throws {
    let plain = PlainChannel(settings: settings)
    do {
      if let certificate {
        let secure = SecureChannel(plain: plain, certificate: certificate)
        try await listen(setUp: secure.setUp, handle: secure.handle)
      } else {
        try await listen(setUp: plain.setUp, handle: plain.handle)
      }
      // The listener also ends without an error if it can no longer accept connections.
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

  /// - Parameters:
  ///   - setUp: adds the handlers of a new connection.
  ///   - handle: handles the requests of a connection, and returns when it is closed.
  private func listen<Connection: Sendable>(
    setUp: @escaping @Sendable (any Channel) -> EventLoopFuture<Connection>,
    handle: @escaping @Sendable (Connection) async -> Void
  ) async throws {
    let group = MultiThreadedEventLoopGroup.singleton
    let quiescing = ServerQuiescingHelper(group: group)
    let (gate, logger) = (gate, settings.logger)
    let listener = try await ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: Self.backlog)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelOption(.allowRemoteHalfClosure, value: true)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(ConnectionAcceptor(gate: gate, logger: logger))
          try pipeline.addHandler(quiescing.makeServerChannelHandler(channel: channel))
        }
      }
      .bind(host: host, port: port, serverBackPressureStrategy: nil, childChannelInitializer: setUp)
    await withGracefulShutdownHandler {
      await onListening(listener.channel.localAddress?.port ?? port)
      await withDiscardingTaskGroup { connections in
        do {
          try await listener.executeThenClose { inbound in
            for try await connection in inbound { connections.addTask { await handle(connection) } }
          }
        } catch {
          logger.error("the listener failed", metadata: ["error": "\(error)"])
        }
      }
    } onGracefulShutdown: {
      quiescing.initiateShutdown(promise: nil)
    }
  }
}

/// The other side of a connection.
public struct Peer: Sendable {
  let channel: any Channel

  /// Nil if the connection is closed.
  public var address: IPAddress? { channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) } }

  /// Calls the closure when the connection is closed, or the stream of HTTP/2.
  public func whenClosed(_ body: @escaping @Sendable () -> Void) {
    channel.closeFuture.whenComplete { _ in body() }
  }
}

/// Equal for all connections of a server.
struct ConnectionSettings: Sendable {
  let limits: ConnectionLimits
  let executor: (any TaskExecutor)?
  let logger: Logger
  let refuse: Refusal.Maker
  let respond: Server.Responder
  let date: DateHeader
}

/// The reason why the server cannot listen, as one line for the operator.
public struct ListenError: Error, CustomStringConvertible {
  public let description: String

  public init(description: String) {
    self.description = description
  }
}
