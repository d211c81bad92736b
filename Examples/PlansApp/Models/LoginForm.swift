import MusterKit
import Observation

/// A name, a password, and the result of the login.
@MainActor @Observable
final class LoginForm {
  var login = ""
  var password = ""
  private(set) var isWorking = false
  /// Why the login failed, for the user.
  private(set) var failure: String?

  var canSubmit: Bool { !isWorking && !login.isEmpty && !password.isEmpty }

  /// - Parameter device: a name for the user's list of sessions.
  func submit(to account: Account, device: String) async {
    guard canSubmit else { return }
    isWorking = true
    failure = nil
    do {
      try await account.logIn(login, password: password, device: device)
      password = ""
    } catch {
      failure = error.sentence
    }
    isWorking = false
  }
}
