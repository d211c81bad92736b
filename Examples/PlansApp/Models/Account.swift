import Foundation
import MusterKit
import Observation

/// Who is logged in on this phone, and the copies of that user's lists.
@MainActor @Observable
final class Account {
  let client: MusterClient
  let push: PushRegistration
  private var opened: MusterStore?
  private let folder: URL

  /// - Parameter folder: for the copies.
  init(client: MusterClient, folder: URL) {
    self.client = client
    self.folder = folder
    push = PushRegistration(client: client)
    opened = try? MusterStore(client: client, folder: folder)
  }

  /// Nil while no user is logged in: show the login. When a session ends, the copies stay on the phone, in case the
  /// same user logs in again.
  var store: MusterStore? { opened?.isLoggedOut == false ? opened : nil }

  /// - Throws: `MusterError`, or `StoreError` if the phone has no space left
  func logIn(_ login: String, password: String, device: String) async throws {
    _ = try await client.auth.logIn(as: login, password: password, device: device)
    opened = try MusterStore(client: client, folder: folder)
    await push.registerAgain()
  }

  /// Ends the session and deletes the copies. Without a network, the service does not learn of it: the session ends
  /// there after 60 days.
  func logOut() async {
    // The copies go first, in case the app ends meanwhile.
    try? await opened?.forgetEverything()
    _ = try? await client.auth.logOut()
    opened = nil
  }
}
