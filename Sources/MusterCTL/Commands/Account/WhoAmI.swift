import ArgumentParser
import MusterKit

struct WhoAmI: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "whoami", abstract: "Show your own profile.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.reply { try await account.client.me.get() }
    try console.show(reply) { user in
      var fields = [("Username", user.username), ("Name", user.displayName), ("Service", account.server.description)]
      if let email = user.email { fields.append(("E-mail", email + (user.emailVerified ? "" : " (not verified)"))) }
      if let pending = user.pendingEmail { fields.append(("New e-mail", "\(pending) (not verified)")) }
      if let bio = user.bio { fields.append(("About you", bio)) }
      return console.lines(of: fields)
    }
  }
}
