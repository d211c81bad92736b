import Hummingbird

/// The endpoints of the service.
enum Endpoints {
  /// - Parameter streams: the caller must run them.
  static func all(_ dependencies: Dependencies, streams: NotificationStreams) -> [Endpoint] {
    let router = RouteCollector(metrics: dependencies.metrics)
    HealthRoutes(dependencies).add(to: router)
    DocsRoutes(dependencies).add(to: router)
    AppLinkRoutes(dependencies: dependencies).add(to: router)
    SharePageRoutes(dependencies: dependencies).add(to: router)
    ReportPageRoutes(dependencies: dependencies).add(to: router)
    VisitorPageRoutes(dependencies: dependencies).add(to: router)
    AddressPageRoutes(dependencies: dependencies).add(to: router)

    let api = router.group("api/v1")
    let open = Routes(api, dependencies)
    var onlySignedIn = SignedIn(accessTokens: dependencies.accessTokens, endedSessions: dependencies.endedSessions)
    let signedIn = Routes(api.group().add(middleware: onlySignedIn), dependencies)
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
    ProposalRoutes(dependencies: dependencies).add(to: signedIn)
    InboxRoutes(dependencies: dependencies).add(to: signedIn)
    DeviceRoutes(dependencies: dependencies).add(to: signedIn)
    StreamRoutes(streams).add(to: signedIn)
    CalendarRoutes(dependencies: dependencies).add(to: signedIn, root: router)
    onlySignedIn.uploads = Uploads()
    PictureRoutes(dependencies: dependencies).add(
      to: Routes(api.group().add(middleware: onlySignedIn), dependencies), root: router)
    return router.endpoints
  }
}
