import Foundation

/// A preview's service: what the user sees, and a reader of requests. The exported demo is where it begins.
struct PreviewWorld: Sendable {
  let export: PreviewExport
  /// With everything that the rules ask for.
  var lists: Lists
  var devices: [Device]
  var calendarLink: CalendarLink?
  /// The guests who were reminded to answer, by their events.
  var reminded: [Event.ID: Set<Guest.ID>] = [:]
  var reports: [Report] = []
  private(set) var stamps: [CacheCollection: Stamp]

  /// The lists that have these stamps.
  private var settled: Lists
  /// The events that the streams have not got yet.
  private var news: [Data] = []
  private var lastStamp = 0
  private var lastID = 0

  /// - Throws: an error of Foundation if the export is not complete.
  init(_ export: PreviewExport) throws {
    self.export = export
    let devices: Page<Device> = try export.read(.listDevices)
    self.devices = devices.items
    (lists, stamps) = try export.lists()
    settled = lists
  }

  /// The time of everything that a preview changes.
  var now: Date { export.time }

  var me: User {
    lists.profile ?? User(id: export.user, username: "", displayName: "", createdAt: now)
  }

  /// Moves the stamps of collections that respond differently than before, and notes what the streams send about it.
  mutating func settle() {
    let moved = CacheCollection.allCases.filter { !lists.has($0, of: settled) }
    guard !moved.isEmpty else { return }
    let known = Set((settled.notifications ?? []).map(\.id))
    // The oldest first, as they have arrived.
    for item in (lists.notifications ?? []).reversed() where !known.contains(item.id) {
      note("notification", item, id: String(Int(item.createdAt.timeIntervalSince1970 * 1_000_000)))
    }
    for collection in moved { stamps[collection] = nextStamp() }
    lists.profile?.timestamp = stamps[.profile]
    lists.notificationPreferences?.timestamp = stamps[.notificationPreferences]
    note("changed", Dictionary(uniqueKeysWithValues: moved.map { ($0.rawValue, stamps[$0]) }))
    settled = lists
  }

  private mutating func nextStamp() -> Stamp {
    lastStamp += 1
    let fraction = String(lastStamp)
    // Later than all stamps of the export, which are within its second.
    let second = WireTime.text(now + 1).dropLast()
    let zeros = String(repeating: "0", count: max(0, 6 - fraction.count))
    return Stamp(rawValue: "\(second).\(zeros)\(fraction)Z")
  }

  private mutating func note(_ event: String, _ value: some Encodable, id: String? = nil) {
    guard let json = try? JSONEncoder.muster().encode(value) else { return }
    let place = id.map { "id: \($0)\n" } ?? ""
    news.append(Data("\(place)event: \(event)\ndata: \(String(decoding: json, as: UTF8.self))\n\n".utf8))
  }

  /// The events of the stream since the last call.
  mutating func takeNews() -> [Data] {
    defer { news = [] }
    return news
  }

  /// An id for something new: the same in each run of a preview.
  mutating func newID<Thing>() -> Identifier<Thing> {
    lastID += 1
    let digits = String(lastID, radix: 16)
    let id = "01900000-0000-7000-9000-" + String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    return Identifier(id) ?? Identifier()
  }
}

extension Lists {
  /// Whether a collection is the same as in other lists.
  fileprivate func has(_ collection: CacheCollection, of other: Lists) -> Bool {
    var mixed = other
    mixed.set(collection, from: self)
    return mixed == other
  }
}

extension PreviewExport {
  /// The demo as the user sees it, with its stamps.
  fileprivate func lists() throws -> (lists: Lists, stamps: [CacheCollection: Stamp]) {
    var lists = Lists()
    var stamps: [CacheCollection: Stamp] = [:]
    func items<Item: Codable & Sendable>(
      _ route: Route, _ query: String? = nil, _ collection: CacheCollection? = nil
    ) throws -> [Item] {
      let page: Page<Item> = try read(route, query)
      if let collection { stamps[collection] = page.timestamp }
      return page.items
    }
    let profile: User = try read(.getMe)
    let preferences: NotificationPreferences = try read(.getNotificationPreferences)
    (lists.profile, lists.notificationPreferences) = (profile, preferences)
    (stamps[.profile], stamps[.notificationPreferences]) = (profile.timestamp, preferences.timestamp)
    lists.friends = try items(.listFriends, nil, .friends)
    lists.friendRequests = try items(.listFriendRequests, "direction=incoming", .friendRequests)
    lists.sentFriendRequests = try items(.listFriendRequests, "direction=sent", .sentFriendRequests)
    lists.events = try items(.listEvents, nil, .events)
    lists.invitations = try items(.listInvitations, nil, .invitations)
    lists.blocks = try items(.listBlocks, nil, .blocks)
    lists.notifications = try items(.listNotifications, nil, .notifications)
    var surroundings = Surroundings()
    surroundings.past = try items(.listEvents, "when=past")
    surroundings.recommended = try items(.listRecommendedUsers)
    for event in (lists.events ?? []) + surroundings.past {
      surroundings.guests[event.id] = try items(.listGuests(event.id))
    }
    let answered = calls.filter { $0.status == 200 }.compactMap(\.route)
    for case .listLinks(let event) in answered { surroundings.links[event] = try items(.listLinks(event)) }
    for case .getUser(let user) in answered where user != profile.id {
      surroundings.people[user] = try read(.getUser(user))
    }
    lists.surroundings = surroundings
    return (lists, stamps)
  }
}
