import Foundation

/// The contents of the store, as models. Nil where there is no copy.
struct Lists: Sendable, Hashable {
  var profile: User?
  var friends: [Friend]?
  var friendRequests: [FriendRequest]?
  var sentFriendRequests: [FriendRequest]?
  var events: [Event]?
  /// The archive, latest first. Not changed by pending writes.
  var pastEvents: [Event]?
  var invitations: [Invitation]?
  var blocks: [Block]?
  var notifications: [InboxItem]?
  var notificationPreferences: NotificationPreferences?
  /// Nil in the store.
  var surroundings: Surroundings?
}

/// The facts that the rules of the service need besides the lists of the store. Only previews know it.
struct Surroundings: Sendable, Hashable {
  /// Archived events, latest first.
  var past: [Event] = []
  /// The guest lists.
  var guests: [Event.ID: [Guest]] = [:]
  /// The events whose lists of guests are known only in part.
  var cut: Set<Event.ID> = []
  /// The share links of events that the user hosts.
  var links: [Event.ID: [ShareLink]] = [:]
  /// Requests that were accepted, declined or cancelled.
  var closed: [FriendRequest] = []
  /// Everyone whom the user sees.
  var people: [User.ID: PublicProfile] = [:]
  /// The blocked users whom the user saw before.
  var hidden: [User.ID: PublicProfile] = [:]
  var recommended: [Recommendation] = []
}

extension Lists {
  /// Replaces a collection by the items of a copy; nil removes it.
  ///
  /// - Returns: the items that cannot be shown.
  mutating func set(_ collection: CacheCollection, to copy: StoredCopy?) -> UndecodableItems? {
    collection.facts.set(&self, copy)
  }

  /// The same for the past events.
  mutating func setPastEvents(to copy: StoredCopy?) -> UndecodableItems? {
    let read: (models: [Event], undecodable: UndecodableItems?)? = copy?.models()
    pastEvents = read?.models
    return read?.undecodable
  }

  /// Replaces a collection by that of other lists.
  mutating func set(_ collection: CacheCollection, from other: Lists) { collection.facts.take(&self, other) }
}

extension StoredCopy {
  /// The items as models. An item that this version of the app cannot decode is left out; the copy keeps it, so that a
  /// later version shows it without asking again.
  func models<Model: Decodable>() -> (models: [Model], undecodable: UndecodableItems?) {
    let decoder = JSONDecoder.muster()
    var array = Data("[".utf8)
    for (index, entry) in entries.enumerated() {
      if index > 0 { array.append(UInt8(ascii: ",")) }
      array += entry.json
    }
    array.append(UInt8(ascii: "]"))
    if let models = try? decoder.decode([Model].self, from: array) { return (models, nil) }
    var (models, keys, reason): ([Model], [String], String?) = ([], [], nil)
    for entry in entries {
      do {
        models.append(try decoder.decode(Model.self, from: entry.json))
      } catch {
        keys.append(entry.key)
        reason = reason ?? "\(error)"
      }
    }
    return (models, reason.map { UndecodableItems(keys: keys, reason: $0) })
  }
}
