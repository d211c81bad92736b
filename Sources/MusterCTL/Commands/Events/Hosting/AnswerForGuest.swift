import ArgumentParser
import MusterClient

struct AnswerForGuest: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "answer-for", abstract: "Set a guest's answer to an event that you host. The guest is notified.",
    discussion: """
      Works also when the time to answer is over.

        musterctl events answer-for pasta ben going
      """)

  @OptionGroup var event: EventArgument
  @OptionGroup var user: UserArgument

  @Argument(help: ArgumentHelp("The guest's answer.", valueName: "answer"))
  var choice: AnswerCommand.Choice

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let guest = try await account.guest(named: user.name, of: event)
    guard guest.user != nil else {
      throw Failure.refused("\(guest.fullName) has no account, and answers on a page of their own.")
    }
    let reply = try await account.responses.reply {
      try await account.client.events.setAnswer(AnswerStatus(rawValue: choice.rawValue), of: guest.id, to: event.id)
    }
    try console.show(reply) {
      "Set the answer of \(guest.fullName) to \(EventText(event: $0).name): \(choice.rawValue)."
    }
  }
}
