import Foundation
import Observation

/// A user's lists, kept on the disk and shown immediately, online and offline.
///
///     List(store.events.items) { Text($0.title) }
///       .task { store.start() }
///       .refreshable { try? await store.refresh() }
///
/// The store validates its copies by deltas, follows the stream while it runs, and sends the user's writes when it can.
/// Several processes may use the same folder, such as an app and its extensions: one of them sends.
@MainActor
@Observable
public final class MusterStore {
  /// The user's own profile.
  public let profile = StoredObject<User>()
  /// Friends, newest first.
  public let friends = StoredList<Friend>()
  /// Requests to the user, newest first.
  public let friendRequests = StoredList<FriendRequest>()
  /// The user's own requests, newest first.
  public let sentFriendRequests = StoredList<FriendRequest>()
  /// Live events by their start.
  public let events = StoredList<Event>()
  /// Invitations to live events, newest first.
  public let invitations = StoredList<Invitation>()
  /// Blocked users, newest first.
  public let blocks = StoredList<Block>()
  /// The inbox, newest first: the first 500, see ``loadMore(of:)``.
  public let notifications = StoredList<InboxItem>()
  /// Which types of notifications the user's devices get.
  public let notificationPreferences = StoredObject<NotificationPreferences>()
  /// Writes that are pending or were refused.
  public let outbox: Outbox
  /// Whether the last request got no response.
  public internal(set) var isOffline = false
  /// Whether the session has ended, or another user has logged in. The copies and the outbox stay, in case the same
  /// user logs in again.
  public internal(set) var isLoggedOut = false
  /// The error of the last attempt to send pending writes or validate lists: a ``MusterError`` or a ``StoreError``. Nil
  /// after a success.
  public internal(set) var lastError: (any Error)?

  @ObservationIgnored let client: MusterClient
  @ObservationIgnored let folder: StoreFolder
  @ObservationIgnored let copies: StoredCopies
  @ObservationIgnored let timing: StoreTiming
  /// The copies, without pending writes.
  @ObservationIgnored var base = Lists()
  @ObservationIgnored var statuses: [CacheCollection: CopyStatus] = [:]
  @ObservationIgnored var invalidations = Invalidations()
  /// When writes were carried out; without a mark, before the launch.
  @ObservationIgnored var sentMarks: [OutboxRecord.ID: Invalidations.Mark] = [:]
  /// How often the service failed to carry out a write.
  @ObservationIgnored var failedAttempts: [OutboxRecord.ID: Int] = [:]
  /// The number of items to keep, for lists that are not kept as a whole.
  @ObservationIgnored var lengths: [CacheCollection: Int] = [.notifications: lengthStep]
  @ObservationIgnored var passes = Passes()
  @ObservationIgnored var life = StoreLife()
  @ObservationIgnored private(set) var isForgotten = false
  @ObservationIgnored private var loading: Task<Void, Never>?

  private static let lengthStep = 500

  /// Opens a user's folder, and begins to read the copies.
  ///
  /// - Parameters:
  ///   - client: of a user who is logged in.
  ///   - folder: where the store keeps its folder `MusterStore`, for example Application Support or the container of an
  ///     app group. If another user's data is there, it is deleted.
  /// - Throws: ``MusterError/loggedOut``, ``MusterError/tokensUnavailable(_:)``, ``StoreError/disk(_:)``, or an error
  ///   of Foundation.
  public convenience init(client: MusterClient, folder: URL) throws {
    try self.init(client: client, folder: folder, timing: StoreTiming())
  }

  init(client: MusterClient, folder: URL, timing: StoreTiming) throws {
    guard let user = try client.cache.caller.credentials.stored()?.user else { throw MusterError.loggedOut }
    let folder = try StoreFolder(in: folder, user: user)
    self.client = client
    self.folder = folder
    self.timing = timing
    copies = StoredCopies(client: client, folder: folder, now: timing.now)
    outbox = Outbox(try OutboxFiles(folder))
    publish()
    loading = Task { [copies, weak self] in
      let stored = await copies.load()
      self?.take(stored)
    }
  }

  deinit { life.cancel() }

  /// Resolves when the lists show the copies on the disk. The store begins to read them when it is made.
  public func load() async { await loading?.value }

  /// Takes a write: the lists show it immediately, it is saved when this returns, and it is sent as soon as possible.
  /// If the service refuses it, the lists no longer show it, and ``Outbox/refusals`` says why.
  ///
  /// - Throws: ``StoreError``, or ``MusterError/loggedOut`` if another user has logged in. The write is then gone.
  @discardableResult
  public func perform(_ write: Write) async throws -> PendingWrite { try await perform(write, replacing: nil) }

  private func perform(_ write: Write, replacing replaced: OutboxRecord.ID?) async throws -> PendingWrite {
    guard !isForgotten else { throw StoreError.forgotten }
    guard client.userID.map({ $0 == folder.user }) != false else { throw MusterError.loggedOut }
    var write = write
    switch write {
    case .editProfile(let edit) where edit.email != nil || edit.reauthentication != nil:
      throw StoreError.needsReauthentication
    case .markAllRead(nil, _):
      // Without a stamp, it would also mark what arrives until it is sent.
      guard let stamp = statuses[.notifications]?.stamp else { throw StoreError.notLoaded }
      let shown = notifications.items.filter { $0.readAt == nil }.map(\.id)
      write = .markAllRead(before: stamp, shown: shown)
    default: break
    }
    do {
      let pending = try await outbox.add(write, at: timing.now(), replacing: replaced) { publish() }
      poke()
      return pending
    } catch {
      publish()
      // Earlier writes may have waited for this one to be saved.
      poke()
      throw error
    }
  }

  /// Performs a write again that was refused, or whose outcome is unknown, and dismisses the refusal, in one step: if the
  /// app ends meanwhile, one of the two is left. It is a new write, with a key of its own: if the first one has happened,
  /// it happens twice. A second call for the same refusal sends nothing more.
  ///
  /// - Throws: as ``perform(_:)``; ``StoreError/dismissed``
  @discardableResult
  public func sendAgain(_ refusal: RefusedWrite) async throws -> PendingWrite {
    if let pending = try outbox.replacement(of: refusal) { return pending }
    return try await perform(refusal.write, replacing: refusal.id)
  }

  /// Keeps 500 more items of a list that has more: see ``StoredList/hasMore``.
  ///
  /// - Throws: as ``refresh()``
  public func loadMore(of collection: CacheCollection) async throws {
    guard let status = statuses[collection], status.hasMore else { return }
    lengths[collection] = (status.count / Self.lengthStep + 1) * Self.lengthStep
    try await catchUp([collection])
  }

  /// Deletes all copies, the outbox and the refusals, and stops. Call it when the user logs out. Then drop this store.
  ///
  /// - Throws: ``StoreError/disk(_:)``, or an error of Foundation
  public func forgetEverything() async throws {
    isForgotten = true
    stop()
    base = Lists()
    statuses = [:]
    outbox.forget()
    publish()
    try await copies.erase()
  }
}
