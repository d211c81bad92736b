import ArgumentParser
import MusterClient

struct Logout: AccountCommand {
  static let configuration = CommandConfiguration(
    abstract: "End the session, and forget its tokens and the copies of lists.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    // The copies go first: they must not outlive a session that was ended elsewhere.
    try CopyFolder(account.copies).forget()
    guard account.client.userID != nil else { throw MusterError.loggedOut }
    try await account.client.auth.logOut()
    try console.show(Reply(value: (), json: .object([:]))) { ["Logged out of \(account.server)."] }
  }
}
