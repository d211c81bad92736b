import Hummingbird
import Logging
import Postgres
import ServiceLifecycle

/// The table of contents: every route of the service.
///
/// - Parameter streams: are run by whoever runs the routes.
func makeRouter(_ dependencies: Dependencies, streams: NotificationStreams? = nil) -> Router<Context> {
  let streams = streams ?? NotificationStreams(dependencies)
  // The routes are known only once they are added, and the middleware for all must be there before.
  let none = RequestMetrics([], in: dependencies.metrics)
  let routes = buildRoutes(dependencies, streams, allowed: AllowedMethods([]), requests: none).routes.map {
    (path: $0.path.description, method: $0.method)
  }
  return buildRoutes(
    dependencies, streams, allowed: AllowedMethods(routes.map { (path: $0.path, method: $0.method.rawValue) }),
    requests: RequestMetrics(routes, in: dependencies.metrics))
}

private func buildRoutes(
  _ dependencies: Dependencies, _ streams: NotificationStreams, allowed: AllowedMethods, requests: RequestMetrics
) -> Router<Context> {
  let router = Router(context: Context.self, options: .autoGenerateHeadEndpoints)
  router.add(
    middleware:
      Envelope(
        log: RequestLog(all: dependencies.logsAllRequests, addresses: dependencies.logsAddresses),
        allowedMethods: allowed, trustedProxies: dependencies.trustedProxies, publicURL: dependencies.publicURL,
        requests: requests))
  HealthRoutes(dependencies).add(to: router)

  let open = router.group("api/v1")
  var onlySignedIn = SignedIn(accessTokens: dependencies.accessTokens, endedSessions: dependencies.endedSessions)
  let signedIn = open.group().add(middleware: onlySignedIn)
  // The router compares a path with these in turn: what phones ask for most comes first.
  CacheRoutes(dependencies).add(to: signedIn)
  EventRoutes(dependencies).add(to: signedIn)
  let sessions = SessionRoutes(dependencies)
  let providers = ProviderRoutes(dependencies)
  sessions.add(to: open)
  providers.add(to: open)
  sessions.addSignedIn(to: signedIn)
  PasswordRoutes(dependencies).add(to: signedIn, open: open)
  providers.addLinks(to: signedIn)
  UserRoutes(dependencies).add(to: signedIn)
  AccountRoutes(dependencies).add(to: signedIn)
  FriendRoutes(dependencies).add(to: signedIn)
  BlockRoutes(dependencies).add(to: signedIn)
  InvitationRoutes(dependencies).add(to: signedIn)
  InboxRoutes(dependencies).add(to: signedIn)
  DeviceRoutes(dependencies).add(to: signedIn)
  StreamRoutes(streams).add(to: signedIn)
  onlySignedIn.uploads = Uploads()
  PictureRoutes(dependencies).add(to: open.group().add(middleware: onlySignedIn), root: router)
  return router
}

typealias Routes = any RouterMethods<Context>

/// The REST service, to be run until it is asked to stop.
///
/// - Parameter onListening: called with the port once requests are answered.
public func makeService(
  _ dependencies: Dependencies, host: String, port: Int, limits: ConnectionLimits = ConnectionLimits(),
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
  dependencies.metrics.watch("muster_streams", "Streams of notifications that are open.") { Double(streams.count) }
  let server = makeServer(
    responder: makeRouter(dependencies, streams: streams).buildResponder(), host: host, port: port, limits: limits,
    gate: ConnectionGate(dependencies), logger: dependencies.logger
  ) { port in
    dependencies.publicURL.listens(on: host, port: port)
    await onListening(port)
  }
  let draining = Draining(
    readiness: dependencies.readiness, seconds: dependencies.drainSeconds, logger: dependencies.logger)
  return RESTService(
    server: server, draining: draining, endedSessions: dependencies.endedSessions,
    schemaWatch: dependencies.schemaWatch,
    identityProviders: dependencies.identityProviders, streams: streams)
}

/// The server and what must run as long as it answers.
private struct RESTService<Server: Service>: Service {
  let server: Server
  let draining: Draining
  let endedSessions: EndedSessions
  let schemaWatch: SchemaWatch
  let identityProviders: IdentityProviders
  let streams: NotificationStreams

  func run() async throws {
    // The first request needs them. If the database is unavailable, requests say so.
    await endedSessions.prepare()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await endedSessions.run() }
      group.addTask { await schemaWatch.run() }
      group.addTask { try await identityProviders.run() }
      group.addTask { await streams.run() }
      defer { group.cancelAll() }
      // Their own lines say nothing that ours do not.
      var quiet = draining.logger
      quiet.logLevel = .critical
      try await ServiceGroup(services: [server, draining], logger: quiet).run()
    }
  }
}
