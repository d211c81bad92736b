import TestSupport
import Testing

@testable import MusterKit

/// Friend requests that are cancelled on a phone without a network, while other devices are used.
@MainActor @Suite struct CancelledRequestTests {
  private struct Scene {
    let ana: TestUser
    let ben: TestUser
    /// Of ana, without a network.
    let phone: Phone
    let id = FriendRequest.ID()

    @MainActor func askAndCancel() async throws {
      let person = Person(id: ben.id, username: ben.username, displayName: ben.username)
      try await phone.store.perform(.sendRequest(to: person, id: id))
      try await phone.store.perform(.cancelRequest(id))
    }

    /// The reasons why the service has refused writes.
    @MainActor func refusals() async throws -> [Problem.Slug] {
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.pending.isEmpty)
      return phone.store.outbox.refusals.compactMap {
        if case .refused(let problem) = $0.reason { problem.type } else { Problem.Slug(rawValue: "\($0.reason)") }
      }
    }
  }

  /// - Parameter isSent: whether the phone has sent the request before.
  private func run(isSent: Bool = false, _ body: @MainActor (Scene) async throws -> Void) async throws {
    let url = try await MusterServer.shared.value.url
    let ana = try await TestUser.register("ana", at: url)
    let ben = try await TestUser.register("ben", at: url)
    let phone = try await Phone(of: ana, at: try await MusterServer.shared.value)
    let scene = Scene(ana: ana, ben: ben, phone: phone)
    if isSent { try await ana.client.friends.requests.send(to: ben.id, id: scene.id) }
    try await phone.catchUp()
    phone.proxy.isOffline = true
    try await body(scene)
    await phone.end()
  }

  @Test func `the request of another device stays, and there is nothing to cancel`() async throws {
    try await run { scene in
      try await scene.askAndCancel()
      let other = try await scene.ana.client.friends.requests.send(to: scene.ben.id)
      #expect(try await scene.refusals() == [])
      #expect(scene.phone.store.sentFriendRequests.items.map(\.id) == [other.id])
    }
  }

  @Test func `a request that was refused needs no cancelling`() async throws {
    try await run { scene in
      try await scene.askAndCancel()
      try await scene.ana.befriend(scene.ben)
      #expect(try await scene.refusals() == [.alreadyFriends])
    }
  }

  @Test func `a request that was cancelled or declined meanwhile is cancelled, but not one that was accepted`()
    async throws
  {
    for (end, refusals) in [("cancel", []), ("decline", []), ("accept", [Problem.Slug.friendRequestClosed])] {
      try await run(isSent: true) { scene in
        try await scene.phone.store.perform(.cancelRequest(scene.id))
        switch end {
        case "cancel": try await scene.ana.client.friends.requests.cancel(scene.id)
        case "decline": try await scene.ben.client.friends.requests.decline(scene.id)
        default: try await scene.ben.client.friends.requests.accept(scene.id)
        }
        #expect(try await scene.refusals() == refusals)
        #expect(scene.phone.store.sentFriendRequests.items.isEmpty)
      }
    }
  }
}
