import ArgumentParser
import MusterKit

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
