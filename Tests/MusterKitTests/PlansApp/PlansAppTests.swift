import Foundation
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// The view models of the example app, on a server that fails on demand.
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
  private func logIn() async throws -> (Account, Home) {
    let account = try launch()
    try await logIn(account)
    let home = try #require(account.home)
    try await home.store.refresh()
    return (account, home)
  }

  private func logIn(_ account: Account) async throws {
    try await account.logIn { _ = try await $0.logIn(as: "ana", password: Self.password, device: "phone") }
  }

  private func refuse(_ path: String, with status: Int, _ slug: Problem.Slug) {
    server.fail { $0.path.hasPrefix(path) ? .status(status, slug) : .none }
  }

  // MARK: Logging in

  @Test func `a wrong password leads to a sentence, and the right one to the lists`() async throws {
    let account = try launch()
    let form = SignInForm()
    #expect(!form.canSubmit)
    refuse("/auth/login", with: 401, .wrongCredentials)
    (form.username, form.password) = ("ana", "guess")
    await form.submit(to: account, device: "phone")
    #expect(form.failure == "The name or the password is wrong.")
    #expect(!form.isWorking && account.home == nil)

    server.fail { _ in .none }
    form.password = Self.password
    await form.submit(to: account, device: "phone")
    #expect(form.failure == nil && form.password.isEmpty)
    #expect(account.home != nil)
  }

  @Test func `a sign-in with Apple sends what Apple gave to the app, with the nonce that the app chose`() async throws {
    let account = try launch()
    let form = SignInForm()
    let nonce = form.makeNonce()
    var name = PersonNameComponents()
    (name.givenName, name.familyName) = ("Ana", "Duarte")
    await form.signInWithApple(
      Data("token".utf8), code: Data("code".utf8), name: name, to: account, device: "phone")
    #expect(form.failure == nil && account.home != nil)
    let body = try #require(server.received { $0.path == "/auth/apple" }.first?.body)
    #expect(body["idToken"]?.string == "token" && body["nonce"]?.string == nonce)
    #expect(body["authorizationCode"]?.string == "code" && body["displayName"]?.string == "Ana Duarte")
    // A nonce is for one request.
    #expect(form.makeNonce() != nonce)
  }

  @Test func `a login without a network leads to a sentence`() async throws {
    server.takeOffline()
    let account = try launch()
    let form = SignInForm()
    (form.username, form.password) = ("ana", Self.password)
    await form.submit(to: account, device: "phone")
    #expect(form.failure == "The server cannot be reached. Please check your connection.")
    #expect(account.home == nil)
  }

  @Test func `logging out without a network deletes the copies`() async throws {
    let (account, _) = try await logIn()
    server.takeOffline()
    await account.logOut()
    #expect(account.home == nil)
    #expect(try launch().home == nil)
    #expect(try FileManager.default.subpathsOfDirectory(atPath: folder.path).allSatisfy { !$0.hasSuffix(".copy") })
  }

  @Test func `when the session ends, the app shows the login`() async throws {
    let (account, home) = try await logIn()
    refuse("/", with: 401, .sessionEnded)
    await home.refresh()
    #expect(account.home == nil)
  }

  // MARK: Lists

  @Test func `the list shows its copies without a network, and says how old they are`() async throws {
    try server.set(.events, [ScriptedServer.event(1), ScriptedServer.event(2, status: .going)])
    let (_, home) = try await logIn()
    let list = EventList(home: home)
    #expect(list.invitations.map(\.event.title) == ["Event 1"])
    #expect(list.plans.map(\.event.title) == ["Event 2"])
    #expect(list.status == nil && !list.isLoading)

    server.takeOffline()
    let later = try #require(try launch().home)
    await later.store.load()
    let offline = EventList(home: later)
    await later.refresh()
    #expect(offline.invitations.map(\.event.title) == ["Event 1"])
    #expect(offline.status?.hasPrefix("You are offline. Up to date as of ") == true)

    server.takeOffline(false)
    await later.refresh()
    #expect(offline.status == nil)
  }

  @Test func `a list without a copy is loading, or says that there is no network`() async throws {
    let account = try launch()
    try await logIn(account)
    let home = try #require(account.home)
    let list = EventList(home: home)
    #expect(list.isLoading && list.status == nil)
    server.takeOffline()
    await home.refresh()
    #expect(!list.isLoading && list.status == "You are offline.")
  }

  @Test func `the inbox counts unread items, and shows them as read at once`() async throws {
    let items = (1...2).map { number in
      InboxItem(
        id: ScriptedServer.id(number), createdAt: ScriptedServer.noon, type: .eventInvited, message: "Come!")
    }
    try server.set(.notifications, items)
    let (_, home) = try await logIn()
    let inbox = Inbox(home: home)
    #expect(inbox.unread == 2)
    await inbox.open(inbox.items[0], with: Router())
    #expect(inbox.unread == 1)
    await inbox.open(inbox.items[0], with: Router())
    #expect(home.store.outbox.pending.count == 1)
    await inbox.readAll()
    #expect(inbox.unread == 0)
  }

  // MARK: Answers

  @Test func `an answer without a network is pending until it is sent`() async throws {
    var event = ScriptedServer.event(1)
    event.startTime = Date(timeIntervalSinceNow: 86_400)
    try server.set(.events, [event])
    let (_, home) = try await logIn()
    let (list, page) = (EventList(home: home), EventPage(event.id, in: home))
    #expect(page.canAnswer && !page.isPending)

    server.takeOffline()
    await page.answer(.going)
    #expect(page.event?.myStatus == .going && page.isPending)
    #expect(list.plans.map(\.isPending) == [true])
    await home.refresh()
    #expect(page.isPending)

    server.takeOffline(false)
    await home.refresh()
    #expect(page.event?.myStatus == .going && !page.isPending)
    #expect(list.plans.map(\.isPending) == [false])
  }

  @Test func `a refused answer is undone, with the reason`() async throws {
    let event = ScriptedServer.event(1)
    try server.set(.events, [event])
    let (_, home) = try await logIn()
    let page = EventPage(event.id, in: home)
    refuse("/events/", with: 409, .eventCancelled)
    await page.answer(.going)
    #expect(page.event?.myStatus == .going)

    await home.refresh()
    #expect(page.event?.myStatus == .invited && !page.isPending)
    let refusal = try #require(page.refusals.all.first)
    #expect(refusal.sentence == "This event was cancelled." && page.refusals.againButton(refusal) == nil)
    #expect(page.refusals.title(of: refusal) == "Your answer “Going” to “Event 1”")
    #expect(Refusals(home: home).all == [refusal])
    await page.refusals.dismiss(refusal)
    #expect(page.refusals.all.isEmpty)
  }

  @Test func `a change with an unknown outcome is shown, and can be sent again or discarded`() async throws {
    let event = ScriptedServer.event(1)
    try server.set(.events, [event])
    let (_, home) = try await logIn()
    try await home.store.refresh()
    let page = EventPage(event.id, in: home)
    server.fail { $0.isWrite ? .loseResponse : .none }
    try await home.store.perform(.invite([ScriptedServer.ben.id], to: event.id))
    await page.refresh()
    #expect(page.isPending && page.refusals.all.isEmpty)

    server.fail { _ in .none }
    server.pass(hours: 24)
    // The app learns the time from any response.
    await page.load()
    await page.refresh()
    let unknown = try #require(page.refusals.all.first)
    #expect(unknown.sentence.contains("did not confirm") && !page.isPending)
    #expect(page.refusals.againButton(unknown) == "Send again" && page.refusals.dismissButton(unknown) == "OK")
    await page.refusals.sendAgain(unknown)
    #expect(page.refusals.all.isEmpty && page.isPending)
    await page.refresh()
    #expect(!page.isPending && page.refusals.all.isEmpty)
  }

  @Test func `pulling to refresh ends when the list is right, or when this cannot be`() async throws {
    try server.set(.events, [ScriptedServer.event(1)])
    let (_, home) = try await logIn()
    let page = EventPage(ScriptedServer.event(1).id, in: home)
    try server.set(.events, [ScriptedServer.event(1, title: "Changed")])
    await page.refresh()
    #expect(page.event?.title == "Changed" && home.store.events.isUpToDate)
    try server.set(.events, [ScriptedServer.event(1, title: "Again")])
    await home.refresh()
    #expect(page.event?.title == "Again" && home.store.events.isUpToDate)
    server.fail { _ in .portal }
    await home.refresh()
    #expect(EventList(home: home).status == "Something went wrong. Please try again later.")
    server.fail { _ in .none }
    await home.refresh()
    #expect(EventList(home: home).status == nil)
  }

  @Test func `the page of an event that is not in the list has its guests, or a sentence`() async throws {
    let (_, home) = try await logIn()
    var event = ScriptedServer.event(1)
    let page = EventPage(event.id, in: home)
    refuse("/events/", with: 404, .eventNotFound)
    await page.load()
    #expect(page.event == nil && page.failure == "You are no longer invited to this event.")

    server.fail { _ in .none }
    event.participants = [
      Guest(id: Guest.ID(ScriptedServer.cleo.id), user: ScriptedServer.cleo, name: "Cleo", status: .going)
    ]
    app.event.withLock { [event] in $0 = event }
    await page.load()
    #expect(page.event?.title == "Event 1" && GuestList(of: page).groups.flatMap(\.guests).map(\.name) == ["Cleo"])
    #expect(page.failure == nil)
  }

  @Test func `guests after the first ones come page by page, and begin again once the first have changed`() async throws
  {
    func guest(_ person: Person) -> Guest {
      Guest(id: Guest.ID(person.id), user: person, name: person.displayName, status: .going)
    }
    func show(_ first: [Guest], next: String?, counts: Counts = Counts(invited: 1)) {
      var event = ScriptedServer.event(1)
      event.counts = counts
      event.guests = Page(items: first, nextCursor: next)
      app.event.withLock { [event] in $0 = event }
    }
    try server.set(.events, [ScriptedServer.event(1)])
    let (_, home) = try await logIn()
    let page = EventPage(ScriptedServer.event(1).id, in: home)
    let list = GuestList(of: page)
    func names() -> [String] { list.groups.flatMap(\.guests).map(\.name).sorted() }
    show([guest(ScriptedServer.ana)], next: "more")
    await page.load()
    #expect(names() == ["Ana"] && list.next == "more")
    server.takeOffline()
    await list.loadMore()
    #expect(names() == ["Ana"] && list.next == "more" && home.failure != nil)
    server.takeOffline(false)
    await list.loadMore()
    #expect(names() == ["Ana", "Ben"] && list.next == nil)
    await list.loadMore()
    #expect(server.received { $0.query["cursor"] == "more" }.count == 2)

    // Someone after the first ones has answered. Then the user taps twice.
    show([guest(ScriptedServer.ana)], next: "more", counts: Counts(going: 2))
    await page.load()
    #expect(names() == ["Ana"] && list.next == "more")
    let taps = (1...2).map { _ in Task { await list.loadMore() } }
    for tap in taps { await tap.value }
    #expect(names() == ["Ana", "Ben"] && list.next == nil)

    // Ben has answered, and is among the first now.
    show([guest(ScriptedServer.ana), guest(ScriptedServer.ben)], next: "more")
    await page.load()
    #expect(names() == ["Ana", "Ben"])
    show([guest(ScriptedServer.cleo)], next: "other")
    await page.load()
    #expect(names() == ["Cleo"] && list.next == "other")
  }

  @Test func `an approval of a guest who has changed since has a sentence of its own`() async throws {
    let (_, home) = try await logIn()
    let event = ScriptedServer.event(1)
    let refusal = RefusedWrite(
      id: UUID(), write: .approve(ScriptedServer.guest, at: event.id), createdAt: nil,
      reason: .superseded(by: .event(event)))
    let refusals = Refusals(home: home)
    #expect(refusal.sentence == "This guest has asked again or changed the answer in the meantime.")
    #expect(refusals.againButton(refusal) == "Let in" && refusals.dismissButton(refusal) == "OK")
    let page = EventPage(event.id, in: home)
    let ana = ScriptedServer.ana
    let own = Guest(id: Guest.ID(ana.id), user: ana, name: ana.displayName, status: .going)
    #expect(GuestList(of: page).isUser(own) && !GuestList(of: page).isUser(ScriptedServer.guest))
  }

  @Test func `a phone registers for pushes after the login, with its token in hexadecimal digits`() async throws {
    let account = try launch()
    await account.push.register(Data([0x00, 0x7f, 0xff]))
    #expect(!account.push.isRegistered && server.received().isEmpty)

    try await logIn(account)
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
    case ("POST", "/auth/login"), ("POST", "/auth/apple"):
      let ana = ScriptedServer.ana
      let user = User(
        id: ana.id, username: ana.username, displayName: ana.displayName, createdAt: ScriptedServer.noon)
      return try encoder.encode(Tokens(user: user, accessToken: "access", refreshToken: "refresh", expiresIn: 900))
    case ("PUT", "/devices"):
      let device = RegisteredDevice(id: ScriptedServer.id(9), platform: .ios, createdAt: ScriptedServer.noon)
      return try encoder.encode(device)
    case ("GET", let path) where path.hasPrefix("/events/") && path.split(separator: "/").count == 2:
      return try event.withLock { $0 }.map { try encoder.encode($0) }
    default: return nil
    }
  }
}
