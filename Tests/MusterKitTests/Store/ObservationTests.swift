import Foundation
import Observation
import Testing

@testable import MusterKit

/// The rule that SwiftUI relies on: the reader of a value is called before it changes.
@MainActor @Suite struct ObservationTests {
  private let event = ScriptedServer.event(1)

  private func run(_ body: @MainActor (MusterStore, ScriptedServer) async throws -> Void) async throws {
    try await TestStore.run { test, server in
      try server.set(.events, [event])
      try await test.store.refresh()
      try await body(test.store, server)
    }
  }

  /// Checks whether `change` changes what `read` reads.
  private func expect(
    _ isExpected: Bool = true, sourceLocation: SourceLocation = #_sourceLocation, of read: () -> Void,
    in change: @MainActor () async throws -> Void
  ) async throws {
    let isChanged = Guarded(false)
    withObservationTracking(read) { isChanged.withLock { $0 = true } }
    try await change()
    #expect(isChanged.withLock { $0 } == isExpected, sourceLocation: sourceLocation)
  }

  @Test func `a list that changes calls its reader, and an unchanged one does not`() async throws {
    try await run { store, server in
      try await expect(of: { _ = store.events.items }) {
        try server.set(.events, [event, ScriptedServer.event(2)])
        try await store.refresh()
      }
      #expect(store.events.items.count == 2)
      try await expect(false, of: { _ = store.events.items }) { try await store.refresh() }
      try await expect(false, of: { _ = store.events.items }) {
        try server.set(.friends, [Friend(user: ScriptedServer.ben, since: ScriptedServer.noon)])
        try await store.refresh()
      }
      #expect(store.friends.items.count == 1)
    }
  }

  @Test func `a long list with a pending write calls no reader when another list changes`() async throws {
    try await run { store, server in
      try server.set(.events, (1...600).map { ScriptedServer.event($0) })
      try await store.refresh()
      server.fail { $0.isWrite ? .status(503, .busy) : .none }
      try await store.perform(.answer(.going, to: event.id))
      try await expect(false, of: { _ = store.events.items }) {
        try server.set(.friends, [Friend(user: ScriptedServer.ben, since: ScriptedServer.noon)])
        _ = await failure { try await store.refresh() }
      }
      #expect(store.friends.items.count == 1 && store.events.hasPendingWrites)
      try await expect(of: { _ = store.events.items }) {
        try server.set(.events, (1...601).map { ScriptedServer.event($0) })
        _ = await failure { try await store.refresh() }
      }
      #expect(store.events.items.count == 601 && store.events.items.first { $0.id == event.id }?.myStatus == .going)
      server.fail { _ in .none }
      try await store.refresh()
    }
  }

  @Test func `every list and object calls its reader`() async throws {
    try await TestStore.run { test, server in
      let (store, request) = (test.store, Self.request)
      try await store.refresh()
      try server.set(.profile, [User(id: ScriptedServer.ana.id, username: "ana", displayName: "A", createdAt: .now)])
      try server.set(.friends, [Friend(user: ScriptedServer.ben, since: ScriptedServer.noon)])
      try server.set(.friendRequests, [request])
      try server.set(.sentFriendRequests, [request])
      try server.set(.events, [event])
      try server.set(.invitations, [Invitation(event: event, status: .going, invitedAt: ScriptedServer.noon)])
      try server.set(.blocks, [Block(user: ScriptedServer.ben, since: ScriptedServer.noon)])
      try server.set(.notifications, [InboxItem(id: .init(), createdAt: .now, type: .eventInvited, message: "m")])
      try server.set(.notificationPreferences, [NotificationPreferences([.eventUpdated: false])])
      let changed = Guarded<Set<String>>([])
      func observe(_ name: String, _ read: () -> Void) {
        withObservationTracking(read) { changed.withLock { _ = $0.insert(name) } }
      }
      observe("profile") { _ = store.profile.value }
      observe("friends") { _ = store.friends.items }
      observe("friendRequests") { _ = store.friendRequests.items }
      observe("sentFriendRequests") { _ = store.sentFriendRequests.items }
      observe("events") { _ = store.events.items }
      observe("invitations") { _ = store.invitations.items }
      observe("blocks") { _ = store.blocks.items }
      observe("notifications") { _ = store.notifications.items }
      observe("notificationPreferences") { _ = store.notificationPreferences.value }
      try await store.refresh()
      #expect(changed.withLock { $0 } == Set(CacheCollection.allCases.map(\.rawValue)))
    }
  }

  @Test func `a write calls the readers of the lists, of the outbox and of what a list claims`() async throws {
    try await run { store, server in
      let answer: @MainActor () async throws -> Void = {
        try await store.perform(
          .answer(store.events.items.first?.myStatus == .going ? .maybe : .going, to: event.id))
      }
      try await expect(of: { _ = store.events.items }, in: answer)
      try await expect(of: { _ = store.outbox.pending }, in: answer)
      try await expect(of: { _ = store.outbox.pending }) { try await store.refresh() }
      #expect(store.outbox.pending.isEmpty)
      try await expect(of: { _ = store.events.hasPendingWrites }, in: answer)
      try await expect(of: { _ = store.events.isUpToDate }) { try await store.refresh() }

      server.fail { $0.isWrite ? .status(409, .eventCancelled) : .none }
      try await answer()
      try await expect(of: { _ = store.outbox.refusals }) { try await store.refresh() }
      let refusal = try #require(store.outbox.refusals.first)
      try await expect(of: { _ = store.outbox.refusals }) { try await store.outbox.dismiss(refusal) }
      #expect(store.outbox.refusals.isEmpty)
    }
  }

  @Test func `the store calls the readers of its errors`() async throws {
    try await run { store, server in
      server.takeOffline()
      let fail: @MainActor () async throws -> Void = { _ = await failure { try await store.refresh() } }
      try await expect(of: { _ = store.isOffline }, in: fail)
      server.takeOffline(false)
      try await expect(of: { _ = store.lastError }) { try await store.refresh() }
      #expect(!store.isOffline && store.lastError == nil)
    }
  }

  private static let request = FriendRequest(
    id: .init(), sender: ScriptedServer.ben, receiver: ScriptedServer.ana, status: .pending,
    createdAt: ScriptedServer.noon)
}
