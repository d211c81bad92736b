import Foundation
import Postgres
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// The user's own profile, the end of the account, and reports, against a service.
@MainActor @Suite struct AppProfileTests {
  @Test func `the profile changes without a network, and only what the user has changed`() async throws {
    let server = try await MusterServer.shared.value
    let (phone, other) = (AppPhone(at: server), AppPhone(at: server))
    let ana = try await phone.register("ana")
    try await other.logIn(ana)
    try await other.home.store.refresh()
    phone.network.isLost.change { $0 = true }
    let form = ProfileForm(of: phone.account, in: try phone.home)
    #expect(form.username == ana.username && !form.canSave)
    form.displayName = " "
    #expect(!form.canSave)
    form.displayName = " Ana D. "
    #expect(form.canSave)
    #expect(await form.save())
    #expect(try phone.home.store.profile.value?.displayName == "Ana D." && phone.home.unsent == 1)

    let elsewhere = ProfileForm(of: other.account, in: try other.home)
    elsewhere.bio = "Climbs on Tuesdays."
    #expect(await elsewhere.save())
    try await other.home.store.refresh()
    phone.network.isLost.change { $0 = false }
    try await phone.home.store.refresh()
    let profile = try #require(try phone.home.store.profile.value)
    #expect(profile.displayName == "Ana D." && profile.bio == "Climbs on Tuesdays.")
    #expect(try Refusals(home: phone.home).all.isEmpty)

    let again = ProfileForm(of: phone.account, in: try phone.home)
    again.bio = ""
    #expect(await again.save())
    try await phone.home.store.refresh()
    #expect(try phone.home.store.profile.value?.bio == nil)
  }

  @Test func `deleting the account needs the password, and leaves nothing on the phone`() async throws {
    let phone = AppPhone(at: try await MusterServer.shared.value)
    let user = try await phone.register("ana")
    phone.network.isLost.change { $0 = true }
    try await phone.home.perform(.editProfile(ProfileEdit(displayName: "Ana D.")))
    let form = ProfileForm(of: phone.account, in: try phone.home)
    #expect(!form.needsCode && !form.canDelete)
    form.proof = AppPhone.password
    #expect(form.canDelete)
    await form.deleteAccount()
    #expect(form.failure == "The server cannot be reached. Please check your connection." && form.proof.isEmpty)
    #expect(try phone.home.unsent == 1)

    phone.network.isLost.change { $0 = false }
    form.proof = "guess"
    await form.deleteAccount()
    #expect(form.failure == "The password is wrong.")
    #expect(try phone.home.unsent == 1)

    #expect(form.deletionNote.hasSuffix("One change was never sent, and is lost."))
    // The store learns first that the session has ended.
    let store = try phone.home.store
    phone.network.beforeResponse.change {
      $0 = { request in if request.method == "DELETE" { try? await store.refresh() } }
    }
    form.proof = AppPhone.password
    await form.deleteAccount()
    #expect(store.isLoggedOut)
    #expect(form.failure == nil && phone.account.home == nil && phone.account.question == nil)
    #expect(try MusterStore.usersWithUnsentWrites(in: phone.folder) == [])
    phone.relaunch()
    #expect(phone.account.home == nil)
    let login = SignInForm()
    (login.username, login.password) = (user.username, AppPhone.password)
    await login.submit(to: phone.account, device: "phone")
    #expect(login.failure == "The name or the password is wrong.")
  }

  @Test func `a user without a password gets a code by mail`() async throws {
    let server = try await MusterServer.shared.value
    let phone = AppPhone(at: server)
    let user = try await phone.register("ana")
    let changed: Int = try await server.value(
      """
      WITH changed AS (UPDATE users SET password_hash = NULL WHERE id = \(user.id.rawValue) RETURNING 1)
      SELECT count(*) FROM changed
      """)
    #expect(changed == 1)
    // The profile on the phone learns of it with the next change.
    try await phone.home.perform(.editProfile(ProfileEdit(displayName: "Ana D.")))
    try await phone.home.store.refresh()
    let form = ProfileForm(of: phone.account, in: try phone.home)
    #expect(form.needsCode && !form.isCodeSent)
    await form.sendCode()
    #expect(form.isCodeSent && form.failure == nil)
    form.proof = "000000"
    await form.deleteAccount()
    #expect(form.failure == "This code is wrong or too old." && phone.account.home != nil)
  }

  @Test func `a report waits for a network, and thanks the user at once`() async throws {
    let server = try await MusterServer.shared.value
    let (ana, ben) = (AppPhone(at: server), AppPhone(at: server))
    let reporter = try await ana.register("ana")
    let user = try await ben.register("ben")
    let visitor = Guest(id: Guest.ID(user.id), user: nil, name: "Zoe", status: .going)
    #expect(visitor.reported == .guest(visitor.id))
    var guest = visitor
    guest.user = user.person
    #expect(guest.reported == .user(user.id))
    ana.network.isLost.change { $0 = true }
    let home = try ana.home
    await home.report(guest.reported, for: .impersonation)
    #expect(home.failure == "Thank you. We will look at it." && home.unsent == 1)
    ana.network.isLost.change { $0 = false }
    try await home.store.refresh()
    #expect(home.unsent == 0 && Refusals(home: home).all.isEmpty)
    let reason: String = try await server.value(
      "SELECT reason FROM reports WHERE reporter_id = \(reporter.id.rawValue)")
    #expect(reason == "impersonation")
  }
}
