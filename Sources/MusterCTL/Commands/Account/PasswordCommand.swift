import ArgumentParser
import MusterKit

struct PasswordCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "password", abstract: "Change your password, or set the first one. Ends your other sessions.",
    discussion: """
      Asks for the current password, or for a mailed code, and for the new password. Passwords are never arguments: \
      other users of the machine could read them.

        musterctl password
        musterctl password --code
        cat passwords.txt | musterctl password --password-stdin

      Without a terminal, the current password (or the code) is the first line of stdin, and the new one the second. If \
      you have forgotten your password, log in with `musterctl login --code`, then use --code here.
      """)

  @OptionGroup var confirmation: Confirmation
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let user = try await account.client.me.get()
    let proof = try await confirmation.proof(of: user, as: account, on: console)
    let password = try UserInput.newPassword("New password: ", fromStdin: confirmation.passwordStdin)
    let reply = try await account.responses.reply {
      try await account.client.auth.changePassword(to: password, reauthentication: proof)
    }
    try console.show(reply) {
      "Your password is \(user.hasPassword ? "changed" : "set"). Your other sessions have ended."
    }
  }
}
