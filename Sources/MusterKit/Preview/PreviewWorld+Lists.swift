import Foundation

extension PreviewWorld {
  static let usualLimit = 50

  /// An item of a collection as the API sends it, with its key.
  struct Item: Sendable {
    let key: String
    let json: JSONValue
    let digest: String

    init(_ key: String, _ value: some Encodable) throws {
      self.key = key
      let bytes = try JSONEncoder.muster().encode(value)
      json = try JSONDecoder.muster().decode(JSONValue.self, from: bytes)
      digest = PreviewDigest.of(bytes)
    }
  }

  /// The items of a collection, in its order.
  func items(of collection: CacheCollection) throws -> [Item] {
    switch collection {
    case .profile: [try Item("me", me)]
    case .friends: try items(lists.friends)
    case .friendRequests: try items(lists.friendRequests)
    case .sentFriendRequests: try items(lists.sentFriendRequests)
    case .events: try items(lists.events)
    case .invitations: try items(lists.invitations)
    case .blocks: try items(lists.blocks)
    case .notifications: try items(lists.notifications)
    case .notificationPreferences: [try Item("me", lists.notificationPreferences)]
    }
  }

  private func items<Thing>(_ models: [some Encodable & Identifiable<Identifier<Thing>>]?) throws -> [Item] {
    try (models ?? []).map { try Item($0.id.wire, $0) }
  }

  /// A page of a collection's list.
  func list(_ collection: CacheCollection, _ request: PreviewRequest) throws -> TransportResponse {
    let all = try items(of: collection)
    var page = try self.page(all.map(\.json), request, stamp: stamps[collection])
    if request.query["include"] == "digests" {
      let first = Int(request.query["cursor"].flatMap(Self.offset) ?? 0)
      page.digests = all[min(first, all.count)...].prefix(page.items.count).map(\.digest)
    }
    if collection == .notifications { page.unread = unread }
    return try .json(page)
  }

  /// A page of a list that apps keep no copy of.
  func list(_ items: [some Encodable], _ request: PreviewRequest, unread: Int? = nil) throws -> TransportResponse {
    var page = try self.page(items.map { try JSONValue(encoding: $0) }, request, stamp: nil)
    page.unread = unread
    return try .json(page)
  }

  /// A cursor is the number of items before it, and the stamp of the first page.
  private func page(_ items: [JSONValue], _ request: PreviewRequest, stamp: Stamp?) throws -> Page<JSONValue> {
    let cursor = request.query["cursor"]
    let first = cursor.flatMap(Self.offset) ?? 0
    let limit = request.query["limit"].flatMap(Int.init) ?? Self.usualLimit
    let part = Array(items[min(first, items.count)...].prefix(limit))
    let next = first + part.count
    let begun = cursor.map { String($0.drop { $0 != "@" }.dropFirst()) } ?? stamp?.rawValue ?? ""
    return Page(
      items: part, nextCursor: next < items.count ? "\(next)@\(begun)" : nil,
      timestamp: begun == stamp?.rawValue ? stamp : nil)
  }

  private static func offset(_ cursor: String) -> Int? {
    Int(cursor.prefix { $0 != "@" }).map { max(0, $0) }
  }
}

extension PreviewWorld {
  func listNotifications(_ request: PreviewRequest) throws -> TransportResponse {
    guard request.query["unread"] == "true" else { return try list(.notifications, request) }
    return try list((lists.notifications ?? []).filter { $0.readAt == nil }, request, unread: unread)
  }

  mutating func markRead(_ request: PreviewRequest) throws -> TransportResponse {
    try perform(.markRead(marked(try request.read())))
    return try .json(Unread(unread: unread))
  }

  mutating func setPreferences(_ request: PreviewRequest) throws -> TransportResponse {
    try perform(.setPreferences(try request.read()), basedOn: .notificationPreferences, in: request)
    settle()
    return try .json(lists.notificationPreferences)
  }

  var unread: Int { min((lists.notifications ?? []).count { $0.readAt == nil }, 999) }

  /// The notifications that a request marks: those with some ids, or all that had arrived by a time.
  private func marked(_ body: JSONValue) -> [InboxItem.ID] {
    if case .array(let ids)? = body["ids"] { return ids.compactMap { $0.string.flatMap(InboxItem.ID.init) } }
    let time = body["before"]?.string.flatMap(WireTime.date) ?? .distantFuture
    return (lists.notifications ?? []).filter { $0.createdAt <= time }.map(\.id)
  }
}

