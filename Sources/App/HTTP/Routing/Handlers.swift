import HTTPServer

/// The handler of each operation. The order of the lines carries no meaning: the document says what applies to a route
/// before its handler is called.
struct Handlers {
  private let account: AccountRoutes
  private let addressPages: AddressPageRoutes
  private let appLinks: AppLinkRoutes
  private let blocks: BlockRoutes
  private let cache: CacheRoutes
  private let calendars: CalendarRoutes
  private let codes: CodeRoutes
  private let devices: DeviceRoutes
  private let docs: DocsRoutes
  private let events: EventRoutes
  private let friends: FriendRoutes
  private let health: HealthRoutes
  private let hosts: HostRoutes
  private let inbox: InboxRoutes
  private let invitations: InvitationRoutes
  private let links: LinkRoutes
  private let passwords: PasswordRoutes
  private let pictures: PictureRoutes
  private let proposals: ProposalRoutes
  private let providers: ProviderRoutes
  private let reportPages: ReportPageRoutes
  private let reports: ReportRoutes
  private let sessions: SessionRoutes
  private let sharePages: SharePageRoutes
  private let stream: StreamRoutes
  private let users: UserRoutes
  private let visitorPages: VisitorPageRoutes

  init(_ dependencies: Dependencies, streams: NotificationStreams) {
    account = AccountRoutes(dependencies: dependencies)
    addressPages = AddressPageRoutes(dependencies: dependencies)
    appLinks = AppLinkRoutes(dependencies: dependencies)
    blocks = BlockRoutes(dependencies: dependencies)
    cache = CacheRoutes(dependencies)
    calendars = CalendarRoutes(dependencies: dependencies)
    codes = CodeRoutes(dependencies: dependencies)
    devices = DeviceRoutes(dependencies: dependencies)
    docs = DocsRoutes(dependencies)
    events = EventRoutes(dependencies: dependencies)
    friends = FriendRoutes(dependencies: dependencies)
    health = HealthRoutes(dependencies)
    hosts = HostRoutes(dependencies: dependencies)
    inbox = InboxRoutes(dependencies: dependencies)
    invitations = InvitationRoutes(dependencies: dependencies)
    links = LinkRoutes(dependencies: dependencies)
    passwords = PasswordRoutes(dependencies: dependencies)
    pictures = PictureRoutes(dependencies: dependencies)
    proposals = ProposalRoutes(dependencies: dependencies)
    providers = ProviderRoutes(dependencies: dependencies)
    reportPages = ReportPageRoutes(dependencies: dependencies)
    reports = ReportRoutes(dependencies: dependencies)
    sessions = SessionRoutes(dependencies: dependencies)
    sharePages = SharePageRoutes(dependencies: dependencies)
    stream = StreamRoutes(streams)
    users = UserRoutes(database: dependencies.database)
    visitorPages = VisitorPageRoutes(dependencies: dependencies)
  }

  func handler(of operation: Operation) -> Handler {
    switch operation {
    case .acceptFriendRequest: friends.accept
    case .acceptProposal: proposals.accept
    case .actOnVisitorPage: visitorPages.act
    case .addHost: hosts.offerHost
    case .answerInvitation: invitations.answer
    case .answerOnSharePage: sharePages.answer
    case .approveGuest: invitations.approve
    case .block: blocks.block
    case .cancelEvent: events.cancel
    case .cancelFriendRequest: friends.cancel
    case .changePassword: passwords.changePassword
    case .confirmCode: codes.confirm
    case .confirmPasswordReset: passwords.confirmReset
    case .createEvent: events.create
    case .createLink: links.create
    case .declineFriendRequest: friends.decline
    case .declineProposal: proposals.decline
    case .deleteMe: account.delete
    case .duplicateEvent: hosts.duplicate
    case .editEvent: events.edit
    case .editLink: links.edit
    case .editMe: account.edit
    case .endFriendship: friends.unfriend
    case .endSession: sessions.end
    case .exportMe: account.export
    case .getAndroidAppLinks: appLinks.android
    case .getAppleAppLinks: appLinks.apple
    case .getCalendarFeed: calendars.feed
    case .getCalendarLink: calendars.show
    case .getDocument: health.openAPI
    case .getDocumentAsJson: health.openAPIJSON
    case .getEvent: events.get
    case .getEventCalendar: events.calendar
    case .getFriendRequest: friends.request
    case .getLink: links.get
    case .getLiveness: health.live
    case .getMe: users.me
    case .getNotificationPreferences: inbox.preferences
    case .getOptOutPage: visitorPages.showOptingOut
    case .getPicture: pictures.show
    case .getReadiness: health.ready
    case .getReference: docs.show
    case .getReportPage: reportPages.show
    case .getSharePage: sharePages.show
    case .getUndoingPage: addressPages.showUndoing
    case .getUnsubscribePage: visitorPages.showUnsubscribing
    case .getUser: users.profile
    case .getVerifyingPage: addressPages.showVerifying
    case .getVisitorCalendar: visitorPages.calendar
    case .getVisitorPage: visitorPages.show
    case .inviteToEvent: invitations.invite
    case .joinByLink: links.join
    case .linkApple: { try await providers.link(.apple, $0, $1) }
    case .linkGoogle: { try await providers.link(.google, $0, $1) }
    case .listBlocks: blocks.blocks
    case .listDevices: devices.list
    case .listEvents: events.list
    case .listFriendRequests: friends.requests
    case .listFriends: friends.friends
    case .listGuests: invitations.guests
    case .listHostOffers: hosts.offers
    case .listInvitations: invitations.list
    case .listLinks: links.list
    case .listNotifications: inbox.list
    case .listProposals: proposals.list
    case .listRecommendedUsers: users.recommended
    case .listSessions: sessions.list
    case .logOut: sessions.logout
    case .login: sessions.login
    case .makeCalendarLink: calendars.make
    case .markNotificationsRead: inbox.markRead
    case .notifyOfAppleAccount: providers.notify
    case .optOutOfMails: visitorPages.optOut
    case .putPicture: pictures.put
    case .refresh: sessions.refresh
    case .register: sessions.register
    case .registerDevice: devices.register
    case .remindGuests: hosts.remind
    case .removeDevice: devices.remove
    case .removeHost: hosts.removeHost
    case .removePicture: pictures.remove
    case .report: reports.report
    case .reportOnSharePage: reportPages.report
    case .requestCode: codes.mail
    case .requestPasswordReset: passwords.requestReset
    case .revokeCalendarLink: calendars.revoke
    case .revokeLink: links.revoke
    case .searchUsers: users.search
    case .sendFriendRequest: friends.send
    case .setAnswer: hosts.setAnswer
    case .setNotificationPreferences: inbox.choose
    case .signInWithApple: { try await providers.signIn(.apple, $0, $1) }
    case .signInWithGoogle: { try await providers.signIn(.google, $0, $1) }
    case .streamNotifications: stream.stream
    case .unblock: blocks.unblock
    case .undoEmailChange: passwords.undoEmailChange
    case .undoOnPage: addressPages.undo
    case .unlinkApple: { try await providers.unlink(.apple, $0, $1) }
    case .unlinkGoogle: { try await providers.unlink(.google, $0, $1) }
    case .unsubscribeVisitor: visitorPages.unsubscribe
    case .validateCache: cache.validate
    case .verifyEmail: passwords.verifyEmail
    case .verifyOnPage: addressPages.verify
    case .withdrawInvitation: invitations.withdraw
    }
  }
}
