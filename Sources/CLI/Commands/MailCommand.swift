import App
import ArgumentParser
import Postgres

struct MailCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mail", abstract: "Find out which mails are not sent.", subcommands: [Suppressed.self])

  struct Suppressed: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Count the addresses that have opted out of mails from strangers, or check one.",
      discussion: "The database contains only MACs of addresses, so the command needs the keys of `muster worker`.")

    @Argument(help: "The e-mail address to check. Without it, the command prints the count.")
    var address: String?

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    private struct Count: Encodable {
      let count: Int
    }

    private struct Answer: Encodable {
      let isSuppressed: Bool
    }

    func run() async throws {
      let configuration = try await MusterConfiguration.loadWithWarnings(for: .worker)
      let database = try Database(configuration.database("muster mail", logger: makeLogger()))
      defer { database.close() }
      guard let address else {
        let count = try await MailOptOuts.count(in: database)
        if json { return try Count(count: count).printJSON() }
        return print("\(count) suppressed")
      }
      let isSuppressed = try await MailOptOuts(configuration).contain(address: address, in: database)
      if json { return try Answer(isSuppressed: isSuppressed).printJSON() }
      print(isSuppressed ? "suppressed" : "not suppressed")
    }
  }
}