extension PreviewWorld {
  /// The maximum number of keys in a verdict.
  private static let maximumKeys = 500

  /// Tells which copies are stale.
  func validation(_ request: PreviewRequest) throws -> TransportResponse {
    var claims: [String: JSONValue] = request.body.isEmpty ? [:] : try request.read()
    if case .object(let inner)? = claims["timestamps"] { claims = inner }
    if claims.isEmpty {
      claims = Dictionary(uniqueKeysWithValues: CacheCollection.allCases.map { ($0.rawValue, .null) })
    }
    let include = request.query["include"]
    var verdicts: [String: Verdict] = [:]
    for (name, claim) in claims {
      if name == PastUpdate.list, include == "changes", claim["held"] != nil {
        verdicts[name] = parts(of: try items(lists.surroundings?.past), nil, claim)
      } else {
        verdicts[name] = try verdict(CacheCollection(rawValue: name), claim, include: include)
      }
    }
    return try .json(verdicts)
  }

  private func verdict(_ collection: CacheCollection?, _ claim: JSONValue, include: String?) throws -> Verdict {
    guard let collection, let stamp = stamps[collection] else { return Verdict(invalidate: true) }
    let claimed = claim.string ?? claim["timestamp"]?.string
    if claimed == stamp.rawValue { return Verdict(invalidate: false, timestamp: stamp) }
    var verdict = Verdict(invalidate: true, timestamp: stamp)
    switch include {
    case "items": verdict.updatedItems = try items(of: collection).map(\.json)
    case "items,digests":
      verdict.updatedItems = try items(of: collection).map(\.json)
      verdict.digests = try items(of: collection).map(\.digest)
    case "changes" where claim["held"] != nil:
      return parts(of: try items(of: collection), stamp, claim)
    case "changes":
      var held: [String: JSONValue] = [:]
      if case .object(let items)? = claim["items"] { held = items }
      let items = try items(of: collection)
      let shown = items.prefix(Self.maximumKeys)
      verdict.keys = shown.map(\.key)
      verdict.changed = Dictionary(
        uniqueKeysWithValues: shown.filter { held[$0.key]?.string != $0.digest }.map {
          ($0.key, Changed(digest: $0.digest, item: $0.json))
        })
      if items.count > shown.count { verdict.nextCursor = "\(shown.count)@\(stamp.rawValue)" }
    default: break
    }
    return verdict
  }

  /// The list in terms of the items that the app holds.
  private func parts(of items: [Item], _ stamp: Stamp?, _ claim: JSONValue) -> Verdict {
    let (cursor, mark) = (claim["cursor"]?.string, "@\(stamp?.rawValue ?? "")")
    guard cursor.map({ $0.hasSuffix(mark) }) ?? true else { return Verdict(invalidate: true) }
    let held = Self.digests(claim["held"]?.string ?? "")
    let places = Dictionary(zip(held, 0...)) { $1 }
    let first = cursor.flatMap(Self.offset) ?? 0
    let limit: Int = if case .integer(let limit)? = claim["limit"] { limit } else { Self.maximumKeys }
    let shown = items.dropFirst(first).prefix(max(1, limit))
    let parts = shown.map { item in
      places[item.digest].map { ListPart(first: $0, count: 1) } ?? ListPart(digest: item.digest, item: item.json)
    }
    let next = first + shown.count
    return Verdict(
      invalidate: true, timestamp: stamp, nextCursor: next < items.count ? "\(next)\(mark)" : nil, parts: parts)
  }

  /// Takes joined digests apart.
  private static func digests(_ text: String) -> [String] {
    let text = Array(text.utf8)
    return stride(from: 0, to: text.count, by: PreviewDigest.length).map { start in
      String(decoding: text[start..<min(start + PreviewDigest.length, text.count)], as: UTF8.self)
    }
  }
}

/// Digests of items, in the form of the service's: they differ if the items do. Apps cannot tell that they are computed
/// in another way.
private enum PreviewDigest {
  /// In characters.
  static let length = 11

  /// - Parameter json: an item as JSON, with sorted members.
  static func of(_ json: Data) -> String {
    // FNV-1a.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in json { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let bytes = withUnsafeBytes(of: hash.bigEndian) { Data($0) }
    return bytes.base64EncodedString().replacingOccurrences(of: "+", with: "-")
      .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
  }
}
