import ArgumentParser
import Foundation
import MusterKit

@main
struct MusterCTL: AsyncParsableCommand {
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: "musterctl",
    abstract: "Muster in a terminal: friends, events, answers, the inbox, and live updates.",
    discussion: """
      Start with:

        musterctl login ana --server https://muster.example
        musterctl events
        musterctl events create "Pasta night" tomorrow 19:00 --invite ben
        musterctl watch

      Users are named by their usernames. Events are named by a part of the title that no other event has, by their id, \
      or by the beginning or end of the id. Results go to stdout, everything else to stderr. With --json, every command \
      prints the service's responses.

      Exit status:

      \(ProgramExit.listing)

      MUSTER_SERVER and MUSTER_PROFILE stand for --server and --profile. Tokens are kept in ~/.config/muster, copies of \
      lists in ~/.cache/muster; XDG_CONFIG_HOME and XDG_CACHE_HOME move them. NO_COLOR turns colors off.

      For completion in your shell, run: musterctl --generate-completion-script bash (or zsh, or fish).
      """,
    version: version,
    groupedSubcommands: [
      CommandGroup(
        name: "Account",
        subcommands: [
          Login.self, Register.self, Logout.self, WhoAmI.self, ProfileCommand.self, PictureCommand.self,
          PasswordCommand.self, SessionsCommand.self, PrivacyCommand.self, PreferencesCommand.self, DevicesCommand.self,
          CalendarCommand.self, ExportCommand.self,
        ]),
      CommandGroup(
        name: "People",
        subcommands: [
          FriendsCommand.self, RequestsCommand.self, FindCommand.self, BlockCommand.self, UnblockCommand.self,
          BlocksCommand.self, ReportCommand.self,
        ]),
      CommandGroup(
        name: "Plans",
        subcommands: [EventsCommand.self, AnswerCommand.self, JoinCommand.self, ProposalsCommand.self]),
      CommandGroup(name: "News", subcommands: [InboxCommand.self, WatchCommand.self, SyncCommand.self]),
    ])

  static func main() async {
    var options: AccountOptions?
    do {
      var command = try await asyncParseAsRoot()
      options = (command as? any AccountCommand)?.options
      if var asyncCommand = command as? any AsyncParsableCommand {
        try await asyncCommand.run()
      } else {
        try command.run()
      }
    } catch {
      end(with: error, options)
    }
  }

  private static func end(with error: any Error, _ options: AccountOptions?) -> Never {
    // Without options, the command line could not be read.
    let printsJSON = options?.json ?? CommandLine.arguments.prefix { $0 != "--" }.contains("--json")
    if let report = ErrorReport(error, server: (try? options?.account(fallback: ServerURL.development))?.server) {
      end(with: report.text(asJSON: printsJSON), report.status)
    }
    // Help and the version on request go to stdout.
    guard exitCode(for: error) == .validationFailure else { exit(withError: error) }
    // The same sentence again, in whatever the parser prints around it.
    let plain = message(for: error)
    let improved = UsageMessage.improved(plain, for: Array(CommandLine.arguments.dropFirst()))
    let text = fullMessage(for: error).replacing(plain, with: improved, maxReplacements: 1)
    end(with: printsJSON ? ErrorReport(usage: improved).text(asJSON: true) : text, .usage)
  }

  private static func end(with text: String, _ status: ProgramExit) -> Never {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    Foundation.exit(status.rawValue)
  }
}
