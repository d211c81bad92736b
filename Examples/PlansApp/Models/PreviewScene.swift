import Foundation
import MusterKit

/// The states of the app that previews show. A test loads each of them.
enum PreviewState: String, CaseIterable {
  case plans, slow, offline, offlineLater, loggedOut, locked
  case invited, bringing, waiting, cancelled, hosting, unsent, refused, superseded
  case friends, inbox, creating, profile, loggingOut
}

/// The app in one of its states, on the demo that `muster seed export` wrote. Nothing of it is kept.
@MainActor struct PreviewScene {
  let account: Account
  private let state: PreviewState
  private let transport: PreviewTransport?

  /// Without an export, the app is offline.
  init(_ state: PreviewState, export: URL?) {
    self.state = state
    transport = try? export.map { try PreviewTransport(folder: $0, latency: state == .slow ? 3 : 0) }
    if state == .offline { transport?.failures = .offline }
    let tokens: any TokenStore =
      state == .locked ? LockedTokens() : MemoryTokenStore(state == .loggedOut ? nil : transport?.tokens)
    let client = transport.map { MusterClient(baseURL: $0.baseURL, tokens: tokens, transport: $0, retries: .never) }
    account = Account(
      client: client ?? PreviewClient.make(), folder: URL.temporaryDirectory.appending(path: UUID().uuidString))
  }

  private var title: String {
    switch state {
    case .bringing: "House concert"
    case .waiting: "Film night on the roof"
    case .cancelled: "Lake weekend"
    case .hosting: "Courtyard party"
    default: "Sunrise trail run"
    }
  }

  func prepare() async {
    guard let home = account.home, state != .slow else { return }
    await home.refresh()
    guard let event = home.store.events.items.first(where: { $0.title == title }) else { return }
    switch state {
    case .plans, .slow, .offline, .loggedOut, .locked: return
    case .friends: account.router.tab = .friends
    case .inbox: account.router.tab = .inbox
    case .creating: account.router.sheet = .newEvent
    case .profile: account.router.sheet = .profile
    case .invited, .bringing, .waiting, .cancelled, .hosting: await account.router.open(.event(event.id), in: home)
    case .offlineLater: transport?.failures = .offline
    case .unsent, .loggingOut:
      transport?.failures = .offline
      await home.perform(.answer(.going, to: event.id))
      if state == .loggingOut { await account.logOut() }
    case .refused, .superseded:
      let slug: Problem.Slug = state == .refused ? .answersClosed : .superseded
      let newer = CurrentAnswer(status: .declined, plusOnes: 0)
      let problem = Problem(type: slug, title: "Conflict", status: 409, current: newer)
      transport?.failures = .refusing("/events/*", method: "PUT", with: problem)
      await home.perform(.answer(.going, to: event.id))
    }
    await home.refresh()
  }
}

/// The keychain before the first unlock.
private struct LockedTokens: TokenStore {
  func load() throws -> StoredTokens? { throw MusterError.tokensUnavailable("not unlocked yet") }
  func save(_ tokens: StoredTokens) throws { _ = try load() }
  func clear() throws { _ = try load() }
  func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await body()
  }
}
