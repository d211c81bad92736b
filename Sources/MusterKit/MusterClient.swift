import Foundation

/// The API of a Muster server, for one user at a time.
///
/// Calls are grouped as the API is: `client.friends.requests.accept(id)`. They throw ``MusterError`` or
/// `CancellationError`. Tokens are refreshed, and requests repeated, as needed. Use one client for each server, and
/// share it.
public final class MusterClient: Sendable {
  /// Accounts, logins and sessions.
  public let auth: AuthAPI
  /// The caller's own account.
  public let me: MeAPI
  /// Other users: profiles, search and recommendations.
  public let users: UsersAPI
  /// Friends, and friend requests.
  public let friends: FriendsAPI
  /// The users whom the caller has blocked.
  public let blocks: BlocksAPI
  /// Events that the caller hosts or is invited to.
  public let events: EventsAPI
  /// The caller's invitations.
  public let invitations: InvitationsAPI
  /// Joining events through share links.
  public let links: LinksAPI
  /// Offers to host, and answers of visitors, for the caller to accept or decline.
  public let proposals: ProposalsAPI
  /// The caller's inbox, and its stream.
  public let notifications: NotificationsAPI
  /// The devices that get the caller's notifications.
  public let devices: DevicesAPI
  /// Reports to the operators.
  public let reports: ReportsAPI
  /// Which copies of collections are out of date. ``MusterStore`` uses it for you.
  public let cache: CacheAPI

  private let caller: APICaller

  /// - Parameters:
  ///   - baseURL: where the server is, without `/api/v1`, such as `https://muster.example`.
  ///   - tokens: where the tokens are kept between launches.
  ///   - transport: carries the requests.
  ///   - retries: how often requests are repeated.
  public init(
    baseURL: URL, tokens: any TokenStore = MemoryTokenStore(), transport: any Transport = URLSessionTransport(),
    retries: RetryPolicy = .default
  ) {
    let caller = APICaller(baseURL: baseURL, tokens: tokens, transport: transport, retries: retries)
    self.caller = caller
    auth = AuthAPI(caller: caller)
    me = MeAPI(caller: caller)
    users = UsersAPI(caller: caller)
    friends = FriendsAPI(caller: caller)
    blocks = BlocksAPI(caller: caller)
    events = EventsAPI(caller: caller)
    invitations = InvitationsAPI(caller: caller)
    links = LinksAPI(caller: caller)
    proposals = ProposalsAPI(caller: caller)
    notifications = NotificationsAPI(caller: caller)
    devices = DevicesAPI(caller: caller)
    reports = ReportsAPI(caller: caller)
    cache = CacheAPI(caller: caller)
  }

  /// The id of the user who is logged in; nil if there are no tokens, or if they cannot be read now.
  public var userID: User.ID? { try? caller.credentials.stored()?.user }
}
