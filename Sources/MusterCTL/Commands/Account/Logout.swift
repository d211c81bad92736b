import ArgumentParser
import MusterClient

struct Logout: AccountCommand {
  static let configuration = CommandConfiguration(
    abstract: "End the session, and forget its tokens and the copies of lists.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    guard account.client.userID != nil else { throw MusterError.loggedOut }
    try await account.client.auth.logOut()
    try CopyFolder(account.copies).forget()
    try console.show(Reply(value: (), json: .object([:]))) { ["Logged out of \(account.server)."] }
  }
}
