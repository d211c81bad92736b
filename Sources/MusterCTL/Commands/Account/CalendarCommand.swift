import ArgumentParser

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
