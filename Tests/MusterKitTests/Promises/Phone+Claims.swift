import Foundation
import TestSupport
import Testing

@testable import MusterKit

extension Phone {
  /// The lists that the store shows and claims to be up to date.
  var claims: [StoreClaim] {
    get throws {
      try [
        claim(.profile, store.profile), claim(.friends, store.friends), claim(.friendRequests, store.friendRequests),
        claim(.sentFriendRequests, store.sentFriendRequests), claim(.events, store.events),
        claim(.invitations, store.invitations), claim(.blocks, store.blocks),
        claim(.notifications, store.notifications), claim(.notificationPreferences, store.notificationPreferences),
        claim(nil, store.pastEvents),
      ].compactMap { $0 }
    }
  }

  /// Whether the store claims that everything is up to date.
  var claimsAll: Bool { get throws { try claims.count == CacheCollection.allCases.count + 1 } }

  private func claim<Item: Encodable>(_ collection: CacheCollection?, _ list: StoredList<Item>) throws -> StoreClaim? {
    guard list.isUpToDate, let asOf = list.upToDateAsOf.flatMap(clock.trueTime) else { return nil }
    return StoreClaim(
      device: name, collection: collection, stamp: collection.flatMap { store.statuses[$0]?.stamp }, asOf: asOf,
      items: try list.items.map { try Oracle.text($0) }, hasMore: list.hasMore)
  }

  private func claim<Value: Encodable>(
    _ collection: CacheCollection, _ object: StoredObject<Value>
  ) throws -> StoreClaim? {
    guard object.isUpToDate, let asOf = object.upToDateAsOf.flatMap(clock.trueTime) else { return nil }
    return StoreClaim(
      device: name, collection: collection, stamp: store.statuses[collection]?.stamp, asOf: asOf,
      items: try object.value.map { [try Oracle.text($0)] } ?? [])
  }

  /// Refreshes, and checks that the store claims to be up to date, and shows what the server sends.
  func expectTruth(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    try await catchUp()
    // Late announcements of earlier changes invalidate copies, which the store validates by itself only while it runs.
    try await eventually {
      if try !claimsAll { try await catchUp() }
      return try claimsAll
    }
    let oracle = Oracle(client: user.client)
    let (server, past) = (try await oracle.copies(), try await oracle.pastEvents())
    for claim in try claims {
      let copy = try #require(claim.collection.map { server[$0] } ?? past)
      #expect(claim.finding(against: copy) == .holds, sourceLocation: sourceLocation)
    }
  }
}
