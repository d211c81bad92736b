import Foundation
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// The view models of the example app. Its views are not compiled here.
@MainActor @Suite final class PlansAppTests {
  private static let password = "plans-with-friends"

  private let server: ScriptedServer
  private let app: AppServer
  private let tokens = MemoryTokenStore()
  private let folder = FileManager.default.temporaryDirectory.appending(path: "muster-plans-\(UUID().uuidString)")

  init() throws {
    server = try ScriptedServer.make()
    app = AppServer(server: server)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// The app at a launch. All launches have the same tokens and copies.
  private func launch() throws -> Account {
    let url = try #require(URL(string: "http://muster.test"))
    return Account(
      client: MusterClient(baseURL: url, tokens: tokens, transport: app, retries: .never), folder: folder)
  }

  /// An app after its first login, with lists from the server.
  private func logIn() async throws -> (Account, MusterStore) {
    let account = try launch()
    try await account.logIn("ana", password: Self.password, device: "phone")
    let store = try #require(account.store)
    try await store.refresh()
    return (account, store)
  }

  private func refuse(_ path: String, with status: Int, _ slug: Problem.Slug) {
    server.fail { $0.path.hasPrefix(path) ? .status(status, slug) : .none }
  }

  // MARK: Logging in

  @Test func `a wrong password leads to a sentence, and the right one to the lists`() async throws {
    let account = try launch()
    let form = LoginForm()
    #expect(!form.canSubmit)
    refuse("/auth/login", with: 401, .wrongCredentials)
    (form.login, form.password) = ("ana", "guess")
    await form.submit(to: account, device: "phone")
    #expect(form.failure == "The name or the password is wrong.")
    #expect(!form.isWorking && account.store == nil)

    server.fail { _ in .none }
    form.password = Self.password
    await form.submit(to: account, device: "phone")
    #expect(form.failure == nil && form.password.isEmpty)
    #expect(account.store != nil)
  }

  @Test func `a login without a network leads to a sentence`() async throws {
    server.takeOffline()
    let account = try launch()
    let form = LoginForm()
    (form.login, form.password) = ("ana", Self.password)
    await form.submit(to: account, device: "phone")
    #expect(form.failure == "The server cannot be reached. Please check your connection.")
    #expect(account.store == nil)
  }

  @Test func `logging out without a network deletes the copies`() async throws {
    let (account, _) = try await logIn()
    server.takeOffline()
    await account.logOut()
    #expect(account.store == nil)
    #expect(try launch().store == nil)
    #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path).allSatisfy { !$0.hasSuffix(".copy") })
  }

  @Test func `when the session ends, the app shows the login`() async throws {
    let (account, store) = try await logIn()
    refuse("/", with: 401, .sessionEnded)
    await EventList(store: store).refresh()
    #expect(account.store == nil)
  }

  // MARK: Lists

  @Test func `the list shows its copies without a network, and says how old they are`() async throws {
    try server.set(.events, [ScriptedServer.event(1), ScriptedServer.event(2, status: .going)])
    let (_, store) = try await logIn()
    let list = EventList(store: store)
    #expect(list.invitations.map(\.event.title) == ["Event 1"])
    #expect(list.plans.map(\.event.title) == ["Event 2"])
    #expect(list.status == nil && !list.isLoading)

    server.takeOffline()
    let later = try #require(try launch().store)
    await later.load()
    let offline = EventList(store: later)
    await offline.refresh()
    #expect(offline.invitations.map(\.event.title) == ["Event 1"])
    #expect(offline.status?.hasPrefix("You are offline. Up to date as of ") == true)

    server.takeOffline(false)
    await offline.refresh()
    #expect(offline.status == nil)
  }

  @Test func `a list without a copy is loading, or says that there is no network`() async throws {
    let account = try launch()
    try await account.logIn("ana", password: Self.password, device: "phone")
    let list = EventList(store: try #require(account.store))
    #expect(list.isLoading && list.status == nil)
    server.takeOffline()
    await list.refresh()
    #expect(!list.isLoading && list.status == "You are offline.")
  }

  @Test func `the inbox counts unread items, and shows them as read at once`() async throws {
    let items = (1...2).map { number in
      InboxItem(
        id: ScriptedServer.id(number), createdAt: ScriptedServer.noon, type: .eventInvited, message: "Come!")
    }
    try server.set(.notifications, items)
    let (_, store) = try await logIn()
    let inbox = Inbox(store: store)
    #expect(inbox.unread == 2)
    await inbox.read(inbox.items[0])
    #expect(inbox.unread == 1)
    await inbox.read(inbox.items[0])
    #expect(store.outbox.pending.count == 1)
    await inbox.readAll()
    #expect(inbox.unread == 0)
  }

  // MARK: Answers

  @Test func `an answer without a network is pending until it is sent`() async throws {
    var event = ScriptedServer.event(1)
    event.startTime = Date(timeIntervalSinceNow: 86_400)
    try server.set(.events, [event])
    let (account, store) = try await logIn()
    let (list, page) = (EventList(store: store), EventPage(event.id, in: store, client: account.client))
    #expect(page.canAnswer && !page.isPending)

    server.takeOffline()
    await page.answer(.going)
    #expect(page.event?.myStatus == .going && page.isPending)
    #expect(list.plans.map(\.isPending) == [true])
    await list.refresh()
    #expect(page.isPending)

    server.takeOffline(false)
    await list.refresh()
    #expect(page.event?.myStatus == .going && !page.isPending)
    #expect(list.plans.map(\.isPending) == [false])
  }

  @Test func `a refused answer is undone, with the reason`() async throws {
    let event = ScriptedServer.event(1)
    try server.set(.events, [event])
    let (account, store) = try await logIn()
    let page = EventPage(event.id, in: store, client: account.client)
    refuse("/events/", with: 409, .eventCancelled)
    await page.answer(.going)
    #expect(page.event?.myStatus == .going)

    await EventList(store: store).refresh()
    #expect(page.event?.myStatus == .invited && !page.isPending)
    let refusal = try #require(page.refusals.all.first)
    #expect(refusal.sentence == "This event was cancelled." && !refusal.canBeSentAgain)
    #expect(page.refusals.title(of: refusal) == "Event 1")
    #expect(EventList(store: store).refusals.all == [refusal])
    await page.refusals.discard(refusal)
    #expect(page.refusals.all.isEmpty)
  }

  @Test func `a change with an unknown outcome is shown, and can be sent again or discarded`() async throws {
    let event = ScriptedServer.event(1)
    try server.set(.events, [event])
    let (account, store) = try await logIn()
    try await store.refresh()
    let page = EventPage(event.id, in: store, client: account.client)
    server.fail { $0.isWrite ? .loseResponse : .none }
    try await store.perform(.invite([ScriptedServer.ben.id], to: event.id))
    await page.refresh()
    #expect(page.isPending && page.refusals.all.isEmpty)

    server.fail { _ in .none }
    server.pass(hours: 24)
    // The app learns the time from any response.
    await page.load()
    await page.refresh()
    let unknown = try #require(page.refusals.all.first)
    #expect(unknown.sentence.contains("did not confirm") && unknown.canBeSentAgain && !page.isPending)
    await page.refusals.sendAgain(unknown)
    #expect(page.refusals.all.isEmpty && page.isPending)
    await page.refresh()
    #expect(!page.isPending && page.refusals.all.isEmpty)
  }

  @Test func `pulling to refresh ends when the list is right, or when this cannot be`() async throws {
    try server.set(.events, [ScriptedServer.event(1)])
    let (account, store) = try await logIn()
    let page = EventPage(ScriptedServer.event(1).id, in: store, client: account.client)
    try server.set(.events, [ScriptedServer.event(1, title: "Changed")])
    await page.refresh()
    #expect(page.event?.title == "Changed" && store.events.isUpToDate)
    try server.set(.events, [ScriptedServer.event(1, title: "Again")])
    await EventList(store: store).refresh()
    #expect(page.event?.title == "Again" && store.events.isUpToDate)
    server.fail { _ in .portal }
    await EventList(store: store).refresh()
    #expect(EventList(store: store).status == "Something went wrong. Please try again later.")
    server.fail { _ in .none }
    await EventList(store: store).refresh()
    #expect(EventList(store: store).status == nil)
  }

  @Test func `the page of an event that is not in the list has its guests, or a sentence`() async throws {
    let (account, store) = try await logIn()
    var event = ScriptedServer.event(1)
    let page = EventPage(event.id, in: store, client: account.client)
    refuse("/events/", with: 404, .eventNotFound)
    await page.load()
    #expect(page.event == nil && page.failure == "You are no longer invited to this event.")

    server.fail { _ in .none }
    event.participants = [
      Guest(id: Guest.ID(ScriptedServer.cleo.id), user: ScriptedServer.cleo, name: "Cleo", status: .going)
    ]
    app.event.withLock { [event] in $0 = event }
    await page.load()
    #expect(page.event?.title == "Event 1" && page.guests.map(\.name) == ["Cleo"])
    #expect(page.failure == nil)
  }

  @Test func `a phone registers for pushes after the login, with its token in hexadecimal digits`() async throws {
    let account = try launch()
    await account.push.register(Data([0x00, 0x7f, 0xff]))
    #expect(!account.push.isRegistered && server.received().isEmpty)

    try await account.logIn("ana", password: Self.password, device: "phone")
    #expect(account.push.isRegistered)
    let request = try #require(server.received { $0.path == "/devices" }.first)
    #expect(request.body?["platform"]?.string == "ios" && request.body?["token"]?.string == "007fff")
  }
}

/// A scripted server that also has the calls that an app makes besides its store: the login, one event, the phone's
/// token for pushes.
private struct AppServer: Transport {
  let server: ScriptedServer
  /// The response to a request for one event.
  let event = Guarded<Event?>(nil)

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    var response = try await server.send(request)
    guard response.status < 300, let body = try body(of: ScriptedServer.Received(request)) else { return response }
    response.status = 200
    response.headers = ["content-type": "application/json"]
    response.body = body
    return response
  }

  func open(_ request: TransportRequest) async throws -> TransportStream { try await server.open(request) }

  private func body(of request: ScriptedServer.Received) throws -> Data? {
    let encoder = JSONEncoder.muster()
    switch (request.method, request.path) {
    case ("POST", "/auth/login"):
      let ana = ScriptedServer.ana
      let user = User(
        id: ana.id, username: ana.username, displayName: ana.displayName, createdAt: ScriptedServer.noon)
      return try encoder.encode(Tokens(user: user, accessToken: "access", refreshToken: "refresh", expiresIn: 900))
    case ("PUT", "/devices"):
      let device = RegisteredDevice(id: ScriptedServer.id(9), platform: .ios, createdAt: ScriptedServer.noon)
      return try encoder.encode(device)
    case ("GET", let path) where path.hasPrefix("/events/"):
      return try event.withLock { $0 }.map { try encoder.encode($0) }
    default: return nil
    }
  }
}
