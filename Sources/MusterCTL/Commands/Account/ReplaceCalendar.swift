import ArgumentParser
import MusterKit

struct ReplaceCalendar: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "replace", abstract: "Create a link to your calendar feed. An earlier link stops working.",
    discussion: "If there is a link, asks first. Without a terminal, --yes is then required.")

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    if try await account.client.me.calendarLink() != nil {
      try Prompt.confirm(
        "Calendars that use the current link stop updating. Continue?", isConfirmed: yes,
        refusal: "Nothing was changed.")
    }
    let reply = try await account.responses.reply { try await account.client.me.makeCalendarLink() }
    try console.show(reply) { console.lines(of: $0.fields) }
  }
}
