import ArgumentParser
import Foundation
import MusterKit

struct Login: AccountCommand {
  static let configuration = CommandConfiguration(
    abstract: "Log in, with a password or a mailed code.",
    discussion: """
      Asks for missing values. The password is neither shown nor stored. The tokens are stored, readable by you alone.

        musterctl login ana --server https://muster.example
        musterctl login ana@example.com --code
        cat password.txt | musterctl login ana --password-stdin
      """)

  @Argument(help: "The username or the e-mail address; with --code, the e-mail address.")
  var login: String?

  @Flag(help: "Read the password from stdin.")
  var passwordStdin = false

  @Flag(help: "Log in with a mailed code instead of a password. Without a terminal, the code is read from stdin.")
  var code = false

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard !(passwordStdin && code) else { throw ValidationError("Use either --password-stdin or --code.") }
  }

  func run() async throws {
    try await run(as: try options.account(fallback: ServerURL.development), on: options.console)
  }

  func run(as account: Account, on console: Console) async throws {
    let login = try login ?? UserInput.line(code ? "E-mail: " : "Username or e-mail: ", missing: "login")
    let reply: Reply<User>
    if code {
      try await account.client.auth.requestCode(email: login)
      console.note("If an account has this address, a code is on its way.")
      let digits = try UserInput.line("Code: ", missing: "code").trimmingCharacters(in: .whitespaces)
      reply = try await account.logIn {
        try await account.client.auth.logIn(email: login, code: digits, device: Account.deviceName)
      }
    } else {
      let password = try UserInput.password(fromStdin: passwordStdin)
      reply = try await account.logIn {
        try await account.client.auth.logIn(as: login, password: password, device: Account.deviceName)
      }
    }
    try console.show(reply) { "Logged in as \($0.person.fullName) at \(account.server)." }
  }
}
