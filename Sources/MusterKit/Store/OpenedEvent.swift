import Foundation
import Observation

/// An event that the user has opened, with the first page of its guests: a screen that also works without a network.
///
///     let opened = store.opened(event.id)
///     ...
///     .task { try? await opened.refresh() }
///
/// The copy stays on the disk, for the last 100 events that were read, and for at most 60 days. While someone holds this
/// object, the store reads the event again whenever it validates ``MusterStore/events``. An unchanged copy costs one
/// small request.
@MainActor
@Observable
public final class OpenedEvent {
  public let id: Event.ID
  /// The event with pending writes, as in the store's lists. Its `guests` are nil if it was never received with them.
  /// Nil if it was never received at all, or if the user no longer sees it.
  public private(set) var event: Event?
  /// When the request was sent whose response last proved event and guests right; nil without a copy.
  public private(set) var upToDateAsOf: Date?
  /// Whether a write about this event is pending.
  public private(set) var hasPendingWrites = false

  @ObservationIgnored fileprivate var copy: OpenedCopy?
  @ObservationIgnored fileprivate weak var store: MusterStore?
  @ObservationIgnored fileprivate var loading: Task<Void, Never>?
  /// The number of requests so far, and that of the request whose response the copy is.
  @ObservationIgnored fileprivate var requests = (sent: 0, taken: 0)

  fileprivate init(_ id: Event.ID, in store: MusterStore) {
    self.id = id
    self.store = store
  }

  /// Resolves when this shows the copy on the disk. The store begins to read it when it makes this object.
  public func load() async { await loading?.value }

  /// Reads the event and its guests again, if they have changed.
  ///
  /// - Throws: ``MusterError``: `event-not-found`: the copy is gone then. ``MusterError/unreachable(_:)`` offline: the
  ///   copy stays.
  public func refresh() async throws { try await store?.refresh(self) }

  /// That of the copy.
  var eTag: String? { copy?.eTag }
  /// The number of the request that proved the copy right.
  var provedBy: Int? { copy?.provedBy }

  fileprivate func show(_ new: Event?, hasPendingWrites isPending: Bool) {
    if event != new { event = new }
    if upToDateAsOf != copy?.provedAt { upToDateAsOf = copy?.provedAt }
    if hasPendingWrites != isPending { hasPendingWrites = isPending }
  }
}

extension MusterStore {
  /// The screen of an event. It shows the copy on the disk as soon as that is read. Call ``OpenedEvent/refresh()`` when
  /// the screen appears.
  public func opened(_ id: Event.ID) -> OpenedEvent {
    if let opened = openedEvents.find(id) { return opened }
    let opened = OpenedEvent(id, in: self)
    openedEvents.add(opened)
    showOpenedEvents()
    opened.loading = Task {
      let copy = await openedCopies.load(id)
      // A refresh may have been faster.
      if opened.copy == nil, !isForgotten { opened.copy = copy }
      showOpenedEvents()
    }
    return opened
  }

  fileprivate func refresh(_ opened: OpenedEvent) async throws {
    defer { showOpenedEvents() }
    opened.requests.sent += 1
    let number = opened.requests.sent
    do {
      let copy = try await openedCopies.read(opened.id, unless: opened.copy)
      guard !isForgotten else { throw MusterError.loggedOut }
      // A later request may have been faster.
      guard number > opened.requests.taken else { return }
      opened.requests.taken = number
      opened.copy = copy
      await openedCopies.keep(copy)
    } catch let error as MusterError where error.problem?.type == .eventNotFound {
      guard number > opened.requests.taken else { throw error }
      opened.requests.taken = number
      opened.copy = nil
      noteGone(opened.id)
      await openedCopies.remove(opened.id)
      throw error
    }
  }

  /// Reads events again that someone holds. A failure leaves the copies.
  ///
  /// - Parameter wereWritten: those about which a write was sent, or the others.
  func refreshOpenedEvents(thatWereWritten wereWritten: Bool) async {
    let written = Set(outbox.unsettled.filter { $0.state == .sent }.compactMap(\.write.subject))
    let opened = openedEvents.all.filter { written.contains($0.id.rawValue) == wereWritten }
    await withTaskGroup { group in
      for opened in opened { group.addTask { try? await self.refresh(opened) } }
    }
  }

