import ArgumentParser
import MusterKit

struct RevokeCalendar: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revoke the link to your calendar feed.",
    discussion: "Asks first. Without a terminal, --yes is required.")

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    try Prompt.confirm(
      "Calendars that use the link stop updating. Continue?", isConfirmed: yes, refusal: "Nothing was changed.")
    let reply = try await account.responses.reply { try await account.client.me.revokeCalendarLink() }
    try console.show(reply) { "Your calendar link is revoked." }
  }
}
