import Foundation
import MusterKit
import Observation

/// Who is logged in on this phone: decides between the login and the user's screens.
@MainActor @Observable
final class Account {
  enum State {
    case loggedOut
    case loggedIn(Home)
    /// The phone has not been unlocked since it started, so the tokens cannot be read. The session has not ended.
    case locked
    /// For example, because the disk is full. The sentence is for the user.
    case unavailable(String)
  }

  let client: MusterClient
  let push: PushRegistration
  let router = Router()
  /// Before changes are dropped that were never sent.
  var question: UnsentQuestion?
  private var opened = State.loggedOut
  private let folder: URL

  init(client: MusterClient, folder: URL) {
    (self.client, self.folder) = (client, folder)
    push = PushRegistration(client: client)
    openHome()
  }

  /// When a session ends, the copies stay on the phone, in case the same user logs in again.
  var state: State {
    if case .loggedIn(let home) = opened, home.store.isLoggedOut { .loggedOut } else { opened }
  }
  var home: Home? { if case .loggedIn(let home) = state { home } else { nil } }

  /// Call it whenever the phone may have been unlocked.
  func open() async {
    guard home == nil else { return }
    openHome()
    guard let home else { return }
    await push.registerAgain()
    await router.resume(in: home)
  }

  /// Of all errors, only ``MusterError/loggedOut`` means that there is no user.
  private func openHome() {
    do {
      opened = .loggedIn(Home(store: try MusterStore(client: client, folder: folder), client: client))
    } catch MusterError.loggedOut {
      opened = .loggedOut
    } catch MusterError.tokensUnavailable {
      opened = .locked
    } catch { opened = .unavailable(error.sentence) }
  }

  func logIn(_ attempt: @MainActor (AuthAPI) async throws -> Void) async throws {
    try await attempt(client.auth)
    await open()
    let others = ((try? MusterStore.usersWithUnsentWrites(in: folder)) ?? []).filter { $0 != client.userID }
    if !others.isEmpty { question = .leftBehind(by: others) }
  }

  /// Asks first if changes were never sent.
  func logOut() async {
    if let home, home.unsent > 0 { question = .loggingOut(home.unsent) } else { await dropAndLogOut() }
  }

  /// Drops the changes that the question is about.
  func confirm(_ question: UnsentQuestion) async {
    switch question {
    case .loggingOut: await dropAndLogOut()
    case .leftBehind(let users):
      for user in users { await home?.attempt { try await MusterStore.forgetEverything(of: user, in: folder) } }
    }
  }

  /// Ends the account. If the service refuses, everything stays, and the user is not logged out.
  func delete(_ proof: Reauthentication) async throws {
    // A running store may learn first that the session has ended. Then there is no home any more.
    let home = home
    try await client.me.delete(reauthentication: proof)
    if let home { await home.attempt { try await home.store.forgetEverything() } }
    opened = .loggedOut
  }

  /// Without a network, the service does not learn of it: the session ends there after 60 days.
  private func dropAndLogOut() async {
    // The copies go first, in case the app ends meanwhile.
    if let home { await home.attempt { try await home.store.forgetEverything() } }
    _ = try? await client.auth.logOut()
    opened = .loggedOut
  }
}
