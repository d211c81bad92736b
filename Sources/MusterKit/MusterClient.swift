import Foundation

/// The API of a Muster server, for one user at a time.
///
/// Calls are grouped as the API is: `client.friends.requests.accept(id)`. They throw ``MusterError`` or
/// `CancellationError`. Tokens are refreshed, and requests repeated, as needed. Use one client for each server, and
/// share it.
public final class MusterClient: Sendable {
  public let auth: AuthAPI
  public let me: MeAPI
  public let users: UsersAPI
  public let friends: FriendsAPI
  public let blocks: BlocksAPI
  public let events: EventsAPI
  public let invitations: InvitationsAPI
  public let links: LinksAPI
  public let proposals: ProposalsAPI
  public let notifications: NotificationsAPI
  public let devices: DevicesAPI
  public let reports: ReportsAPI
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
