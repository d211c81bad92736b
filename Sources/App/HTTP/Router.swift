import Hummingbird
import Logging

extension Router where Context == App.Context {
  /// The router with every route of the service.
  ///
  /// - Parameter streams: the caller must run them.
  static func build(_ dependencies: Dependencies, streams: NotificationStreams? = nil) -> Router<Context> {
    let streams = streams ?? NotificationStreams(dependencies)
    // The routes are known only after they are added, but middleware must be added first. So the routes are built
    // twice.
    let none = RequestMetrics([], in: dependencies.metrics)
    let unnamed = RouteComments([])
    let routes = buildRoutes(
      dependencies, streams, allowed: AllowedMethods([]), requests: none, comments: unnamed
    ).routes.map { (path: $0.path.description, method: $0.method) }
    return buildRoutes(
      dependencies, streams, allowed: AllowedMethods(routes.map { (path: $0.path, method: $0.method.rawValue) }),
      requests: RequestMetrics(routes, in: dependencies.metrics), comments: RouteComments(routes))
  }

  private static func buildRoutes(
    _ dependencies: Dependencies, _ streams: NotificationStreams, allowed: AllowedMethods, requests: RequestMetrics,
    comments: RouteComments
  ) -> Router<Context> {
    let router = Router(context: Context.self, options: .autoGenerateHeadEndpoints)
    router.add(
      middleware:
        Envelope(
          log: RequestLog(all: dependencies.logsAllRequests, addresses: dependencies.logsAddresses),
          allowedMethods: allowed, trustedProxies: dependencies.trustedProxies, publicURL: dependencies.publicURL,
          requests: requests, comments: comments, cors: dependencies.cors))
    HealthRoutes(dependencies).add(to: router)
    DocsRoutes(dependencies).add(to: router)
    AppLinkRoutes(dependencies: dependencies).add(to: router)
    SharePageRoutes(dependencies: dependencies).add(to: router)
    VisitorPageRoutes(dependencies: dependencies).add(to: router)

    let api = router.group("api/v1")
    let open = Routes(api, dependencies)
    var onlySignedIn = SignedIn(accessTokens: dependencies.accessTokens, endedSessions: dependencies.endedSessions)
    let signedIn = Routes(api.group().add(middleware: onlySignedIn), dependencies)
    // The router tries routes in this order, so the ones that phones request most come first.
    var validating = onlySignedIn
    validating.largeBodies = LargeBodies()
    CacheRoutes(dependencies).add(to: Routes(api.group().add(middleware: validating), dependencies))
    EventRoutes(dependencies: dependencies).add(to: signedIn)
    HostRoutes(dependencies: dependencies).add(to: signedIn)
    let sessions = SessionRoutes(dependencies: dependencies)
    let providers = ProviderRoutes(dependencies: dependencies)
    sessions.add(to: open)
    providers.add(to: open)
    sessions.addSignedIn(to: signedIn)
    PasswordRoutes(dependencies: dependencies).add(to: signedIn, open: open)
    CodeRoutes(dependencies: dependencies).add(to: open)
    providers.addLinks(to: signedIn)
    UserRoutes(database: dependencies.database).add(to: signedIn)
    AccountRoutes(dependencies: dependencies).add(to: signedIn)
    FriendRoutes(dependencies: dependencies).add(to: signedIn)
    BlockRoutes(dependencies: dependencies).add(to: signedIn)
    ReportRoutes(dependencies: dependencies).add(to: signedIn)
    InvitationRoutes(dependencies: dependencies).add(to: signedIn)
    LinkRoutes(dependencies: dependencies).add(to: signedIn)
    InboxRoutes(dependencies: dependencies).add(to: signedIn)
    DeviceRoutes(dependencies: dependencies).add(to: signedIn)
    StreamRoutes(streams).add(to: signedIn)
    CalendarRoutes(dependencies: dependencies).add(to: signedIn, root: router)
    onlySignedIn.uploads = Uploads()
    PictureRoutes(dependencies: dependencies).add(
      to: Routes(api.group().add(middleware: onlySignedIn), dependencies), root: router)
    return router
  }
}
