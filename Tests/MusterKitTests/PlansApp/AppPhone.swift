import Foundation
import Postgres
import TestSupport
import Testing

@testable import MusterKit
@testable import PlansAppModels

/// The example app on a phone of its own, which calls a service. Its store does not run: tests say when it refreshes.
@MainActor final class AppPhone {
  /// As the keychain, which cannot be read before the first unlock.
  final class Keychain: TokenStore {
    let isLocked = Locked(false)
    private let tokens = MemoryTokenStore()

    private func unlocked() throws -> MemoryTokenStore {
      if isLocked.value { throw MusterError.tokensUnavailable("not unlocked") }
      return tokens
    }

    func load() throws -> StoredTokens? { try unlocked().load() }
    func save(_ new: StoredTokens) throws { try unlocked().save(new) }
    func clear() throws { try unlocked().clear() }
    func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
      try await tokens.withRefreshLock(body)
    }
  }

  /// The network, which the phone may lose.
  final class Network: Transport {
    let isLost = Locked(false)
    /// Runs before the app gets a response.
    let beforeResponse = Locked<@Sendable (TransportRequest) async -> Void>({ _ in })
    private let inner = URLSessionTransport()

    func send(_ request: TransportRequest) async throws -> TransportResponse {
      if isLost.value { throw UnsentRequest(URLError(.notConnectedToInternet)) }
      let response = try await inner.send(request)
      await beforeResponse.value(request)
      return response
    }

    func open(_ request: TransportRequest) async throws -> TransportStream { try await inner.open(request) }
  }

  let keychain = Keychain()
  let network = Network()
  let folder = FileManager.default.temporaryDirectory.appending(path: "muster-app-\(UUID().uuidString)")
  private(set) var account: Account
  private let client: @Sendable () -> MusterClient

  private let server: MusterServer

  init(at server: MusterServer) {
    self.server = server
    let (keychain, network, url) = (keychain, network, server.url)
    client = { MusterClient(baseURL: url, tokens: keychain, transport: network, retries: .never) }
    account = Account(client: client(), folder: folder)
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  /// Ends the app, and starts it again.
  func relaunch() { account = Account(client: client(), folder: folder) }

  /// - Throws: if no user is logged in
  var home: Home { get throws { try #require(account.home) } }

  /// Registers a user under a name that no other test uses, with the form, and verifies the address.
  @discardableResult
  func register(_ name: String, isVerified: Bool = true) async throws -> User {
    let form = SignInForm()
    form.purpose = .register
    form.username = "\(name)-\(String(UInt32.random(in: 0...UInt32.max), radix: 36))"
    (form.email, form.password) = ("\(form.username)@example.com", Self.password)
    await form.submit(to: account, device: "\(name)'s phone")
    try #require(form.failure == nil, "\(form.failure ?? "")")
    if isVerified {
      let _: Int = try await server.value(
        """
        WITH verified AS (
          UPDATE users SET email_verified_at = now() WHERE username = \(form.username) RETURNING 1)
        SELECT count(*) FROM verified
        """)
    }
    try await home.store.refresh()
    return try #require(try home.store.profile.value)
  }

  func logIn(_ user: User) async throws {
    let form = SignInForm()
    (form.username, form.password) = (user.username, Self.password)
    await form.submit(to: account, device: "phone")
    try #require(form.failure == nil, "\(form.failure ?? "")")
  }

  static let password = "plans with friends, and more"

  /// Waits until a list has what another user's change brings.
  func refresh(until isThere: (Home) throws -> Bool) async throws {
    let home = try home
    try await eventually(within: .seconds(30)) {
      try await home.store.refresh()
      return try isThere(home)
    }
  }

  func page(of event: Event.ID) async throws -> EventPage {
    let page = EventPage(event, in: try home)
    await page.refresh()
    try #require(page.failure == nil, "\(page.failure ?? "")")
    return page
  }

  /// Makes an event with the editor, and sends it.
  func createEvent(
    _ title: String, inviting friends: [User] = [], _ change: (inout EventDraft) -> Void = { _ in }
  ) async throws -> Event.ID {
    let home = try home
    let editor = EventEditor(in: home)
    editor.draft.title = title
    editor.draft.startTime = Date(timeIntervalSince1970: 1_900_000_000)
    for friend in friends { editor.draft[invites: friend.id] = true }
    change(&editor.draft)
    let id = try #require(await editor.save(), "\(editor.problem ?? home.failure ?? "")")
    try await home.store.refresh()
    return id
  }

  /// Makes friends of two users, with search and requests.
  func befriend(_ other: AppPhone) async throws {
    let (me, home) = (try #require(try home.store.profile.value), try home)
    let user = try #require(try other.home.store.profile.value)
    await home.perform(.sendRequest(to: user.person))
    try await home.store.refresh()
    try await other.refresh { $0.store.friendRequests.items.contains { $0.sender.id == me.id } }
    let request = try #require(try other.home.store.friendRequests.items.first)
    try await other.home.perform(.acceptRequest(request.id))
    try await other.home.store.refresh()
    try await refresh { $0.store.friends.items.contains { $0.id == user.id } }
  }
}
