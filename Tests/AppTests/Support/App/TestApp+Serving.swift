import HTTPServer
import Logging
import ServiceLifecycle
import Testing

@testable import App

/// Runs a service while `body` runs, then stops it gracefully.
///
/// - Parameters:
///   - service: creates the service. The service reports its port when it listens.
///   - body: receives that port.
func serving(
  logger: Logger,
  service: (_ onListening: @escaping @Sendable (_ port: Int) async -> Void) throws -> any Service,
  _ body: @escaping @Sendable (_ port: Int) async throws -> Void
) async throws {
  let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
  let made: any Service = try service { port in _ = continuation.yield(port) }
  let group = ServiceGroup(services: [made], logger: logger)
  try await withThrowingTaskGroup(of: Void.self) { tasks in
    tasks.addTask {
      try await group.run()
      continuation.finish()
    }
    var iterator = ports.makeAsyncIterator()
    let port = try #require(await iterator.next())
    do {
      try await body(port)
    } catch {
      await group.triggerGracefulShutdown()
      throw error
    }
    await group.triggerGracefulShutdown()
    try await tasks.waitForAll()
  }
}

/// Runs a server of its own while `body` runs.
///
/// - Parameter certificate: nil for plain HTTP/1.
func serving(
  certificate: ServerCertificate? = nil, _ respond: @escaping Server.Responder,
  _ body: @escaping @Sendable (_ port: Int) async throws -> Void
) async throws {
  try await serving(
    logger: .quiet,
    service: {
      Server(
        host: "127.0.0.1", port: 0, certificate: certificate, gate: ConnectionGate(limit: 10_000), logger: .quiet,
        onListening: $0, responder: respond)
    }, body)
}

extension TestApp {
  /// The routes of the service, such as `GET /api/v1/users/me`. HEAD is not among them.
  var routes: Set<String> {
    let endpoints = Endpoint.all(dependencies, streams: NotificationStreams(dependencies))
    return Set(endpoints.filter { $0.method != .head }.map { "\($0.method.rawValue) \($0.path)" })
  }
}
