import Foundation
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// Searching for people and becoming friends, against a service.
@MainActor @Suite struct AppFriendTests {
  private func found(_ name: String, by search: PeopleSearch) async throws -> PeopleSearch.Relation {
    search.query = name
    await search.search()
    let user = try #require(search.users.first { $0.username == name }, "\(search.failure ?? "")")
    return search.relation(to: user)
  }

  @Test func `a search shows the right button from the first request to the friendship, before anything is sent`()
    async throws
  {
    let server = try await MusterServer.shared.value
    let (ana, ben) = (AppPhone(at: server), AppPhone(at: server))
    let (anaUser, benUser) = (try await ana.register("ana"), try await ben.register("ben"))
    let (anaSearch, benSearch) = (PeopleSearch(in: try ana.home), PeopleSearch(in: try ben.home))
    #expect(try await found(benUser.username, by: anaSearch) == .none)
    let user = try #require(anaSearch.users.first { $0.id == benUser.id })
    try await ana.home.perform(.sendRequest(to: user.person))
    #expect(try anaSearch.relation(to: user) == .asked && ana.home.unsent == 1)
    try await ana.home.store.refresh()
    #expect(try anaSearch.relation(to: user) == .asked && ana.home.unsent == 0)

    // Ben's phone does not have the request yet.
    #expect(try await found(anaUser.username, by: benSearch) == .asksYou(nil))
    try await ben.refresh { !$0.store.friendRequests.items.isEmpty }
    let request = try #require(try ben.home.store.friendRequests.items.first)
    #expect(try await found(anaUser.username, by: benSearch) == .asksYou(request.id))
    try await ben.home.perform(.acceptRequest(request.id))
    #expect(try await found(anaUser.username, by: benSearch) == .friend)
    try await ben.home.store.refresh()
    try await ana.refresh { !$0.store.friends.items.isEmpty }
    #expect(anaSearch.relation(to: user) == .friend)
  }

  @Test func `a user without a verified address learns why no one answers`() async throws {
    let server = try await MusterServer.shared.value
    let (ana, ben) = (AppPhone(at: server), AppPhone(at: server))
    try await ana.register("ana", isVerified: false)
    let user = try await ben.register("ben")
    #expect(try ana.home.note == "Others do not see your requests until you open the link in our mail.")
    #expect(try ben.home.note == nil)
    try await ana.home.perform(.sendRequest(to: user.person))
    try await ana.home.store.refresh()
    try await ben.home.store.refresh()
    #expect(try ben.home.store.friendRequests.items.isEmpty)
  }

  @Test func `a search says that it has found no one, or that it needs a network`() async throws {
    let phone = AppPhone(at: try await MusterServer.shared.value)
    try await phone.register("ana")
    let search = PeopleSearch(in: try phone.home)
    search.query = "zzqqxxyyww"
    await search.search()
    #expect(search.isEmpty && search.failure == nil)
    phone.network.isLost.change { $0 = true }
    await search.search()
    #expect(search.failure == "The server cannot be reached. Please check your connection.")
    search.query = " "
    await search.search()
    #expect(search.users.isEmpty && !search.isEmpty && search.failure == nil)
  }

  @Test func `a request to a user who takes none is refused in words`() async throws {
    let server = try await MusterServer.shared.value
    let (ana, ben) = (AppPhone(at: server), AppPhone(at: server))
    try await ana.register("ana")
    let user = try await ben.register("ben")
    try await ben.home.perform(.editProfile(ProfileEdit(requestsFrom: .noOne)))
    try await ben.home.store.refresh()
    let home = try ana.home
    await home.perform(.sendRequest(to: user.person))
    try await home.store.refresh()
    let refusals = Refusals(home: home)
    let refusal = try #require(refusals.all.first)
    #expect(refusal.sentence == "This user does not accept friend requests.")
    #expect(refusals.title(of: refusal) == "Your friend request to \(user.displayName)")
    #expect(refusals.againButton(refusal) == nil)
  }
}
