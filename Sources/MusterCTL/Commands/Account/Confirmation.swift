import ArgumentParser
import Foundation
import MusterKit

/// How the user proves who they are before a risky change.
struct Confirmation: ParsableArguments {
  @Flag(help: "Confirm with a mailed code instead of the password.")
  var code = false

  @Flag(help: "Read passwords and codes from stdin, one on each line.")
  var passwordStdin = false

  /// Asks for the current password, or for a code that is mailed first.
  ///
  /// - Returns: nil for an account that has nothing to prove it with.
  func proof(of user: User, as account: Account, on console: Console) async throws -> Reauthentication? {
    if code {
      guard let email = user.email, user.emailVerified else {
        throw Failure.refused(
          "A code can only be mailed to a verified address. Follow the link in the mail that verifies yours first.")
      }
      try await account.client.auth.requestOwnCode(email: email)
      console.note("A code is on its way to \(email.safeLine).")
      return .code(try UserInput.line("Code: ", missing: "code").trimmingCharacters(in: .whitespaces))
    }
    if user.hasPassword { return .password(try UserInput.password("Current password: ", fromStdin: passwordStdin)) }
    guard user.emailVerified || !user.identities.isEmpty else { return nil }
    throw Failure.refused("Your account has no password. Use --code to confirm with a mailed code.")
  }
}
