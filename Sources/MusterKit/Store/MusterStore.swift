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
  /// Events that ended more than a day ago, latest first: at least those of the last year, and at least the latest 100,
  /// but at most 500 and 1 MiB. See ``earlierEvents``.
  public let pastEvents = StoredList<Event>()
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
  public private(set) var isOffline = false
  /// Whether the session has ended, or another user has logged in. The copies and the outbox stay, in case the same
  /// user logs in again.
  public private(set) var isLoggedOut = false
  /// The error of the last attempt to send pending writes or validate lists: a ``MusterError`` or a ``StoreError``. Nil
  /// after a success. ``StoreError/disk(_:)`` after a success whose result could not be written to the disk: the lists
  /// are right, but the next launch shows older ones.
  public private(set) var lastError: (any Error)?

  @ObservationIgnored let client: MusterClient
  @ObservationIgnored let folder: StoreFolder
  @ObservationIgnored private let copies: StoredCopies
  @ObservationIgnored private let timing: StoreTiming
  /// The copies, without pending writes.
  @ObservationIgnored private(set) var base = Lists() { didSet { merged = nil } }
  /// The copies with the pending writes, as they were shown last.
  @ObservationIgnored private var merged: MergedLists?
  /// The same, and what changes of copies they had, by counting these.
  @ObservationIgnored private var lastShown: (merged: MergedLists, changes: [CacheCollection: Int])?
  @ObservationIgnored private var changes: [CacheCollection: Int] = [:]
  @ObservationIgnored let openedCopies: OpenedCopies
  @ObservationIgnored let openedEvents = OpenedEvents()
  @ObservationIgnored private(set) var statuses: [CacheCollection: CopyStatus] = [:]
  @ObservationIgnored private(set) var pastStatus: CopyStatus?
  /// Whether the service knows the list of past events.
  @ObservationIgnored private var pastIsKnown = true
  /// Events whose copies are to be checked, because they have left the list.
  @ObservationIgnored private var leftEvents: Set<Event.ID> = []
  @ObservationIgnored private var invalidations = Invalidations()
  /// When writes were carried out; without a mark, before the launch.
  @ObservationIgnored private var sentMarks: [OutboxRecord.ID: Invalidations.Mark] = [:]
  /// How often the service failed to carry out a write.
  @ObservationIgnored private var failedAttempts: [OutboxRecord.ID: Int] = [:]
  /// The number of items to keep, for lists that are not kept as a whole.
  @ObservationIgnored private var lengths: [CacheCollection: Int] = [.notifications: lengthStep]
  @ObservationIgnored private var passes = Passes()
  @ObservationIgnored private(set) var life = StoreLife()
  @ObservationIgnored private(set) var isForgotten = false
  /// Why copies could not be written to the disk.
  @ObservationIgnored private var copiesError: StoreError?
  @ObservationIgnored private var loading: Task<Void, Never>?
  @ObservationIgnored private var hasLoaded = false
  @ObservationIgnored private let arrived = Arrivals()
  @ObservationIgnored private let silence: Silence

  private static let lengthStep = 500
  /// Of pages that are not kept.
  private static let pageLength = 100

  /// Opens a user's folder, and begins to read the copies.
  ///
  /// If another user's data is there, the copies are deleted, and unsent writes stay: see
  /// ``usersWithUnsentWrites(in:)``.
  ///
  /// - Parameters:
  ///   - client: of a user who is logged in.
  ///   - folder: where the store keeps its folder `MusterStore`, for example Application Support or the container of an
  ///     app group.
  /// - Throws: ``MusterError/loggedOut``, ``MusterError/tokensUnavailable(_:)``, ``StoreError/disk(_:)``
  public convenience init(client: MusterClient, folder: URL) throws {
    try self.init(client: client, folder: folder, timing: StoreTiming())
  }

  init(
    client: MusterClient, folder: URL, timing: StoreTiming,
    writeFile: @escaping StoreFolder.WriteFile = StoreFolder.writeFile
  ) throws {
    guard let user = try client.cache.caller.credentials.stored()?.user else { throw MusterError.loggedOut }
    let folder = try StoreFolder(in: folder, user: user, writeFile: writeFile)
    self.client = client
    self.folder = folder
    self.timing = timing
    let requests = RequestCounter(in: folder)
    copies = StoredCopies(client: client, folder: folder, requests: requests, now: timing.now)
    silence = Silence(patience: timing.requestSilence, limit: timing.silence)
    openedCopies = try OpenedCopies(client: client, folder: folder, requests: requests, now: timing.now)
    outbox = Outbox(try OutboxFiles(folder, numbering: requests))
    publish()
    loading = Task { [copies, weak self] in
      let stored = await copies.load()
      self?.take(stored)
      self?.hasLoaded = true
    }
  }

  deinit { life.cancel() }

  /// Resolves when the lists show the copies on the disk. The store begins to read them when it is made.
  public func load() async { await loading?.value }

  /// Takes a write: the lists show it immediately, and it is saved when this returns. A store that runs, after
  /// ``start()``, then sends it as soon as there is a network. One that does not run sends it with the next
  /// ``refresh()``: an extension that performs a write and ends leaves it to the app. If the service refuses it, the
  /// lists no longer show it, and ``Outbox/refusals`` says why.
  ///
  /// - Throws: ``StoreError``, such as ``StoreError/disk(_:)`` if the disk is full; ``MusterError/loggedOut`` if another
  ///   user has logged in. The write is then gone.
  @discardableResult
  public func perform(_ write: Write) async throws -> PendingWrite { try await perform(write, replacing: nil) }

  private func perform(_ write: Write, replacing replaced: OutboxRecord.ID?) async throws -> PendingWrite {
    guard !isForgotten else { throw StoreError.forgotten }
    guard client.userID.map({ $0 == folder.user }) != false else { throw MusterError.loggedOut }
    // The copies say what the write is based on. Without a wait, writes of one moment keep their order.
    if !hasLoaded { await load() }
    var write = write
    switch write {
    case .editProfile(let edit) where edit.email != nil || edit.reauthentication != nil:
      throw StoreError.needsReauthentication
    case .setPicture(let picture): write = .setPicture(try await outbox.keep(picture))
    case .markAllRead(nil, _):
      // Without a stamp, it would also mark what arrives until it is sent.
      guard let stamp = statuses[.notifications]?.stamp else { throw StoreError.notLoaded }
      let shown = notifications.items.filter { $0.readAt == nil }.map(\.id)
      write = .markAllRead(before: stamp, shown: shown)
    default: break
    }
    let refusal = replaced.flatMap { id in outbox.refusals.first { $0.id == id } }
    // The user has seen the newer state, and wants this instead.
    let seen = refusal?.newerState.flatMap { Basis(of: write, $0) }
    let basis = seen ?? outbox.basis(receivedBasis(of: write), of: write)
    let request = seen == nil ? requestSeen(for: write) : nil
    do {
      let pending = try await outbox.add(
        write, basedOn: basis, seenIn: request, at: timing.now(), replacing: replaced
      ) { publish() }
      poke()
      return pending
    } catch {
      if replaced == nil, let picture = write.picture { await outbox.drop(picture) }
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
  /// - Throws: as ``perform(_:)``; ``StoreError/dismissed``, ``StoreError/damaged``
  @discardableResult
  public func sendAgain(_ refusal: RefusedWrite) async throws -> PendingWrite {
    if let pending = try outbox.replacement(of: refusal) { return pending }
    guard let write = refusal.write else { throw StoreError.damaged }
    return try await perform(write, replacing: refusal.id)
  }

  /// Keeps 500 more items of a list that has more: see ``StoredList/hasMore``.
  ///
  /// - Throws: as ``refresh()``
  public func loadMore(of collection: CacheCollection) async throws {
    guard let status = statuses[collection], status.hasMore else { return }
    lengths[collection] = (status.count / Self.lengthStep + 1) * Self.lengthStep
    try await catchUp([collection])
  }

  /// The events before those of ``pastEvents``, latest first, page by page. They are not on the device.
  public var earlierEvents: Pages<Event> {
    let (place, isKept) = (pastStatus?.nextCursor, pastStatus != nil)
    return Pages { [client, user = folder.user] cursor in
      guard !isKept || cursor ?? place != nil else { return Page(items: []) }
      // Never those of a user who has logged in since.
      return try await Sender.$actingUser.withValue(user) {
        try await client.events.past(limit: Self.pageLength, cursor: cursor ?? place)
      }
    }
  }

  /// Deletes all copies, the outbox and the refusals, and stops. Call it when the user logs out or deletes the account.
  /// Ask first if ``outbox`` has pending writes: they are lost. Then drop this store.
  ///
  /// - Throws: ``StoreError/disk(_:)``
  public func forgetEverything() async throws {
    isForgotten = true
    stop()
    arrived.end()
    base = Lists()
    statuses = [:]
    pastStatus = nil
    openedEvents.forget()
    outbox.forget()
    publish()
    try await copies.erase()
  }
}

/// Users who have used a folder before.
extension MusterStore {
  /// The users whose unsent writes or refusals are in a folder. Another user's login leaves them there: they are sent
  /// when their user logs in again. Ask the new user of a phone whether to delete them.
  ///
  /// - Parameter folder: as for ``init(client:folder:)``.
  /// - Throws: ``StoreError/disk(_:)``
  public nonisolated static func usersWithUnsentWrites(in folder: URL) throws -> [User.ID] {
    try StoreFolder.usersWithUnsentWrites(in: folder)
  }

  /// Deletes everything that a folder has of a user, unsent writes included. If a store of that user is open, call its
  /// ``forgetEverything()`` instead.
  ///
  /// - Throws: ``StoreError/disk(_:)``
  public nonisolated static func forgetEverything(of user: User.ID, in folder: URL) async throws {
    try StoreFolder.erase(user, in: folder)
  }
}

extension MusterStore {
  /// Takes copies that were read from files or from the service.
  private func take(_ result: StoredCopies.Result) {
    guard !isForgotten else { return }
    let stamp = statuses[.events]?.stamp
    for collection in result.changed {
      base.set(collection, from: result.lists)
      changes[collection, default: 0] += 1
    }
    for (collection, status) in result.statuses { statuses[collection] = status }
    for collection in result.changed where result.statuses[collection] == nil { statuses[collection] = nil }
    if let past = result.past {
      if past.hasChanged { base.pastEvents = result.lists.pastEvents }
      pastStatus = past.status
      pastIsKnown = past.isKnown
    }
    // An event that leaves the list may have been archived. So may one that the list has never had, if the list is the
    // same in spite of its new stamp.
    let isOnlyDated = statuses[.events]?.stamp != stamp && !result.changed.contains(.events)
    var signs = result.changed.intersection(Invalidations.pastSigns)
    if !result.leftEvents.isEmpty || isOnlyDated { signs.insert(.events) }
    if let past = pastStatus, signs.contains(where: { (statuses[$0]?.provedBy ?? 0) > past.provedBy }) {
      invalidations.addPast()
    }
    publish()
  }

  /// Records that the user no longer sees an event. If the past events have it, they have changed.
  func noteGone(_ id: Event.ID) {
    guard base.pastEvents?.contains(where: { $0.id == id }) == true else { return }
    invalidations.addPast()
    publish()
    poke()
  }

  /// Shows the copies with the pending writes, in all lists together.
  private func publish() {
    var pending: Set<CacheCollection> = []
    for record in outbox.unsettled { pending.formUnion(record.write.collections) }
    let shown = mergedLists()
    for collection in CacheCollection.allCases {
      let state = ListState(
        statuses[collection], isProved: invalidations.isProved(collection),
        hasPendingWrites: pending.contains(collection))
      collection.facts.show(self, shown, state)
    }
    pastEvents.show(
      base.pastEvents,
      ListState(
        pastStatus, isProved: pastIsKnown && invalidations.isPastProved && invalidations.areSignsProved,
        hasPendingWrites: !pending.isDisjoint(with: Invalidations.pastSigns)))
    showOpenedEvents()
  }

  /// The copies with the pending writes. Only writes that are new are carried out, as long as the copies and the earlier
  /// writes are the same.
  private func mergedLists() -> Lists {
    let writes = outbox.unsettled.map { MergedLists.Step(write: $0.write, time: $0.createdAt) }
    var merged = self.merged.flatMap { writes.starts(with: $0.steps) ? $0 : nil } ?? MergedLists(lists: base)
    let isNew = self.merged == nil
    self.merged = nil
    merged.add(writes.dropFirst(merged.steps.count))
    if isNew, let lastShown {
      let written = writes.reduce(into: Set<CacheCollection>()) { $0.formUnion($1.write.collections) }
      merged.keep(written.filter { changes[$0] == lastShown.changes[$0] }, of: lastShown.merged)
    }
    self.merged = merged
    lastShown = (merged, changes)
    return merged.lists
  }

  /// Records that the copies may be out of date, and shows it.
  private func invalidate(_ collections: some Swift.Collection<CacheCollection>) {
    guard !collections.isEmpty else { return }
    invalidations.add(collections)
    publish()
  }

  /// The same for all lists and the past events.
  private func invalidateEverything() {
    invalidations.addPast()
    invalidate(CacheCollection.allCases)
  }
}

/// Passes of a store: each sends pending writes, and then validates. One runs at a time, and calls that come meanwhile
/// share the next one.
private struct Passes {
  var running: Task<Void, any Error>?
  /// Has not begun.
  var next: Task<Void, any Error>?
  /// The collections that the next pass validates in addition to those that are not proved.
  var wanted: Set<CacheCollection> = []
  /// Whether it validates the past events, even if they are proved.
  var wantsPast = false

  /// A pass was cut off, and another one follows.
  struct Cut: Error {}
}

extension MusterStore {
  /// Sends pending writes, and validates all lists. Resolves when the lists are proved to be what the service had after
  /// this call.
  ///
  /// Ends within 15 seconds if nothing comes from the service, all repeats included: a network that swallows packets is
  /// as good as none. While bytes come, however slowly, it waits.
  ///
  /// - Throws: ``MusterError/unreachable(_:)`` offline, or if the network is silent: the copies stay, and ``isOffline`` is
  ///   true.
  ///   ``MusterError/loggedOut`` if the session has ended. Other ``MusterError``s if the service is unavailable.
  public func refresh() async throws {
    try await catchUp(Set(CacheCollection.allCases), withPast: true)
  }

  /// Resolves when a pass that began after this call has succeeded.
  private func catchUp(_ collections: Set<CacheCollection>, withPast: Bool = false) async throws {
    guard !isForgotten else { throw MusterError.loggedOut }
    while true {
      passes.wanted.formUnion(collections)
      if withPast { passes.wantsPast = true }
      do {
        return try await (passes.next ?? enqueuePass()).value
      } catch is Passes.Cut {
        // The next one begins on the network that has come back.
      }
    }
  }

  private func enqueuePass() -> Task<Void, any Error> {
    let (running, start) = (passes.running, Silence.now)
    let task = Task {
      _ = await running?.result
      passes.running = passes.next
      passes.next = nil
      let (wanted, withPast) = (passes.wanted, passes.wantsPast)
      (passes.wanted, passes.wantsPast) = ([], false)
      try await pass(wanted, withPast: withPast, since: start)
    }
    passes.next = task
    return task
  }

  /// - Parameter start: when the first caller began to wait.
  private func pass(_ wanted: Set<CacheCollection>, withPast: Bool, since start: TimeInterval) async throws {
    await load()
    do {
      try await silence.watch(since: start) {
        let failure = try await self.sendOutbox()
        let collections = wanted.union(self.invalidations.unproved)
        if !collections.isEmpty || withPast || !self.invalidations.isPastProved {
          try await self.validate(collections, withPast: withPast)
        }
        if let failure { throw failure }
      }
      note(nil, unsaved: outbox.diskError ?? copiesError)
    } catch {
      if Task.isCancelled { throw Passes.Cut() }
      note(error)
      throw error
    }
  }

  /// - Parameter withPast: whether to validate the past events, even if they are proved. That costs the service more
  ///   than the lists do: it reads all that it compares.
  private func validate(_ collections: Set<CacheCollection>, withPast: Bool) async throws {
    try await validateOnce(collections, withPast: withPast || !invalidations.isPastProved)
    // The lists have shown a sign that the past events have changed.
    if !invalidations.isPastProved { try await validateOnce([], withPast: true) }
  }

  private func validateOnce(_ collections: Set<CacheCollection>, withPast: Bool) async throws {
    let mark = invalidations.mark
    let result = await copies.validate(collections, withPast: withPast, lengths: lengths)
    copiesError = result.diskError
    // Before the writes that the lists prove are no longer shown as pending.
    if collections.contains(.events) { await refreshOpenedEvents(thatWereWritten: true) }
    guard !isForgotten else { throw MusterError.loggedOut }
    for collection in result.proved { invalidations.recordValidation(of: collection, since: mark) }
    if result.past?.isProved == true {
      invalidations.recordPastValidation(since: mark)
    } else if withPast {
      invalidations.addPast()
    }
    let failed = collections.subtracting(result.proved)
    if !failed.isEmpty { invalidations.add(failed) }
    let settled = outbox.unsettled.filter(isSettled)
    outbox.settle(settled)
    for record in settled { sentMarks[record.id] = nil }
    // In one step with the line above, so that no list flickers.
    take(result)
    leftEvents.formUnion(result.leftEvents)
    await outbox.eraseSettled(settled)
    switch result.error {
    // They are checked after a later validation.
    case .unreachable?, .loggedOut?: break
    // Even if another list has failed: the events leave this one only once.
    default: await checkLeftEvents()
    }
    if let error = result.error { throw error }
    guard collections.contains(.events) else { return }
    await refreshOpenedEvents(thatWereWritten: false)
  }

  private func checkLeftEvents() async {
    let left = leftEvents
    leftEvents = []
    await checkCopies(ofEventsThatLeft: left)
  }

  /// Whether the lists were validated after the service carried out a write, and no other write needs its response.
  private func isSettled(_ record: OutboxRecord) -> Bool {
    guard case .sent = record.state, !outbox.isNeeded(record) else { return false }
    let mark = sentMarks[record.id] ?? 1
    return record.write.collections.allSatisfy { invalidations.isProved($0, since: mark) }
  }

  /// Records how a pass ended.
  ///
  /// - Parameter unsaved: why the result of a success could not be written to the disk.
  private func note(_ error: (any Error)?, unsaved: StoreError? = nil) {
    life.failures = error == nil ? 0 : life.failures + 1
    // A pass that was cut off says nothing about the service.
    if !(error is CancellationError) { lastError = error ?? unsaved }
    let error = error as? MusterError
    life.retryAfter = error?.problem?.retryAfter
    let isUnreachable = if case .unreachable = error { true } else { false }
    let isBack = isOffline && error == nil
    if isOffline != isUnreachable { isOffline = isUnreachable }
    // Other failures say nothing about the session.
    let isEnded = error == .loggedOut || (isLoggedOut && life.failures > 0 && client.userID != folder.user)
    if isLoggedOut != isEnded { isLoggedOut = isEnded }
    if isUnreachable || isLoggedOut { invalidateEverything() }
    if isLoggedOut { return endLife() }
    // The old connection may be dead without a sign, and the next attempt may be a minute away.
    if isBack, life.isRunning { openStream() }
    schedule()
  }
}

extension MusterStore {
  /// The attempts after which a write that the service cannot carry out counts as refused, so that others can follow.
  private static let maximumFailures = 5
  /// Seconds to wait for another process, which holds the lock for one request.
  private static let lockPatience: TimeInterval = 7

  /// Sends pending writes, in order, until none are left.
  ///
  /// - Returns: why the rest cannot be sent now, if reading may still succeed.
  /// - Throws: ``MusterError/unreachable(_:)``, ``MusterError/loggedOut``
  private func sendOutbox() async throws -> (any Error)? {
    await reloadOutbox()
    do {
      while let record = outbox.next {
        guard !isForgotten else { throw MusterError.loggedOut }
        // Once for each launch, at most. All lists together: what one shows depends on others.
        if record.notesAttempts, !knowsServiceTime {
          try await validate(Set(CacheCollection.allCases), withPast: false)
          // That takes a while, in which another process may have saved an earlier write.
          await reloadOutbox()
        }
        try await send(record)
      }
      return nil
    } catch let error as MusterError {
      switch error {
      case .unreachable, .loggedOut: throw error
      case .refused, .unexpectedResponse, .tokensUnavailable: return error
      }
    } catch {
      return error
    }
  }

  private var knowsServiceTime: Bool { client.cache.caller.sender.serviceClock.now != nil }

  private func reloadOutbox() async {
    for record in await outbox.reload() { noteMoved(record) }
    publish()
  }

  /// Sends one write: one process at a time, and each request under the lock of its own, so that an app that is
  /// suspended while it waits holds none.
  private func send(_ record: OutboxRecord) async throws {
    let lock = FileLock(
      file: folder.file("sending.lock"), createsFolder: false, reason: "Sending changes", patience: Self.lockPatience)
    do {
      try await Sender.$actingUser.withValue(folder.user) {
        try await client.cache.caller.sender.stepwise {
          try await lock.withLock { try await self.sendOnce(record.id) }
        }
      }
    } catch let failure as FileLock.Failure {
      switch failure {
      case .file(let reason): throw StoreError.disk(reason)
      case .held: throw StoreError.locked
      case .suspended: throw CancellationError()
      }
    }
  }

  /// Sends one request. The write leaves the line if the service carries it out or refuses it.
  private func sendOnce(_ id: OutboxRecord.ID) async throws {
    guard let record = outbox.next, record.id == id else { return }
    guard var record = await outbox.waiting(record) else {
      await reloadOutbox()
      if outbox.next?.id == id { throw StoreError.disk("The file of a write is gone.") }
      return
    }
    try await outbox.eraseReplaced(by: record)
    if outbox.lacksSubject(record) { return await refuse(record, .withoutSubject) }
    if try await outbox.leaveOut(record, wasShown: isPossible(record)) {
      noteMoved(record)
      return publish()
    }
    let serviceTime = client.cache.caller.sender.serviceClock.now
    if record.needsKey, record.isKeyForgotten(at: serviceTime) { return await refuse(record, .unknown) }
    // Once a request may have left the phone, its repeat says the same: the key stands for these words.
    if record.attemptedAt == nil, let basis = await outbox.basis(of: record), basis != record.basis {
      try await outbox.changeBasis(of: record, to: basis)
      record.basis = basis
    }
    try await outbox.noteAttempt(record, at: record.attemptedAt ?? serviceTime ?? .distantPast)
    // From here on, the write may happen at any time.
    invalidations.add(record.write.collections)
    do {
      let state = try await record.deliver(with: client) { [outbox, record] in
        try await outbox.changeBasis(of: record, to: $0)
      }
      await outbox.complete(record, with: state)
      noteMoved(record)
      if record.write.collections.isEmpty { await settleUnlisted(record) }
      publish()
    } catch let newer as OutboxRecord.Superseded {
      await refuse(record, .superseded(by: newer.state))
    } catch StoreError.damaged {
      await refuse(record, .damaged(contents: ""))
    } catch MusterError.refused(let problem) where problem.type == .idempotencyKeyReused && !record.needsKey {
      // An earlier version of the app has sent it, in other words. The next request has another key.
      try await outbox.changeKey(of: record)
    } catch MusterError.refused(let problem) {
      guard let reason = reason(to: problem, of: record) else { throw MusterError.refused(problem) }
      await refuse(record, reason)
    } catch {
      // If this cannot be saved, the attempt counts.
      if !Self.mayHaveHappened(after: error) { try? await outbox.noteAttempt(record, at: record.attemptedAt) }
      throw error
    }
  }

  /// No list will ever show this write, so there is nothing to wait for.
  private func settleUnlisted(_ record: OutboxRecord) async {
    outbox.settle([record])
    sentMarks[record.id] = nil
    await outbox.eraseSettled([record])
  }

  /// Whether a request may have had its effect that ended with an error. One that never left the phone had none.
  private static func mayHaveHappened(after error: any Error) -> Bool {
    switch error {
    case let interruption as Interruption: interruption.mayHaveHappened
    // There were no tokens for a request.
    case MusterError.loggedOut, MusterError.tokensUnavailable: false
    default: true
    }
  }

  /// Why a write will not happen; nil if it may be sent again. Limits on the rate of requests end by themselves;
  /// others, such as that on friend requests, may last for days and would hold up the line.
  private func reason(to problem: Problem, of record: OutboxRecord) -> RefusedWrite.Reason? {
    switch (problem.status, problem.type) {
    case (_, .superseded):
      guard let current = problem.current else { return .refused(problem) }
      return .superseded(by: .answer(current.status, plusOnes: current.plusOnes))
    case (_, .rateLimited), (_, .requestRunning), (_, .uploadInProgress), (503, _), (408, _), (401, _): return nil
    // The same, and another key might make it happen twice.
    case (_, .idempotencyKeyReused): return .unknown
    case (500..., _):
      failedAttempts[record.id, default: 0] += 1
      return failedAttempts[record.id, default: 0] < Self.maximumFailures ? nil : .refused(problem)
    default: return .refused(problem)
    }
  }

  private func refuse(_ record: OutboxRecord, _ reason: RefusedWrite.Reason) async {
    await outbox.refuse(record, reason)
    invalidate(record.write.collections)
  }

  /// The lists that were validated before may not show the write.
  private func noteMoved(_ record: OutboxRecord) {
    invalidations.add(record.write.collections)
    sentMarks[record.id] = invalidations.mark
  }
}

extension MusterStore {
  /// Keeps the lists up to date from now on: validates them, follows the stream, and sends writes, even after failures.
  /// Does nothing if the store runs already.
  ///
  /// Call ``stop()`` when the app leaves the front, and this again when it comes back.
  public func start() {
    guard !life.isRunning, !isForgotten else { return }
    life.isRunning = true
    life.failures = 0
    // Earlier proofs do not count: nothing was watching for changes since.
    invalidateEverything()
    openStream()
    #if canImport(Network)
      life.path = NetworkPath { [weak self] in Task { @MainActor in self?.networkIsBack() } }
    #endif
    catchUpSoon(Set(CacheCollection.allCases))
  }

  /// Follows the stream, in place of an earlier one: after its last notification, so that none is missed.
  private func openStream() {
    life.stream?.cancel()
    life.isStreaming = false
    life.number += 1
    let (number, lastEventID) = (life.number, life.lastEventID)
    // Never with the tokens of a user who has logged in since.
    life.stream = Sender.$actingUser.withValue(folder.user) {
      Task { [client, timing, weak self] in
        while !Task.isCancelled {
          do {
            var events = client.notifications.stream(after: self?.life.lastEventID ?? lastEventID)
            events.onLoss = { Task { @MainActor in self?.loseStream(ofLife: number) } }
            events.onBytes = { Task { @MainActor in self?.expectHeartbeat(ofLife: number) } }
            var iterator = events.makeAsyncIterator()
            while let event = try await iterator.next() {
              guard self?.life.number == number else { return }
              self?.life.lastEventID = iterator.lastEventID
              self?.take(event)
            }
          } catch MusterError.loggedOut {
            self?.endSession(ofLife: number)
            return
          } catch {
            // Connected again below.
          }
          guard !Task.isCancelled else { return }
          self?.loseStream(ofLife: number)
          try? await timing.sleep(timing.maximumRetry)
        }
      }
    }
  }

  /// Validates if no byte comes from the stream in time: a dead connection shows no other sign.
  private func expectHeartbeat(ofLife number: Int) {
    guard life.number == number else { return }
    life.heartbeat?.cancel()
    life.heartbeat = Task { [timing, weak self] in
      guard (try? await timing.sleep(timing.heartbeat)) != nil, let self, self.life.number == number else { return }
      self.invalidate(CacheCollection.allCases)
      if self.life.failures == 0 { self.catchUpSoon(Set(CacheCollection.allCases)) }
    }
  }

  /// Begins again on a network that has come back, or on another one: what is under way may never get a response.
  func networkIsBack() {
    guard life.isRunning else { return }
    life.failures = 0
    passes.running?.cancel()
    openStream()
    catchUpSoon(Set(CacheCollection.allCases))
  }

  /// Ends the stream and all activity of its own. ``refresh()`` still works.
  public func stop() {
    guard life.isRunning else { return }
    life.cancel()
    life = StoreLife(number: life.number + 1)
    invalidateEverything()
  }

  /// Notifications that arrive from now on, while the store runs: for banners, sounds and badges. The list
  /// ``notifications`` shows them as well.
  ///
  ///     .task { for await item in store.arrivals { banner = item } }
  ///
  /// Each use of this property is a consumer of its own: it gets each notification once, in the order of their arrival,
  /// and also those that it has not asked for yet. After a lost connection, the stream continues after the last
  /// notification, so none is missed. Those that arrive between ``stop()`` and ``start()`` do not come here: they are in
  /// the list, and devices get them as pushes.
  ///
  /// The sequence continues over ``stop()`` and ``start()``. It ends when the session ends, in ``forgetEverything()``,
  /// with the store, and when its task is cancelled.
  public var arrivals: AsyncStream<InboxItem> { arrived.stream() }

  /// Starts a pass for pending work, if the store runs.
  private func poke() { catchUpSoon([]) }

  /// Plans the next pass.
  private func schedule() {
    life.timer?.cancel()
    guard life.isRunning, !isLoggedOut else { return }
    let isBehind = !invalidations.unproved.isEmpty || !invalidations.isPastProved || outbox.next != nil
    if life.failures == 0, isBehind { return poke() }
    // After a failure, past events are validated if they are not proved.
    schedule(
      after: timing.delay(
        failures: life.failures, isStreaming: life.isStreaming, isOffline: isOffline, retryAfter: life.retryAfter),
      withPast: life.failures == 0)
  }

  private func schedule(after delay: TimeInterval, withPast: Bool) {
    life.timer?.cancel()
    guard life.isRunning else { return }
    life.timer = Task { [timing, weak self] in
      guard (try? await timing.sleep(delay)) != nil else { return }
      self?.catchUpSoon(Set(CacheCollection.allCases), withPast: withPast)
    }
  }

  private func catchUpSoon(_ collections: Set<CacheCollection>, withPast: Bool = false) {
    guard life.isRunning else { return }
    Task { try? await catchUp(collections, withPast: withPast) }
  }

  /// Handles an announcement of the stream.
  func take(_ event: StreamEvent) {
    switch event {
    case .connected:
      life.isStreaming = true
      invalidate(CacheCollection.allCases)
    case .notification(let item):
      arrived.add(item)
      invalidate([.notifications])
    case .changed(let stamps):
      // A copy with the announced stamp has the change.
      invalidate(stamps.filter { statuses[$0.key]?.stamp != $0.value }.map(\.key))
    }
    // After a failure, the timer decides: the service may have asked for time. If the network failed, a new connection
    // ends the wait.
    let isWaiting = life.failures > 0 && (event != .connected || life.retryAfter != nil)
    if !invalidations.unproved.isEmpty, !isWaiting { poke() }
  }

  /// Changes may have been missed since the stream was lost.
  func loseStream() {
    guard life.isStreaming else { return }
    life.isStreaming = false
    invalidate(CacheCollection.allCases)
    // After a random pause: a service that stops loses the streams of all phones together.
    schedule(after: timing.firstRetry * (1 + timing.random()), withPast: false)
  }

  private func loseStream(ofLife number: Int) {
    if life.number == number { loseStream() }
  }

  /// A stream may end after the store was stopped, and started again after the next login.
  func endSession(ofLife number: Int) {
    guard life.number == number else { return }
    lastError = MusterError.loggedOut
    isLoggedOut = true
    endLife()
  }

  /// Stops after a logout.
  private func endLife() {
    stop()
    arrived.end()
  }
}
