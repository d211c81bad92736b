import Foundation

/// What a preview's user sees: the exported demo, and what the preview has changed since.
struct PreviewWorld: Sendable {
  let export: PreviewExport
  var me: User
  var friends: [Friend]
  var incoming: [FriendRequest]
  var sent: [FriendRequest]
  /// Requests that were accepted, declined or cancelled.
  var closed: [FriendRequest] = []
  /// Live events without participants, by their start.
  var events: [Event]
  var past: [Event]
  /// The guest lists.
  var guests: [UUID: [Guest]]
  /// The share links of events that the user hosts.
  var links: [UUID: [ShareLink]] = [:]
  /// When the user was invited to live events.
  var invitedAt: [UUID: Date]
  var blocks: [Block]
  /// The inbox, newest first.
  var notifications: [InboxItem]
  var preferences: NotificationPreferences
  /// Everyone whom the user sees.
  var profiles: [UUID: PublicProfile]
  var recommended: [Recommendation]
  var devices: [Device]
  private(set) var stamps: [CacheCollection: Stamp] = [:]

  /// Collections that have changed since ``takeChanges()``.
  private var changed: Set<CacheCollection> = []
  private var lastStamp = 0
  private var lastID = 0

  /// - Throws: an error of Foundation if the export is not complete.
  init(_ export: PreviewExport) throws {
    self.export = export
    me = try export.read("/users/me")
    let friends: Page<Friend> = try export.read("/friends")
    let incoming: Page<FriendRequest> = try export.read("/friend-requests?direction=incoming")
    let sent: Page<FriendRequest> = try export.read("/friend-requests?direction=sent")
    let events: Page<Event> = try export.read("/events")
    let past: Page<Event> = try export.read("/events?when=past")
    let invitations: Page<Invitation> = try export.read("/invitations")
    let blocks: Page<Block> = try export.read("/blocks")
    let inbox: Page<InboxItem> = try export.read("/notifications")
    let recommended: Page<Recommendation> = try export.read("/users/recommended")
    let devices: Page<Device> = try export.read("/devices")
    preferences = try export.read("/notification-preferences")
    (self.friends, self.incoming, self.sent) = (friends.items, incoming.items, sent.items)
    (self.events, self.past, self.blocks, notifications) = (events.items, past.items, blocks.items, inbox.items)
    (self.recommended, self.devices) = (recommended.items, devices.items)
    invitedAt = Dictionary(invitations.items.map { ($0.id, $0.invitedAt) }) { first, _ in first }
    guests = [:]
    for event in events.items + past.items {
      let list: Page<Guest> = try export.read("/events/\(event.id.wire)/invitations")
      guests[event.id] = list.items
      let links = "/events/\(event.id.wire)/links"
      if export.call("GET", "/api/v1" + links) != nil {
        let list: Page<ShareLink> = try export.read(links)
        self.links[event.id] = list.items
      }
    }
    profiles = [:]
    for call in export.calls where call.method == "GET" && call.status == 200 {
      guard call.path.hasPrefix("/api/v1/users/"), UUID(uuidString: String(call.path.dropFirst(14))) != nil else {
        continue
      }
      let profile: PublicProfile = try export.read(String(call.path.dropFirst(7)))
      profiles[profile.id] = profile
    }
    stamps = [
      .profile: me.timestamp, .friends: friends.timestamp, .friendRequests: incoming.timestamp,
      .sentFriendRequests: sent.timestamp, .events: events.timestamp, .invitations: invitations.timestamp,
      .blocks: blocks.timestamp, .notifications: inbox.timestamp, .notificationPreferences: preferences.timestamp,
    ].compactMapValues { $0 }
  }

  /// The time of everything that a preview changes.
  var now: Date { export.time }

  /// Records that collections have changed.
  mutating func touch(_ collections: CacheCollection...) {
    for collection in collections {
      lastStamp += 1
      let fraction = String(lastStamp)
      // Later than all stamps of the export, which are within its second.
      let second = WireTime.text(now + 1).dropLast()
      let zeros = String(repeating: "0", count: max(0, 6 - fraction.count))
      stamps[collection] = Stamp(rawValue: "\(second).\(zeros)\(fraction)Z")
      changed.insert(collection)
    }
    me.timestamp = stamps[.profile]
    preferences.timestamp = stamps[.notificationPreferences]
  }

  /// The events of the stream for what has changed since the last call.
  mutating func takeChanges() -> [Data] {
    guard !changed.isEmpty else { return [] }
    let moved = Dictionary(uniqueKeysWithValues: changed.map { ($0.rawValue, stamps[$0]) })
    changed = []
    guard let json = try? JSONEncoder.muster().encode(moved) else { return [] }
    return [Data("event: changed\ndata: \(String(decoding: json, as: UTF8.self))\n\n".utf8)]
  }

  /// An id for something new: the same in each run of a preview.
  mutating func newID() -> UUID {
    lastID += 1
    let digits = String(lastID, radix: 16)
    let id = "01900000-0000-7000-9000-" + String(repeating: "0", count: max(0, 12 - digits.count)) + digits
    return UUID(uuidString: id) ?? UUID()
  }
}
