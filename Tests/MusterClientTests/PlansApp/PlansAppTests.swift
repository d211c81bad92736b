import Foundation
import MusterClient
import Testing

@testable import PlansAppModels

/// The view models of the example app, which has no tests of its own views.
@MainActor @Suite struct PlansAppTests {
  private let service = ScriptedService()
  private let tokens = MemoryTokenStore()
  private let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

  /// An app at its launch. Every launch has the same tokens and copies.
  private func launch() -> Account {
    let client = MusterClient(
      baseURL: URL(string: "http://plans.example")!, tokens: tokens, transport: service, retries: .never)
    return Account(client: client, folder: folder)
  }

  private func logIn() async throws -> (Account, MusterStore) {
    let account = launch()
    try await account.logIn("ana", password: ScriptedService.password, device: "phone")
    return (account, try #require(account.store))
  }

  private func event(_ title: String, _ status: MyStatus = .invited) -> Event {
    let creator = Person(id: UUID(), username: "ben", displayName: "Ben Okafor")
    let start = Date(timeIntervalSince1970: 1_900_000_000)
    return Event(
      id: UUID(), title: title, startTime: start, timeZone: "Europe/Lisbon", creator: creator, hosts: [creator],
      myRole: .guest, myStatus: status, createdAt: start, updatedAt: start)
  }

  private func answered(_ event: Event, _ status: MyStatus) -> Event {
    var event = event
    event.myStatus = status
    return event
  }

  // MARK: Logging in

  @Test func `a wrong password leads to a sentence, and the right one to the lists`() async throws {
    let account = launch()
    let form = LoginForm()
    #expect(!form.canSubmit)
    (form.login, form.password) = ("ana", "guess")
    await form.submit(to: account, device: "phone")
    #expect(form.failure == "The name or the password is wrong.")
    #expect(!form.isWorking && account.store == nil)

    form.password = ScriptedService.password
    await form.submit(to: account, device: "phone")
    #expect(form.failure == nil && form.password.isEmpty)
    #expect(account.store != nil)
  }

  @Test func `a login without a network leads to a sentence`() async throws {
    service.goOffline()
    let account = launch()
    let form = LoginForm()
    (form.login, form.password) = ("ana", ScriptedService.password)
    await form.submit(to: account, device: "phone")
    #expect(form.failure == "The server cannot be reached. Please check your connection.")
    #expect(account.store == nil)
  }

  @Test func `logging out without a network deletes the copies`() async throws {
    try service.set(.events, to: [event("Pasta night")])
    let (account, store) = try await logIn()
    try await store.refresh()
    service.goOffline()
    await account.logOut()
    #expect(account.store == nil && launch().store == nil)

    service.goOffline(false)
    let (_, next) = try await logIn()
    await next.load()
    #expect(!next.events.isLoaded)
  }

  // MARK: Lists

  @Test func `the list shows its copies without a network, and says how old they are`() async throws {
    try service.set(.events, to: [event("Pasta night"), event("House concert", .going)])
    let (_, store) = try await logIn()
    let list = EventList(store: store)
    #expect(list.isLoading)
    await list.refresh()
    #expect(list.invitations.map(\.event.title) == ["Pasta night"])
    #expect(list.plans.map(\.event.title) == ["House concert"])
    #expect(list.status == nil && !list.isLoading)

    service.goOffline()
    let later = try #require(launch().store)
    await later.load()
    let offline = EventList(store: later)
    await offline.refresh()
    #expect(offline.invitations.map(\.event.title) == ["Pasta night"])
    #expect(try #require(offline.status).hasPrefix("You are offline. Up to date as of "))

    service.goOffline(false)
    await offline.refresh()
    #expect(offline.status == nil)
  }

  @Test func `when the session ends, the app shows the login`() async throws {
    let (account, store) = try await logIn()
    service.endSession()
    await EventList(store: store).refresh()
    #expect(account.store == nil)
  }

  @Test func `the inbox counts what is unread, and shows it as read at once`() async throws {
    let items = ["Ben invited you.", "Cleo is going."].map { message in
      InboxItem(id: UUID(), createdAt: .distantPast, type: .eventInvited, message: message)
    }
    try service.set(.notifications, to: items)
    let (_, store) = try await logIn()
    try await store.refresh()
    let inbox = Inbox(store: store)
    #expect(inbox.unread == 2)
    service.goOffline()
    inbox.read(inbox.items[0])
    #expect(inbox.unread == 1)
    inbox.read(inbox.items[0])
    #expect(store.outbox.pending.count == 1)
    inbox.readAll()
    #expect(inbox.unread == 0)
  }

  // MARK: Answers

  @Test func `an answer without a network is pending until it is sent`() async throws {
    let pasta = event("Pasta night")
    try service.set(.events, to: [pasta])
    let (account, store) = try await logIn()
    try await store.refresh()
    let (list, page) = (EventList(store: store), EventPage(pasta.id, in: store, client: account.client))
    #expect(page.canAnswer && !page.isPending)

    service.goOffline()
    page.answer(.going)
    #expect(page.event?.myStatus == .going && page.isPending)
    #expect(list.plans.map(\.isPending) == [true])
    await list.refresh()
    #expect(page.isPending)

    service.goOffline(false)
    let call = "PUT /events/\(pasta.id.uuidString.lowercased())/invitations/me"
    try service.respond(to: call, with: 200, answered(pasta, .going))
    try service.set(.events, to: [answered(pasta, .going)])
    await list.refresh()
    #expect(page.event?.myStatus == .going && !page.isPending)
    let write = try #require(service.writes.first)
    #expect(write.headers["Idempotency-Key"] != nil && service.writes.count == 1)
  }

  @Test func `a refused answer is undone, with the reason`() async throws {
    let pasta = event("Pasta night")
    try service.set(.events, to: [pasta])
    let (account, store) = try await logIn()
    try await store.refresh()
    let page = EventPage(pasta.id, in: store, client: account.client)
    let call = "PUT /events/\(pasta.id.uuidString.lowercased())/invitations/me"
    try service.respond(to: call, with: 409, Problem(type: .eventCancelled, title: "Conflict", status: 409))
    page.answer(.going)
    #expect(page.event?.myStatus == .going)

    await EventList(store: store).refresh()
    #expect(page.event?.myStatus == .invited && !page.isPending)
    #expect(page.isRefused && page.refusal == "This event was cancelled.")
    page.isRefused = false
    #expect(!page.isRefused && page.refusal == nil)
  }

  @Test func `the page of an event has its guests, and survives that the event is gone`() async throws {
    var pasta = event("Pasta night")
    let (account, store) = try await logIn()
    let page = EventPage(pasta.id, in: store, client: account.client)
    await page.load()
    #expect(page.event == nil && page.failure == "This is not possible. Please refresh.")

    pasta.participants = [Guest(id: UUID(), user: nil, name: "Cleo", status: .going)]
    try service.respond(to: "GET /events/\(pasta.id.uuidString.lowercased())", with: 200, pasta)
    await page.load()
    #expect(page.guests.map(\.name) == ["Cleo"] && page.failure == nil)
    #expect(page.event?.title == "Pasta night")
  }

  // MARK: Pushes

  @Test func `a phone registers for pushes after the login, with its token in hexadecimal digits`() async throws {
    let device = RegisteredDevice(id: UUID(), platform: .ios, createdAt: .distantPast)
    try service.respond(to: "PUT /devices", with: 200, device)
    let account = launch()
    await account.push.register(Data([0x00, 0x7f, 0xff]))
    #expect(!account.push.isRegistered && service.writes.isEmpty)

    try await account.logIn("ana", password: ScriptedService.password, device: "phone")
    #expect(account.push.isRegistered)
    let body = try #require(service.writes.first?.body)
    let registration = try JSONDecoder.muster().decode(DeviceRegistration.self, from: body)
    #expect(registration.platform == .ios && registration.token == "007fff")
  }
}
