import Foundation
import TestSupport
import Testing

@testable import MusterKit

/// Pictures that are chosen on a phone without a network.
@MainActor @Suite struct PictureWriteTests {
  private static func file(_ number: Int) -> Data { .pixel(number) }

  private static func picture(_ number: Int) -> NewPicture { NewPicture(file(number), contentType: "image/png") }

  private struct Scene {
    let server: MusterServer
    let ana: TestUser
    let phone: Phone

    @MainActor var shown: URL? { phone.store.profile.value?.pictureUrl }

    @MainActor var files: [String] { (try? phone.store.folder.names(in: OutboxFiles.subfolder)) ?? [] }

    func current() async throws -> URL? { try await ana.client.me.get().pictureUrl }
  }

  private func run(_ body: @MainActor (Scene) async throws -> Void) async throws {
    let server = try await MusterServer.shared.value
    let ana = try await TestUser.register("ana", at: server.url)
    let phone = try await Phone(of: ana, at: server)
    try await phone.catchUp()
    phone.proxy.isOffline = true
    try await body(Scene(server: server, ana: ana, phone: phone))
    await phone.end()
  }

  @Test func `a picture shows from its file, also after a relaunch, and is sent when there is a network`() async throws
  {
    try await run { scene in
      let phone = scene.phone
      try await phone.store.perform(.setPicture(Self.picture(1)))
      for _ in 0..<2 {
        await phone.store.load()
        let shown = try #require(scene.shown)
        #expect(shown.isFileURL)
        #expect(try Data(contentsOf: shown) == Self.file(1))
        #expect(!phone.store.profile.isUpToDate && scene.files.count == 2)
        try phone.relaunch()
      }
      phone.proxy.isOffline = false
      try await phone.catchUp()
      let now = try await scene.current()
      #expect(now?.isFileURL == false && scene.shown == now && scene.files.isEmpty)
      #expect(phone.store.outbox.refusals.isEmpty)
    }
  }

