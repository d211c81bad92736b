import App
import ArgumentParser
import Postgres

struct Sessions: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "End sessions.", subcommands: [End.self])

  struct End: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "End sessions on every process within a second: access and refresh tokens, and the sessions' devices.")

    @Option(help: "End the sessions of this user.")
    var user: String?

    @Flag(help: "End the sessions of all users.")
    var all = false

    func validate() throws {
      guard all == (user == nil) else { throw ValidationError("Use either --user or --all.") }
    }

    func run() async throws {
      try await withDatabase("muster sessions") { database in
        if let user {
          let count = try await Session.endAll(ofUserNamed: user, in: database)
          print("ended \(count) sessions of \(user)")
        } else {
          let count = try await Session.endEveryones(in: database) { print("ended all sessions") }
          print("recorded the end of \(count) sessions")
        }
      }
    }
  }
}

struct Keys: ParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Print fresh values for the three key variables.")

  func run() {
    print("MUSTER_ACCESS_TOKEN_KEYS=\(SigningKeys.generate())")
    print("MUSTER_REFRESH_TOKEN_KEYS=\(SigningKeys.generate())")
    print("MUSTER_ADDRESS_KEYS=\(SigningKeys.generate())")
  }
}
