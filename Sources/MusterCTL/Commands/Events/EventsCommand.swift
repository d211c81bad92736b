import ArgumentParser

struct EventsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "events", abstract: "List, show and plan events.",
    discussion: """
        musterctl events
        musterctl events show pasta
        musterctl events create "Pasta night" tomorrow 19:00 --invite ben --invite cleo
        musterctl events edit pasta --time "fri 20:00"
        musterctl events cancel pasta
      """,
    subcommands: [
      ListEvents.self, PastEvents.self, ShowEvent.self, CreateEvent.self, EditEvent.self, InviteGuests.self,
      WithdrawInvitation.self, ListGuests.self, ApproveGuest.self, RemindGuests.self, AnswerForGuest.self,
      HostsCommand.self, LinksCommand.self, DuplicateEvent.self, CancelEvent.self,
    ],
    defaultSubcommand: ListEvents.self)
}