  @Test func `several changes in a row all happen, and the last one stays`() async throws {
    try await run { scene in
      let phone = scene.phone
      try await phone.store.perform(.setPicture(Self.picture(1)))
      try await phone.store.perform(.editProfile(ProfileEdit(bio: .set("Hello."))))
      let second = Self.picture(2)
      for _ in 0..<2 { try await phone.store.perform(.setPicture(second)) }
      try await phone.store.perform(.removePicture)
      #expect(scene.shown == nil)
      try await phone.store.perform(.setPicture(Self.picture(3)))
      #expect(scene.shown?.isFileURL == true)
      try phone.relaunch()
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.isEmpty && phone.store.outbox.pending.isEmpty && scene.files.isEmpty)
      let profile = try await scene.ana.client.me.get()
      #expect(profile.pictureUrl != nil && profile.bio == "Hello.")
    }
  }

  @Test func `a picture that was set elsewhere meanwhile stays, and the user is asked`() async throws {
    try await run { scene in
      let phone = scene.phone
      try await phone.store.perform(.setPicture(Self.picture(1)))
      let newer = try await scene.ana.client.me.setPicture(Self.file(2), contentType: "image/png").pictureUrl
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(try await scene.current() == newer && scene.shown == newer)
      let refusal = try #require(phone.store.outbox.refusals.first)
      guard case .profile(let profile)? = refusal.newerState else {
        Issue.record("\(refusal)")
        return
      }
      #expect(profile.pictureUrl == newer)
      // The user sees both, also after a relaunch.
      try phone.relaunch()
      await phone.store.load()
      let again = try #require(phone.store.outbox.refusals.first)
      guard case .setPicture(let mine)? = again.write else {
        Issue.record("\(again)")
        return
      }
      #expect(try mine.bytes() == Self.file(1))
      try await phone.store.sendAgain(again)
      try await phone.catchUp()
      #expect(try await scene.current() != newer)
      #expect(phone.store.outbox.refusals.isEmpty && scene.files.isEmpty)
    }
  }

  @Test func `a removal does not remove a newer picture, and a dismissed picture leaves no file`() async throws {
    try await run { scene in
      let phone = scene.phone
      phone.proxy.isOffline = false
      try await scene.ana.client.me.setPicture(Self.file(1), contentType: "image/png")
      try await phone.catchUp()
      phone.proxy.isOffline = true
      try await phone.store.perform(.removePicture)
      try await phone.store.perform(.setPicture(Self.picture(2)))
      let newer = try await scene.ana.client.me.setPicture(Self.file(3), contentType: "image/png").pictureUrl
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(try await scene.current() == newer)
      #expect(phone.store.outbox.refusals.count == 2)
      for refusal in phone.store.outbox.refusals { try await phone.store.outbox.dismiss(refusal) }
      #expect(scene.files.isEmpty)
    }
  }

  @Test func `a picture that is set elsewhere right after a removal stays, and the user is asked`() async throws {
    try await TestStore.run { test, server in
      func user(_ picture: Int) -> User {
        var user = User(
          id: ScriptedServer.ana.id, username: "ana", displayName: "Ana", createdAt: ScriptedServer.noon)
        user.pictureUrl = URL(string: "http://muster.test/pictures/\(picture)")
        return user
      }
      try server.set(.profile, [user(1)])
      try await test.store.refresh()
      try await test.store.perform(.removePicture)
      try await test.store.perform(.setPicture(Self.picture(1)))
      let elsewhere = user(2)
      server.state.withLock { state in
        state.after = { [server] request in
          if request.method == "DELETE" { try? server.set(.profile, [elsewhere]) }
        }
      }
      try await test.store.refresh()
      #expect(test.store.profile.value?.pictureUrl == elsewhere.pictureUrl)
      guard case .profile(let newer)? = test.store.outbox.refusals.first?.newerState else {
        Issue.record("\(test.store.outbox.refusals)")
        return
      }
      #expect(newer.pictureUrl == elsewhere.pictureUrl && test.store.outbox.refusals.count == 1)
      #expect(server.received(\.isWrite).map(\.method) == ["DELETE"])
    }
  }

  @Test func `other changes of the profile are no reason to ask`() async throws {
    try await run { scene in
      let phone = scene.phone
      try await phone.store.perform(.setPicture(Self.picture(1)))
      try await scene.ana.client.me.edit(ProfileEdit(bio: .set("Elsewhere.")))
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.isEmpty && phone.store.profile.value?.bio == "Elsewhere.")
      #expect(try await scene.current() != nil)
    }
  }

  @Test func `a picture waits while the service still works on an earlier one`() async throws {
    try await TestStore.run { test, server in
      try await test.store.refresh()
      server.fail { $0.isWrite ? .status(429, .uploadInProgress, retryAfter: 1) : .none }
      try await test.store.perform(.setPicture(Self.picture(1)))
      #expect(await failure { try await test.store.refresh() }?.problem?.type == .uploadInProgress)
      #expect(test.store.outbox.refusals.isEmpty && test.store.outbox.pending.count == 1)
      server.fail { _ in .none }
      try await test.store.refresh()
      #expect(test.store.outbox.pending.isEmpty && test.store.profile.value?.pictureUrl?.isFileURL == false)
    }
  }

  @Test func `a picture whose response was lost is sent again at any age`() async throws {
    try await run { scene in
      let phone = scene.phone
      try await phone.store.perform(.setPicture(Self.picture(1)))
      phone.proxy.plan { exchange, _ in exchange.method == "PUT" ? .loseResponse : .none }
      phone.proxy.isOffline = false
      await #expect(throws: MusterError.self) { try await phone.store.refresh() }
      let first = try await scene.current()
      #expect(first != nil && phone.store.outbox.pending.count == 1)
      try await scene.server.forgetKeys()
      phone.proxy.plan { _, _ in .none }
      try await phone.catchUp()
      #expect(try await scene.current() == first)
      #expect(phone.store.outbox.refusals.isEmpty && phone.store.outbox.pending.isEmpty)
    }
  }

  @Test func `a picture that is too large, or has no room on the disk, is refused at once and leaves nothing`()
    async throws
  {
    try await run { scene in
      let (phone, store) = (scene.phone, scene.phone.store)
      let large = NewPicture(Data(count: NewPicture.maximumLength + 1), contentType: "image/png")
      await #expect(throws: StoreError.pictureTooLarge) { try await store.perform(.setPicture(large)) }
      phone.isFull.withLock { $0 = true }
      let error = await #expect(throws: StoreError.self) { try await store.perform(.setPicture(Self.picture(1))) }
      guard case .disk? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(scene.files.isEmpty && scene.shown == nil && store.outbox.pending.isEmpty)
      phone.isFull.withLock { $0 = false }
      try await store.perform(.setPicture(Self.picture(1)))
      #expect(scene.files.count == 2)
    }
  }

  @Test func `a picture whose file is gone is a refusal, and one whose write is gone is erased`() async throws {
    try await run { scene in
      let phone = scene.phone
      try await phone.store.perform(.setPicture(Self.picture(1)))
      try FileManager.default.removeItem(at: try #require(scene.shown))
      try await phone.store.perform(.editProfile(ProfileEdit(bio: .set("Hello."))))
      let orphan = phone.store.folder.file("\(OutboxFiles.subfolder)/\(OutboxFiles.pictureName(of: UUID()))")
      let fresh = phone.store.folder.file("\(OutboxFiles.subfolder)/\(OutboxFiles.pictureName(of: UUID()))")
      for file in [orphan, fresh] { try Self.file(2).write(to: file) }
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -7200)], ofItemAtPath: orphan.path)
      phone.proxy.isOffline = false
      try await phone.catchUp()
      #expect(phone.store.outbox.refusals.map(\.reason) == [.damaged(contents: "")])
      #expect(try await scene.ana.client.me.get().bio == "Hello.")
      #expect(scene.files.contains(fresh.lastPathComponent) && !scene.files.contains(orphan.lastPathComponent))
    }
  }
}
