import ArgumentParser
import Foundation
import MusterKit

struct Register: AccountCommand {
  static let configuration = CommandConfiguration(
    abstract: "Create an account, and log in.",
    discussion: """
        musterctl register gil gil@example.com --name "Gil Moreau" --server https://muster.example
      """)

  @Argument(help: "3 to 30 letters, digits, and . _ -")
  var username: String

  @Argument(help: "Your e-mail address. Other users do not see it.")
  var email: String

  @Option(help: ArgumentHelp("The name that other users see. By default the username.", valueName: "display name"))
  var name: String?

  @Flag(help: "Read the password from stdin.")
  var passwordStdin = false

  @Flag(help: "Create an account without a password. You then log in with mailed codes.")
  var noPassword = false

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard !(passwordStdin && noPassword) else {
      throw ValidationError("Use either --password-stdin or --no-password.")
    }
  }

  func run() async throws {
    try await run(as: try options.account(fallback: ServerURL.development), on: options.console)
  }

  func run(as account: Account, on console: Console) async throws {
    let password = noPassword ? nil : try UserInput.newPassword(fromStdin: passwordStdin)
    let reply = try await account.logIn {
      try await account.client.auth.register(
        username: username, email: email, password: password, displayName: name, device: Account.deviceName)
    }
    try console.show(reply) { "Registered \($0.person.fullName) at \(account.server). You are logged in." }
  }
}
