import ArgumentParser
import Foundation
import MusterKit

struct CalendarCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "calendar", abstract: "Show, replace or revoke the link to your calendar feed.",
    discussion: """
      Calendar apps that subscribe to the link show your events. Anyone who has the link can read them.

        musterctl calendar
        musterctl calendar replace
        musterctl calendar revoke
      """,
    subcommands: [ShowCalendar.self, ReplaceCalendar.self, RevokeCalendar.self], defaultSubcommand: ShowCalendar.self)
}

struct ShowCalendar: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the link to your calendar feed.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.reply { try await account.client.me.calendarLink() }
    guard reply.value != nil || console.printsJSON else {
      return console.note("You have no calendar link. `musterctl calendar replace` creates one.")
    }
    try console.show(reply) { $0.map { console.lines(of: $0.fields) } ?? [] }
  }
}

extension CalendarLink {
  var fields: [(name: String, value: String)] {
    [
      ("Link", url.absoluteString), ("Subscribe", webcalUrl.absoluteString),
      ("Since", TimeText.here.dayAndTime(createdAt)),
    ]
  }
}

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
