import HTTPServer
import Logging
import Postgres
import ServiceLifecycle
import Synchronization

/// Builds the REST service, which runs until graceful shutdown.
///
/// - Parameter onListening: called with the port when the server is listening.
public func makeService(
  _ dependencies: Dependencies, host: String, port: Int, limits: ServiceLimits = ServiceLimits(),
  onListening: @escaping @Sendable (_ port: Int) async -> Void = { _ in }
) -> any Service {
  let streams = NotificationStreams(dependencies, limits: limits)
  let endedSessions = dependencies.endedSessions
  dependencies.metrics.watch("muster_ended_sessions", "Ended sessions whose access tokens may still be valid.") {
    Double(endedSessions.count)
  }
  dependencies.metrics.watch("muster_ended_sessions_age_seconds", "Seconds since the ended sessions were read.") {
    endedSessions.age / .seconds(1)
  }
  dependencies.metrics.watch("muster_streams", "Open notification streams.") { Double(streams.count) }
  let (envelope, logger) = (Envelope(dependencies, streams: streams), dependencies.logger)
  let server = Server(
    host: host, port: port, limits: limits.connections, certificate: dependencies.certificate,
    gate: ConnectionGate(dependencies), executor: dependencies.database.executor, refusing: Refusal.problem,
    logger: logger
  ) { port in
    dependencies.publicURL.listens(on: host, port: port, isSecure: dependencies.certificate != nil)
    await onListening(port)
  } responder: { request, peer in
    try await envelope.respond(to: request, context: Context(peer: peer, logger: logger))
  }
  let draining = Draining(
    readiness: dependencies.readiness, seconds: dependencies.drainSeconds, logger: dependencies.logger)
  return RESTService(
    server: server, draining: draining, endedSessions: dependencies.endedSessions,
    schemaWatch: dependencies.schemaWatch,
    identityProviders: dependencies.identityProviders, streams: streams, certificate: dependencies.certificate,
    certificateSeconds: limits.certificateSeconds)
}

/// The server and the services that must run as long as it does.
struct RESTService: Service {
  let server: Server
  let draining: Draining
  let endedSessions: EndedSessions
  let schemaWatch: SchemaWatch
  let identityProviders: IdentityProviders
  let streams: NotificationStreams
  let certificate: ServerCertificate?
  let certificateSeconds: Double

  func run() async throws {
    // The first request needs them. If the database is unavailable, requests get 503.
    await endedSessions.prepare()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await endedSessions.run() }
      group.addTask { await schemaWatch.run() }
      group.addTask { try await identityProviders.run() }
      group.addTask { await streams.run() }
      group.addTask { await certificate?.run(every: certificateSeconds, logger: draining.logger) }
      defer { group.cancelAll() }
      // The service group's own lines repeat ours.
      var quiet = draining.logger
      quiet.logLevel = .critical
      try await ServiceGroup(services: [server, draining], logger: quiet).run()
    }
  }
}

/// Keeps the listener open for a while after the process begins to stop, so that load balancers notice that it is
/// unready. A service group stops its services from the last to the first, and this one is the last.
struct Draining: Service {
  let readiness: Readiness
  let seconds: Int
  let logger: Logger

  func run() async throws {
    // Throws if the service has failed, and then there is nothing to drain.
    do { try await gracefulShutdown() } catch { return }
    readiness.stop()
    logger.notice("stopping", metadata: ["drain_seconds": .stringConvertible(seconds)])
    if seconds > 0 { try? await Task.sleep(for: .seconds(seconds)) }
  }
}

/// Whether load balancers may send requests to this process.
final class Readiness: Sendable {
  private let stopping = Atomic(false)
  private let unchecked = Atomic(false)

  /// Whether it is not known yet if the process fits the database: see ``Dependencies/holdRequests()``.
  var isUnchecked: Bool {
    get { unchecked.load(ordering: .relaxed) }
    set { unchecked.store(newValue, ordering: .relaxed) }
  }

  var isStopping: Bool { stopping.load(ordering: .relaxed) }

  func stop() { stopping.store(true, ordering: .relaxed) }
}

extension Dependencies {
  /// Lets all requests but health checks fail with 503 until ``admitRequests()``: a process with the wrong keys would
  /// log its callers out.
  public func holdRequests() { readiness.isUnchecked = true }

  public func admitRequests() { readiness.isUnchecked = false }
}

/// How much time, how many bytes and how many streams clients may use.
public struct ServiceLimits: Sendable {
  public var connections = ConnectionLimits()
  /// Seconds between two checks whether the files of the certificate have changed.
  public var certificateSeconds = 10.0
  /// Open notification streams per user, and of all users together.
  public var streamsPerUser = 5
  public var streams = 10_000
  /// Seconds after which an idle stream sends a heartbeat.
  public var streamHeartbeat = 15.0
  /// Seconds between two checks of the inboxes of open streams while the database announces new items. Without the
  /// announcements, a process checks more often.
  public var streamCheck = 1.0

  public init() {}
}
