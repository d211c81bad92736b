import ArgumentParser
import MusterKit

struct ReportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report", abstract: "Report a user, an event or a visitor to the operators.",
    discussion: """
      The operators also get a copy of what you report. The reported user is not notified. Report an event before you \
      block its creator: a block hides it from you.

        musterctl report user ben --reason spam
        musterctl report event pasta --reason hate --text "See the note."
        musterctl report guest pasta Zoe --reason impersonation
      """,
    subcommands: [ReportUser.self, ReportEvent.self, ReportGuest.self])
}

extension ReportReason: ExpressibleByArgument {
  public init?(argument: String) {
    self.init(rawValue: argument)
    guard ReportReason.known.contains(self) else { return nil }
  }

  public static var allValueStrings: [String] { known.map(\.rawValue) }
}

struct ReportOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Why.", valueName: "reason"), completion: .list(ReportReason.allValueStrings))
  var reason: ReportReason

  @Option(help: ArgumentHelp("More about it, in your own words.", valueName: "text"))
  var text: String?
}

struct ReportUser: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Report a user: the names, the text about themselves, or the picture.")

  @Argument(
    help: ArgumentHelp(
      "The user's username; or the id, also of a user who has blocked you.", valueName: "username"),
    completion: .anyone)
  var user: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let (id, name) = try await account.reportable(named: user)
    let reply = try await account.responses.reply {
      try await account.client.reports.report(user: id, reason: report.reason, text: report.text)
    }
    try console.show(reply) { _ in "Reported \(name) to the operators." }
  }
}

extension Account {
  /// A user to report: also one whom the caller has blocked, or who has blocked the caller.
  fileprivate func reportable(named name: String) async throws -> (id: User.ID, name: String) {
    if let id = User.ID(name) { return (id, "the user \(id)") }
    do {
      let person = try await user(named: name)
      return (person.id, person.fullName)
    } catch let failure as Failure {
      // The search does not find them.
      let blocks = try await responses.pages { try await client.blocks.list(limit: $0, cursor: $1) }.value
      guard let person = blocks.map(\.user).first(where: { $0.isNamed(name) }) else { throw failure }
      return (person.id, person.fullName)
    }
  }
}

struct ReportEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "event", abstract: "Report an event: the title, the note, the place or the web address.")

  @Argument(help: .event, completion: .events)
  var event: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.event(named: event)
    let reply = try await account.responses.reply {
      try await account.client.reports.report(event: event.id, reason: report.reason, text: report.text)
    }
    try console.show(reply) { _ in "Reported \(EventText(event: event).name) to the operators." }
  }
}

struct ReportGuest: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "guest", abstract: "Report a visitor, or another guest, whose name you see in the list of an event.")

  @Argument(help: .event, completion: .events)
  var event: String

  @Argument(help: .guest, completion: .guests)
  var guest: String

  @OptionGroup var report: ReportOptions
  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.event(named: event)
    let guest = try await account.guest(named: guest, of: event)
    let reply = try await account.responses.reply {
      if let user = guest.user {
        try await account.client.reports.report(user: user.id, reason: report.reason, text: report.text)
      } else {
        try await account.client.reports.report(guest: guest.id, reason: report.reason, text: report.text)
      }
    }
    try console.show(reply) { _ in "Reported \(guest.fullName) to the operators." }
  }
}
