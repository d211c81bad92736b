import Foundation
import MusterKit
import Observation

/// Logging in and registering, with a password or with Apple.
@MainActor @Observable
final class SignInForm {
  enum Purpose: String, CaseIterable { case logIn = "Log in", register = "Register" }

  var purpose = Purpose.logIn
  var username = ""
  var email = ""
  var password = ""
  private(set) var isWorking = false
  private(set) var failure: String?
  private var nonce = ""

  var canSubmit: Bool {
    !isWorking && !username.isEmpty && !password.isEmpty && (purpose == .logIn || !email.isEmpty)
  }

  func submit(to account: Account, device: String) async {
    guard canSubmit else { return }
    await work(on: account) { auth in
      switch purpose {
      case .logIn: _ = try await auth.logIn(as: username, password: password, device: device)
      case .register:
        _ = try await auth.register(username: username, email: email, password: password, device: device)
      }
    }
  }

  /// For a new request to Apple, whose token is only valid together with it.
  func makeNonce() -> String {
    nonce = UUID().uuidString
    return nonce
  }

  /// The first sign-in creates the account: only then does Apple tell the name. With the code, the service revokes the
  /// grant when the account is deleted.
  func signInWithApple(
    _ token: Data?, code: Data?, name: PersonNameComponents?, to account: Account, device: String
  ) async {
    guard let token else { return failure = Problem.Slug.invalidIdentityToken.sentence }
    let names = [name?.givenName, name?.familyName].compactMap { $0 }
    await work(on: account) { auth in
      _ = try await auth.signInWithApple(
        idToken: String(decoding: token, as: UTF8.self), nonce: nonce,
        displayName: names.isEmpty ? nil : names.joined(separator: " "),
        authorizationCode: code.map { String(decoding: $0, as: UTF8.self) }, device: device)
    }
  }

  private func work(on account: Account, _ attempt: @MainActor (AuthAPI) async throws -> Void) async {
    isWorking = true
    failure = await Home.failure {
      try await account.logIn(attempt)
      password = ""
    }
    isWorking = false
  }
}
