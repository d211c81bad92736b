import Foundation

extension PreviewWorld {
  private static let usualLimit = 50

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
