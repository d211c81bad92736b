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

struct Logout: AccountCommand {
  static let configuration = CommandConfiguration(
    abstract: "End the session, and forget its tokens and the copies of lists.",
    discussion: "If the service does not confirm it, the session ends on this machine only, and the exit status is 4.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    // The copies go first: they must not outlive a session that was ended elsewhere.
    try CopyFolder(account.copies).forget()
    guard account.client.userID != nil else { throw MusterError.loggedOut }
    guard try await account.client.auth.logOut() else {
      throw Failure(
        status: .unavailable,
        description: """
          You are logged out on this machine: its tokens and copies are deleted. But \(account.server) did not \
          confirm it: there, the session may remain until it has been idle for 60 days. A password change ends it.
          """)
    }
    try console.show(Reply(value: (), json: .object([:]))) { ["Logged out of \(account.server)."] }
  }
}

struct WhoAmI: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "whoami", abstract: "Show your own profile.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.reply { try await account.client.me.get() }
    try console.show(reply) { console.lines(of: $0.fields(at: account.server)) }
  }
}
