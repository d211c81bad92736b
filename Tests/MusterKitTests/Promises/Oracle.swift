import Foundation
import MusterKit
import TestSupport

/// Reads a user's collections from the server directly, by the GET of each, in a session of its own.
struct Oracle: Sendable {
  let client: MusterClient

  /// All pages of a collection's GET with their stamp.
  func copy(of collection: CacheCollection) async throws -> ServerCopy {
    switch collection {
    case .profile:
      try await object {
        try await client.me.get()
      } stamp: {
        $0.timestamp
      }
    case .notificationPreferences:
      try await object {
        try await client.notifications.preferences()
      } stamp: {
        $0.timestamp
      }
    case .friends: try await list { try await client.friends.list(limit: 100, cursor: $0) }
    case .friendRequests: try await list { try await client.friends.requests.list(.incoming, limit: 100, cursor: $0) }
    case .sentFriendRequests: try await list { try await client.friends.requests.list(.sent, limit: 100, cursor: $0) }
    case .events: try await list { try await client.events.list(limit: 100, cursor: $0) }
    case .invitations: try await list { try await client.invitations.list(limit: 100, cursor: $0) }
    case .blocks: try await list { try await client.blocks.list(limit: 100, cursor: $0) }
    case .notifications: try await list { try await client.notifications.list(limit: 100, cursor: $0) }
    }
  }

  func copies() async throws -> [CacheCollection: ServerCopy] {
    try await withThrowingTaskGroup(of: (CacheCollection, ServerCopy).self) { group in
      for collection in CacheCollection.allCases { group.addTask { (collection, try await copy(of: collection)) } }
      return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
    }
  }

  /// All pages of the past events, without a stamp.
  func pastEvents() async throws -> ServerCopy {
    let events = try await client.events.pastPages(limit: 100).items.reduce(into: []) { $0.append(try Self.text($1)) }
    return ServerCopy(stamp: nil, items: events)
  }

  private func object<Object: Encodable>(
    _ get: () async throws -> Object, stamp: (Object) -> Stamp?
  ) async throws -> ServerCopy {
    let object = try await get()
    guard let stamp = stamp(object) else { throw Unexpected("a collection without a stamp") }
    return ServerCopy(stamp: stamp, items: [try Self.text(object)])
  }

  private func list<Item: Encodable & Sendable & SendableMetatype>(
    _ get: (_ cursor: String?) async throws -> Page<Item>
  ) async throws -> ServerCopy {
    // A list that changes between two pages is read again.
    for _ in 0..<50 {
      var page = try await get(nil)
      guard let stamp = page.timestamp else { throw Unexpected("a collection without a stamp") }
      var items = page.items
      while let cursor = page.nextCursor, page.timestamp == stamp {
        page = try await get(cursor)
        items += page.items
      }
      if page.timestamp == stamp { return ServerCopy(stamp: stamp, items: try items.map { try Self.text($0) }) }
    }
    throw Unexpected("the list never stands still")
  }

  /// A text that is equal for equal values.
  static func text(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }
}

/// A list as the server sends it.
struct ServerCopy: Sendable {
  let stamp: Stamp?
  /// The items as JSON, in their order.
  let items: [String]
}
