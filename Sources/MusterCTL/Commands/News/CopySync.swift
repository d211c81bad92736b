import Foundation
import MusterKit

/// Brings the copies of a user's lists up to date with one validation, and the requests that it makes necessary.
struct CopySync {
  let account: Account
  let folder: CopyFolder

  init(_ account: Account) {
    self.account = account
    folder = CopyFolder(account.copies)
  }

  /// The maximum number of further requests for what the service left out of a response.
  private static let maximumRounds = 50

  /// - Returns: a change for each list, and the response with the verdicts.
  func run() async throws -> Reply<[CopyChange]> {
    var copies: [CacheCollection: ListCopy] = [:]
    for collection in CacheCollection.allCases { copies[collection] = folder.copy(of: collection) }
    let claims = CacheCollection.allCases.map { ($0, copies[$0]?.claim ?? Claim(timestamp: nil, items: [:])) }
    let reply = try await account.responses.reply {
      try await account.client.cache.validate(Dictionary(uniqueKeysWithValues: claims), include: .changes)
    }
    var changes: [CopyChange] = []
    for collection in CacheCollection.allCases {
      guard let verdict = reply.value[collection] else { continue }
      let old = copies[collection]
      let new = try await copy(of: collection, after: verdict, of: old ?? ListCopy())
      if verdict.invalidate { try folder.save(new, of: collection) }
      changes.append(CopyChange(collection, from: old, to: new, isStale: verdict.invalidate))
    }
    return Reply(value: changes, json: reply.json)
  }

  /// A list as it is now. The copy on this machine stays as it is.
  func current(_ collection: CacheCollection) async throws -> ListCopy {
    let old = folder.copy(of: collection) ?? ListCopy()
    let verdict = try await account.client.cache.validate([collection: old.claim], include: .changes)[collection]
    guard let verdict else { return old }
    return try await copy(of: collection, after: verdict, of: old)
  }

  private func copy(
    of collection: CacheCollection, after verdict: Verdict, of old: ListCopy
  ) async throws -> ListCopy {
    var verdict = verdict
    var (copy, isComplete) = old.updated(by: verdict)
    var round = 0
    while !isComplete, round < CopySync.maximumRounds {
      round += 1
      guard let next = try await account.client.cache.validate([collection: copy.claim], include: .changes)[collection]
      else { break }
      verdict = next
      (copy, isComplete) = copy.updated(by: verdict)
    }
    var cursor = verdict.nextCursor
    while let next = cursor {
      let page = try await account.client.cache.page(of: collection, cursor: next)
      copy.append(page, of: collection)
      cursor = page.nextCursor
    }
    return copy
  }
}

/// The result of validating one list, and why the copy was stale.
struct CopyChange {
  enum Item: Equatable {
    case new(String)
    case gone(String)
    /// - Parameter members: the names of the members that differ.
    case changed(String, members: [String])
  }

  let collection: CacheCollection
  let isStale: Bool
  let hadCopy: Bool
  let items: [Item]
  let count: Int

  init(_ collection: CacheCollection, from old: ListCopy?, to new: ListCopy, isStale: Bool) {
    self.collection = collection
    self.isStale = isStale
    hadCopy = old != nil
    count = new.keys.count
    guard let old, isStale else {
      items = []
      return
    }
    func name(_ item: Changed) -> String { collection.name(of: item.item) }
    let gone = old.keys.filter { new.items[$0] == nil }.compactMap { old.items[$0] }.map { Item.gone(name($0)) }
    items =
      new.keys.compactMap { key -> Item? in
        guard let item = new.items[key] else { return nil }
        guard let before = old.items[key] else { return .new(name(item)) }
        let members = CopyChange.differences(before.item, item.item)
        return members.isEmpty ? nil : .changed(name(item), members: members)
      } + gone
  }

  /// One line about the list.
  var summary: String {
    guard isStale else { return "" }
    guard hadCopy else { return count == 0 ? "read an empty list" : "read \(count) item\(count == 1 ? "" : "s")" }
    let new = items.count { if case .new = $0 { true } else { false } }
    let gone = items.count { if case .gone = $0 { true } else { false } }
    let parts = [(new, "new"), (items.count - new - gone, "changed"), (gone, "gone")].filter { $0.0 > 0 }
    return parts.isEmpty
      ? "a change that does not show" : parts.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }

  /// The names of the members that differ, such as `title` or `event.title`. An object's own stamp moves with each of
  /// its changes.
  private static func differences(_ old: JSONValue, _ new: JSONValue) -> [String] {
    guard case .object(let before) = old, case .object(let after) = new else { return [] }
    let names = Set(before.keys).union(after.keys).filter { $0 != "timestamp" && before[$0] != after[$0] }
    return names.sorted().flatMap { name in
      let inner = before[name].flatMap { old in after[name].map { differences(old, $0) } } ?? []
      return inner.isEmpty ? [name] : inner.map { "\(name).\($0)" }
    }
  }
}

/// A copy of one of the user's lists, or of an object as a list of one, as of its stamp.
struct ListCopy: Codable, Equatable {
  /// Nil if the list changed while its pages were read: the next validation reads it again.
  var timestamp: Stamp?
  /// In the list's order.
  var keys: [String] = []
  var items: [String: Changed] = [:]

  /// The service names no more keys in a verdict.
  fileprivate static let firstPart = 500

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

/// The copies of a user's lists on this machine: a file for each list.
struct CopyFolder {
  private let folder: URL

  init(_ folder: URL) { self.folder = folder }

  /// - Returns: nil if there is no copy, or none that can be read.
  func copy(of collection: CacheCollection) -> ListCopy? {
    guard let data = try? Data(contentsOf: file(of: collection)) else { return nil }
    return try? JSONDecoder.muster().decode(ListCopy.self, from: data)
  }

  func save(_ copy: ListCopy, of collection: CacheCollection) throws {
    try PrivateFile.write(try JSONEncoder.muster().encode(copy), to: file(of: collection))
  }

  func forget() throws {
    guard FileManager.default.fileExists(atPath: folder.path) else { return }
    do {
      try FileManager.default.removeItem(at: folder)
    } catch {
      throw Failure.refused("\(folder.path) cannot be removed.")
    }
  }

  private func file(of collection: CacheCollection) -> URL { folder.appending(path: "\(collection.rawValue).json") }
}