  /// Reads the copies of events again that have left the list, and removes those that the user no longer sees.
  func checkCopies(ofEventsThatLeft ids: Set<Event.ID>) async {
    for id in ids.subtracting(openedEvents.all.map(\.id)) { await openedCopies.check(id) }
  }

  /// Shows the copies with the pending writes.
  func showOpenedEvents() {
    for opened in openedEvents.all {
      let pending = outbox.unsettled.filter { $0.write.subject == opened.id.rawValue }
      opened.show(shown(opened), hasPendingWrites: !pending.isEmpty)
    }
  }

  /// An event as the service sent it last: the newer of the list's and the copy, with the copy's guests. The number is
  /// that of the request that proved it right.
  func receivedEvent(_ id: Event.ID) -> (event: Event, request: Int)? {
    let listed = listedEvent(id)
    guard let copy = openedEvents.find(id)?.copy else { return listed }
    guard var received = listed, isNewer(received, than: copy) else { return (copy.event, copy.provedBy) }
    (received.event.guests, received.event.participants) = (copy.event.guests, copy.event.participants)
    return received
  }

  private func listedEvent(_ id: Event.ID) -> (event: Event, request: Int)? {
    if let event = base.events?.first(where: { $0.id == id }) { return (event, statuses[.events]?.provedBy ?? 0) }
    if let invitation = base.invitations?.first(where: { $0.event.id == id }) {
      return (invitation.event, statuses[.invitations]?.provedBy ?? 0)
    }
    return base.pastEvents?.first { $0.id == id }.map { ($0, pastStatus?.provedBy ?? 0) }
  }

  /// An event after the pending writes.
  private func shown(_ opened: OpenedEvent) -> Event? {
    let received = receivedEvent(opened.id)?.event
    var lists = base
    lists.events = received.map { [$0] } ?? base.events.map { _ in [] }
    lists.invitations = base.invitations?.filter { $0.event.id == opened.id }
    if let guests = received?.guests {
      lists.surroundings = Surroundings(
        guests: [opened.id: guests.items], cut: guests.nextCursor == nil ? [] : [opened.id])
    }
    for record in outbox.unsettled { record.write.apply(to: &lists, at: record.createdAt) }
    guard var event = lists.events?.first(where: { $0.id == opened.id }) else { return nil }
    if let guests = lists.surroundings?.guests[opened.id] { event.guests?.items = guests }
    let blocked = Set(outbox.unsettled.compactMap(\.write.blockedUser))
    let (isGuest, own) = (event.myRole == .guest, event.myParty)
    event.changeGuests { guests in
      guests.removeAll { guest in guest.user.map { blocked.contains($0.id) } ?? false }
      for index in guests.indices where isGuest && guests[index].user?.id == base.profile?.id {
        (guests[index].status, guests[index].plusOnes) = (own.status, own.plusOnes)
      }
    }
    return event
  }

  private func isNewer(_ listed: (event: Event, request: Int), than copy: OpenedCopy) -> Bool {
    let (version, old) = (listed.event.version, copy.event.version)
    return version == old ? listed.request > copy.provedBy : version > old
  }
}

extension Event {
  fileprivate mutating func changeGuests(_ change: (inout [Guest]) -> Void) {
    if var items = guests?.items {
      change(&items)
      guests?.items = items
    }
    if var first = participants {
      change(&first)
      participants = first
    }
  }
}

extension Write {
  fileprivate var blockedUser: User.ID? {
    if case .block(let person) = self { return person.id }
    return nil
  }
}

/// The events that someone holds.
@MainActor
final class OpenedEvents {
  private struct Entry {
    weak var opened: OpenedEvent?
  }

  private var entries: [Entry] = []

  var all: [OpenedEvent] { entries.compactMap(\.opened) }

  func find(_ id: Event.ID) -> OpenedEvent? { all.first { $0.id == id } }

  func forget() {
    for opened in all { opened.copy = nil }
  }

  func add(_ opened: OpenedEvent) {
    entries.removeAll { $0.opened == nil }
    entries.append(Entry(opened: opened))
  }
}

