import MusterKit

/// A copy of one of the user's lists, or of an object as a list of one, as of its stamp.
struct ListCopy: Codable, Equatable {
  /// Nil if the list changed while its pages were read: the next validation reads it again.
  var timestamp: Stamp?
  /// In the list's order.
  var keys: [String] = []
  var items: [String: Changed] = [:]

  /// The service names no more keys in a verdict.
  static let firstPart = 500

  /// A claim about the copy, so that the service sends only changed items.
  var claim: Claim {
    let claimed = keys.prefix(ListCopy.firstPart).compactMap { key in items[key].map { (key, $0.digest) } }
    return Claim(timestamp: timestamp, items: Dictionary(claimed) { first, _ in first })
  }

  /// The copy after a verdict. If the response left items out, the copy lacks them and has no stamp: its claim asks for
  /// them.
  func updated(by verdict: Verdict) -> (copy: ListCopy, isComplete: Bool) {
    guard verdict.invalidate else { return (self, true) }
    let keys = verdict.keys ?? []
    var new = ListCopy(timestamp: verdict.timestamp)
    let missing = Set(verdict.missing ?? [])
    for key in keys where !missing.contains(key) {
      guard let item = verdict.changed?[key] ?? items[key] else { continue }
      new.keys.append(key)
      new.items[key] = item
    }
    let isComplete = new.keys.count == keys.count
    if !isComplete { new.timestamp = nil }
    return (new, isComplete)
  }

  mutating func append(_ page: RawPage, of collection: CacheCollection) {
    for (item, digest) in zip(page.items, page.digests) {
      guard let key = collection.key(of: item), items[key] == nil else { continue }
      keys.append(key)
      items[key] = Changed(digest: digest, item: item)
    }
    timestamp = page.timestamp
  }
}

extension CacheCollection {
  /// The name of an item, for people.
  func name(of item: JSONValue) -> String {
    let name: JSONValue? =
      switch self {
      case .profile: item["username"]
      case .notificationPreferences: .string("preferences")
      case .friends, .blocks: item["user"]?["username"]
      case .friendRequests: item["sender"]?["username"]
      case .sentFriendRequests: item["receiver"]?["username"]
      case .events: item["title"]
      case .invitations: item["event"]?["title"]
      case .notifications: item["message"]
      }
    return name?.string ?? "?"
  }
}
