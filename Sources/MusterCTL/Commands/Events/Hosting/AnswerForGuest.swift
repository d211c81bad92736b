import ArgumentParser
import MusterKit

struct AnswerForGuest: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "answer-for", abstract: "Set a guest's answer to an event that you host.",
    discussion: """
      Works even after the deadline for answers. The guest is notified; a visitor with a confirmed address gets a mail.

        musterctl events answer-for pasta ben going
        musterctl events answer-for pasta Zoe going
      """)

  @OptionGroup var event: EventArgument
  @OptionGroup var guest: GuestArgument

  @Argument(help: ArgumentHelp("The guest's answer.", valueName: "answer"))
  var answer: Answer

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event.name)
    let guest = try await account.guest(named: guest.name, of: event)
    let reply = try await account.responses.reply {
      try await account.client.events.setAnswer(of: guest.id, at: event.id, to: answer)
    }
    try console.show(reply) {
      "Set the answer of \(guest.fullName) to \(EventText(event: $0).name): \(answer.rawValue)."
    }
  }
}