/// An event with the first page of its guests, as the service sent them together.
struct OpenedCopy: Sendable {
  let event: Event
  /// When the request was sent whose response proved this copy right.
  var provedAt: Date
  /// The number of that request. Later requests have higher numbers.
  fileprivate var provedBy: Int
  /// Nil for an archived event: it is read again each time.
  fileprivate let eTag: String?
  /// The event as the service sent it, even if this version of the app does not know all of it.
  fileprivate let json: JSONValue

  fileprivate init(_ json: JSONValue, eTag: String?, provedAt: Date, by request: Int) throws {
    event = try JSONDecoder.muster().decode(Event.self, from: JSONEncoder.muster().encode(json))
    self.json = json
    self.eTag = eTag
    self.provedAt = provedAt
    provedBy = request
  }
}

/// The files of opened events. Reads them again, off the main actor.
actor OpenedCopies {
  private static let subfolder = "opened"
  private static let maximum = 100
  /// Seconds for which a copy is kept.
  static let lifetime: TimeInterval = 60 * 86_400

  private let client: MusterClient
  private let folder: StoreFolder
  private let requests: RequestCounter
  private let now: @Sendable () -> Date

  /// A file with other members does not count as a copy.
  private struct File: Codable {
    let event: JSONValue
    let eTag: String?
    let provedAt: Date
    let request: Int
  }

  /// - Throws: ``StoreError/disk(_:)``
  init(
    client: MusterClient, folder: StoreFolder, requests: RequestCounter, now: @escaping @Sendable () -> Date
  ) throws {
    self.client = client
    self.folder = folder
    self.requests = requests
    self.now = now
    // Not later: once the user's folder is deleted, nothing of it comes back.
    try folder.makeSubfolder(Self.subfolder)
  }

  func load(_ id: Event.ID) -> OpenedCopy? {
    guard let data = folder.read(Self.name(of: id)), let file = try? JSONDecoder().decode(File.self, from: data)
    else { return nil }
    requests.pass(file.request)
    return try? OpenedCopy(file.event, eTag: file.eTag, provedAt: file.provedAt, by: file.request)
  }

  /// The event as the service has it now.
  ///
  /// - Parameter copy: which may be right; nil for the one on the disk.
  /// - Throws: ``MusterError``
  func read(_ id: Event.ID, unless copy: OpenedCopy?) async throws -> OpenedCopy {
    let old = copy ?? load(id)
    let (sentAt, number) = (now(), requests.next())
    let response = try await Sender.$actingUser.withValue(folder.user) {
      try await client.events.withGuests(id, unless: old?.eTag)
    }
    var read: OpenedCopy
    if let response {
      do {
        read = try OpenedCopy(response.event, eTag: response.eTag, provedAt: sentAt, by: number)
      } catch {
        throw MusterError.unexpectedResponse(status: 200, detail: "\(error)")
      }
    } else if let old {
      read = old
      (read.provedAt, read.provedBy) = (sentAt, number)
    } else {
      throw MusterError.unexpectedResponse(status: 304, detail: "The service sent no event.")
    }
    return read
  }

  /// Reads the copy of an event again, if there is one, and removes it if the user no longer sees the event.
  func check(_ id: Event.ID) async {
    guard let copy = load(id) else { return }
    do {
      keep(try await read(id, unless: copy))
    } catch let error as MusterError where error.problem?.type == .eventNotFound {
      remove(id)
    } catch {
      // As for all copies: it is read again when the event is opened.
    }
  }

  func remove(_ id: Event.ID) { try? folder.remove(Self.name(of: id)) }

  /// If the disk is full, the older file stays: it is right for its own tag.
  func keep(_ copy: OpenedCopy) {
    let file = File(event: copy.json, eTag: copy.eTag, provedAt: copy.provedAt, request: copy.provedBy)
    guard let data = try? JSONEncoder().encode(file),
      (try? folder.write(data, to: Self.name(of: copy.event.id))) != nil,
      let names = try? folder.names(in: Self.subfolder)
    else { return }
    let ages = names.map { name in (path: "\(Self.subfolder)/\(name)", age: folder.age(of: "\(Self.subfolder)/\(name)"))
    }
    for (place, file) in ages.sorted(by: { $0.age < $1.age }).enumerated()
    where place >= Self.maximum || file.age > Self.lifetime {
      try? folder.remove(file.path)
    }
  }

  private static func name(of id: Event.ID) -> String { "\(subfolder)/\(id.wire).json" }
}
