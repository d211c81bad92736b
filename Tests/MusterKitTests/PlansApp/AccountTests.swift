import Foundation
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// Logging in, out and never by mistake, against a service.
@MainActor @Suite struct AppAccountTests {
  @Test func `registering says in words what is wrong, and leads to the lists`() async throws {
    let phone = AppPhone(at: try await MusterServer.shared.value)
    let form = SignInForm()
    form.purpose = .register
    (form.username, form.password) = ("x", "password")
    #expect(!form.canSubmit)
    form.email = "x@example.com"
    await form.submit(to: phone.account, device: "phone")
    let failure = try #require(form.failure)
    #expect(failure.contains("A username has 3 to 30 letters") && failure.contains("too easy to guess"))
    #expect(phone.account.home == nil)

    let user = try await phone.register("ana")
    #expect(try EventList(home: phone.home).status == nil)
    let other = AppPhone(at: try await MusterServer.shared.value)
    (form.username, form.password) = (user.username, AppPhone.password)
    form.email = "other-\(user.username)@example.com"
    await form.submit(to: other.account, device: "phone")
    #expect(form.failure == "This username is taken.")
  }

  @Test func `a server without Sign in with Apple is explained, and so is an answer of Apple's without a token`()
    async throws
  {
    let phone = AppPhone(at: try await MusterServer.shared.value)
    let form = SignInForm()
    _ = form.makeNonce()
    await form.signInWithApple(Data("token".utf8), code: nil, name: nil, to: phone.account, device: "phone")
    #expect(form.failure == "This server does not offer Sign in with Apple.")
    await form.signInWithApple(nil, code: nil, name: nil, to: phone.account, device: "phone")
    #expect(form.failure == "Apple could not confirm who you are. Please try again.")
  }

  @Test func `an app that is launched before the first unlock stays logged in, and opens what was tapped`()
    async throws
  {
    let server = try await MusterServer.shared.value
    let (ana, ben) = (AppPhone(at: server), AppPhone(at: server))
    let user = try await ana.register("ana")
    try await ben.register("ben")
    try await ben.befriend(ana)
    let event = try await ben.createEvent("Pasta night", inviting: [user])
    try await ana.refresh { $0.store.notifications.items.contains { $0.eventId == event } }
    let item = try #require(try ana.home.store.notifications.items.first { $0.eventId == event })

    ana.keychain.isLocked.change { $0 = true }
    ana.relaunch()
    guard case .locked = ana.account.state else {
      Issue.record("\(ana.account.state)")
      return
    }
    let tap = PushTap(userInfo: [
      "type": "event-invited", "eventId": "\(event)", "notificationId": "\(item.id)", "aps": ["badge": 1],
    ])
    await ana.account.router.open(tap, in: ana.account.home)
    #expect(ana.account.router.waiting == .event(event) && ana.account.router.plans.isEmpty)
    // The app comes to the front, and the phone is still locked.
    await ana.account.open()
    #expect(ana.account.home == nil)

    ana.keychain.isLocked.change { $0 = false }
    await ana.account.open()
    #expect(ana.account.router.plans == [event] && ana.account.router.waiting == nil)
    try await ana.home.store.refresh()
    #expect(try ana.home.store.notifications.items.first { $0.id == item.id }?.readAt != nil)
  }

  @Test func `logging out asks before it drops changes that were never sent`() async throws {
    let phone = AppPhone(at: try await MusterServer.shared.value)
    let user = try await phone.register("ana")
    phone.network.isLost.change { $0 = true }
    try await phone.home.perform(.editProfile(ProfileEdit(displayName: "Ana D.")))
    await phone.account.logOut()
    let question = try #require(phone.account.question)
    #expect(question == .loggingOut(1) && question.title == "One change was never sent.")
    #expect(try phone.account.home != nil && phone.home.unsent == 1)

    // The user waits for a network instead.
    phone.account.question = nil
    phone.network.isLost.change { $0 = false }
    try await phone.home.store.refresh()
    #expect(try phone.home.unsent == 0)
    await phone.account.logOut()
    #expect(phone.account.question == nil && phone.account.home == nil)

    try await phone.logIn(user)
    try await phone.home.store.refresh()
    #expect(try phone.home.store.profile.value?.displayName == "Ana D.")
    phone.network.isLost.change { $0 = true }
    try await phone.home.perform(.editProfile(ProfileEdit(displayName: "Nobody")))
    await phone.account.logOut()
    await phone.account.confirm(try #require(phone.account.question))
    #expect(try phone.account.home == nil && MusterStore.usersWithUnsentWrites(in: phone.folder) == [])
  }

  @Test func `another user's login leaves the unsent changes of the first one, unless the user deletes them`()
    async throws
  {
    let server = try await MusterServer.shared.value
    let (phone, other) = (AppPhone(at: server), AppPhone(at: server))
    let ben = try await other.register("ben")
    let ana = try await phone.register("ana")
    func leave(_ name: String) async throws {
      phone.network.isLost.change { $0 = true }
      try await phone.home.perform(.editProfile(ProfileEdit(displayName: name)))
      phone.network.isLost.change { $0 = false }
      // The session ends elsewhere.
      try await phone.account.client.auth.logOut()
      phone.relaunch()
      #expect(phone.account.home == nil)
    }

    try await leave("Ana Offline")
    try await phone.logIn(ben)
    let question = try #require(phone.account.question)
    #expect(question == .leftBehind(by: [ana.id]))
    phone.account.question = nil
    await phone.account.logOut()
    try await phone.logIn(ana)
    try await phone.home.store.refresh()
    #expect(try phone.home.store.profile.value?.displayName == "Ana Offline")

    try await leave("Ana Deleted")
    try await phone.logIn(ben)
    await phone.account.confirm(try #require(phone.account.question))
    #expect(try MusterStore.usersWithUnsentWrites(in: phone.folder) == [])
    phone.account.question = nil
    await phone.account.logOut()
    try await phone.logIn(ana)
    try await phone.home.store.refresh()
    #expect(try phone.home.store.profile.value?.displayName == "Ana Offline")
    #expect(phone.account.question == nil)
  }
}
