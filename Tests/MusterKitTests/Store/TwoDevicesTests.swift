import Foundation
import MusterKit
import TestSupport
import Testing

/// Two phones of one user, and phones that change hands.
@MainActor @Suite struct TwoDevicesTests {
  @Test func `a change on one phone reaches the other by the stream`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let event = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let phones = [try await Phone(of: ana, at: shared), try await Phone(of: ana, at: shared, seed: 2)]
    for phone in phones {
      phone.store.start()
      try await phone.catchUp()
    }
    func status(_ phone: Phone) -> GuestStatus? { phone.store.events.items.first?.myStatus }
    try await phones[0].store.perform(.answer(.going, to: event.id))
    #expect(status(phones[0]) == .going)
    try await eventually { status(phones[1]) == .going && phones[1].store.events.isUpToDate }
    // Changes by others also arrive.
    try await ben.client.events.edit(event.id, applying: EventEdit(title: "Lunch"))
    for phone in phones {
      try await eventually {
        phone.store.events.items.first?.title == "Lunch"
          && phone.store.notifications.items.contains { $0.type == .eventUpdated }
      }
    }
    for phone in phones {
      try await phone.expectTruth()
      await phone.end()
    }
  }

  @Test func `conflicting answers from two phones end equal on both`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let event = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let phones = [try await Phone(of: ana, at: shared), try await Phone(of: ana, at: shared, seed: 2)]
    for phone in phones { try await phone.catchUp() }
    for (phone, answer) in zip(phones, [Answer.going, .declined]) {
      phone.proxy.isOffline = true
      phone.store.start()
      try await phone.store.perform(.answer(answer, to: event.id))
      #expect(phone.store.events.items.first?.myStatus.rawValue == answer.rawValue)
    }
    for phone in phones { phone.proxy.isOffline = false }
    for phone in phones { try await phone.catchUp() }
    let guest = try #require(try await ben.client.events.guests(of: event.id).items.first)
    for phone in phones {
      try await eventually {
        phone.store.events.items.first?.myStatus.rawValue == guest.status.rawValue && phone.store.events.isUpToDate
      }
      try await phone.expectTruth()
      await phone.end()
    }
  }

  @Test func `a request that meets the other user's is cancelled too late, and the user learns why`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = (
      try await TestUser.register("ana", at: shared.url), try await TestUser.register("ben", at: shared.url)
    )
    let phone = try await Phone(of: ana, at: shared)
    try await phone.catchUp()
    phone.proxy.isOffline = true
    let request = FriendRequest.ID()
    try await phone.store.perform(.sendRequest(to: try await ben.person, id: request))
    try await phone.store.perform(.cancelRequest(request))
    try await ben.client.friends.requests.send(to: ana.id)
    phone.proxy.isOffline = false
    try await phone.catchUp()
    let refused = try #require(phone.store.outbox.refusals.first)
    #expect(phone.store.outbox.refusals.count == 1 && refused.write == .cancelRequest(request))
    guard case .refused(let problem) = refused.reason else { throw Unexpected("\(refused.reason)") }
    #expect(problem.type == .friendRequestClosed)
    #expect(phone.store.friends.items.map(\.id) == [ben.id])
    try await phone.expectTruth()
    await phone.end()
  }

  @Test func `crossing edits of an event leave the later version on both phones, and a refusal on one`() async throws {
    let shared = try await MusterServer.shared.value
    let ana = try await TestUser.register("ana", at: shared.url)
    let event = try await ana.client.events.create(.planned("Picnic"))
    let phones = [try await Phone(of: ana, at: shared), try await Phone(of: ana, at: shared, seed: 2)]
    for phone in phones { try await phone.catchUp() }
    for (phone, title) in zip(phones, ["One", "Two"]) {
      phone.proxy.isOffline = true
      try await phone.store.perform(.editEvent(event.id, applying: EventEdit(title: title), ifVersion: event.version))
    }
    for phone in phones {
      phone.proxy.isOffline = false
      try await phone.catchUp()
    }
    try await phones[0].expectTruth()
    #expect(phones.map { $0.store.events.items.map(\.title) } == [["One"], ["One"]])
    #expect(phones[0].store.outbox.refusals.isEmpty)
    guard case .refused(let problem) = phones[1].store.outbox.refusals.first?.reason else {
      Issue.record("\(phones[1].store.outbox.refusals)")
      return
    }
    #expect(problem.type == .lostUpdate)
    for phone in phones { await phone.end() }
  }

  @Test func `an answer of Friday does not overwrite that of Sunday, and the user decides on Monday`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    let event = try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let phone = try await Phone(of: ana, at: shared)
    try await phone.catchUp()
    phone.proxy.isOffline = true
    try await phone.store.perform(.answer(.going, to: event.id))
    #expect(phone.store.events.items.map(\.myStatus) == [.going])
    try phone.relaunch()
    // In a browser.
    try await ana.client.events.answer(.declined, to: event.id)
    phone.proxy.isOffline = false
    try await phone.catchUp()
    try await phone.expectTruth()
    #expect(phone.store.events.items.map(\.myStatus) == [.declined])
    #expect(try await ben.client.events.get(event.id).counts?.going == 0)
    let refusal = try #require(phone.store.outbox.refusals.first)
    #expect(refusal.write == .answer(.going, to: event.id) && refusal.newerState == .answer(.declined, plusOnes: 0))
    try await phone.store.sendAgain(refusal)
    try await phone.catchUp()
    #expect(try await ben.client.events.get(event.id).counts?.going == 1)
    #expect(phone.store.outbox.refusals.isEmpty)
    try await phone.expectTruth()
    await phone.end()
  }

  @Test func `two phones edit different members of an event and of the profile, and nothing is lost`() async throws {
    let shared = try await MusterServer.shared.value
    let ana = try await TestUser.register("ana", at: shared.url)
    let event = try await ana.client.events.create(.planned("Picnic"))
    let phones = [try await Phone(of: ana, at: shared), try await Phone(of: ana, at: shared, seed: 2)]
    for phone in phones {
      try await phone.catchUp()
      phone.proxy.isOffline = true
    }
    let writes: [[Write]] = [
      [.editEvent(event.id, applying: EventEdit(title: "One")), .editProfile(ProfileEdit(displayName: "Anita"))],
      [.editEvent(event.id, applying: EventEdit(capacity: .set(3))), .editProfile(ProfileEdit(bio: .set("Swims.")))],
    ]
    for (phone, writes) in zip(phones, writes) { for write in writes { try await phone.store.perform(write) } }
    for phone in phones {
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.isEmpty)
    }
    let (edited, me) = (try await ana.client.events.get(event.id), try await ana.client.me.get())
    #expect(edited.title == "One" && edited.capacity == 3 && edited.version == 3)
    #expect(me.displayName == "Anita" && me.bio == "Swims.")
    for phone in phones { await phone.end() }
  }

  @Test func `another user of the same folder sees nothing of the first one`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    try await ana.client.events.create(.planned("Secret"))
    let cleo = try await TestUser.register("cleo", at: shared.url)
    let phone = try await Phone(of: ana, at: shared)
    try await phone.catchUp()
    phone.proxy.isOffline = true
    try await phone.store.perform(.createEvent(.planned("Pending secret")))
    phone.store.stop()
    #expect(try texts(in: phone.folder).contains { $0.contains("Secret") })

    let other = try MusterStore(client: cleo.client, folder: phone.folder)
    await other.load()
    #expect(other.events.items.isEmpty && !other.events.isLoaded && other.friends.items.isEmpty)
    #expect(other.outbox.pending.isEmpty)
    try await other.refresh()
    #expect(other.profile.value?.id == cleo.id)
    #expect(try !texts(in: phone.folder).contains { $0.contains("Secret") || $0.contains(ben.username) })
    // What was never sent stays, until the app decides.
    #expect(try texts(in: phone.folder).contains { $0.contains("Pending secret") })
    try await MusterStore.forgetEverything(of: ana.id, in: phone.folder)
    #expect(try !texts(in: phone.folder).contains { $0.contains("ecret") })
    #expect(try await cleo.client.events.list().items.isEmpty)
    await phone.end()
  }

  @Test func `forgetting deletes the copies and the outbox, and no request brings them back`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let phone = try await Phone(of: ana, at: shared)
    try await phone.catchUp()
    // A refresh is under way when the user logs out.
    phone.proxy.plan { _, _ in .delay(milliseconds: 200) }
    try await phone.store.perform(.editProfile(ProfileEdit(bio: .set("Forgotten."))))
    phone.proxy.takeExchanges()
    let refreshing = Task { try await phone.store.refresh() }
    try await eventually { !phone.proxy.exchanges.isEmpty }
    try await phone.client.auth.logOut()
    try await phone.store.forgetEverything()
    _ = await refreshing.result
    #expect(phone.store.events.items.isEmpty && phone.store.profile.value == nil)
    #expect(phone.store.outbox.pending.isEmpty)
    #expect(try texts(in: phone.folder) == [])
    await #expect(throws: StoreError.forgotten) { try await phone.store.perform(.markAllRead()) }
    #expect(throws: MusterError.loggedOut) { try MusterStore(client: phone.client, folder: phone.folder) }
    await phone.end()
  }

  @Test func `an ended session stops the store, and keeps the copies and the outbox for the same user`() async throws {
    let shared = try await MusterServer.shared.value
    let (ana, ben) = try await TestUser.friends("ana", "ben", at: shared.url)
    try await ben.client.events.create(.planned("Picnic", inviting: [ana]))
    let phone = try await Phone(of: ana, at: shared)
    phone.store.start()
    try await phone.catchUp()
    let session = try #require(
      try await ana.client.auth.sessions().items.first { !$0.current })
    try await ana.client.auth.endSession(session.id)
    try await eventually { phone.store.isLoggedOut }
    #expect(phone.store.events.items.map(\.title) == ["Picnic"] && !phone.store.events.isUpToDate)
    try await phone.store.perform(.editProfile(ProfileEdit(displayName: "Anita")))
    await #expect(throws: MusterError.loggedOut) { try await phone.store.refresh() }
    _ = try await phone.client.auth.logIn(as: ana.username, password: ana.password)
    try phone.relaunch()
    try await phone.catchUp()
    #expect(try await ana.client.me.get().displayName == "Anita")
    #expect(!phone.store.isLoggedOut)
    try await phone.expectTruth()
    await phone.end()
  }

  /// The texts of all files in a folder.
  private func texts(in folder: URL) throws -> [String] {
    guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
    return try FileManager.default.subpathsOfDirectory(atPath: folder.path).compactMap { path in
      (try? Data(contentsOf: folder.appending(path: path))).map { String(decoding: $0, as: UTF8.self) }
    }.filter { !$0.isEmpty }
  }
}
