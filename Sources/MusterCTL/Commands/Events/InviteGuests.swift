import ArgumentParser
import MusterKit

struct InviteGuests: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "invite", abstract: "Invite friends to an event that you host.",
    discussion: """
        musterctl events invite pasta ben cleo
      """)

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Argument(help: ArgumentHelp("The friends' usernames.", valueName: "username"), completion: .friends)
  var usernames: [String]

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let friends = try await account.friends(named: usernames)
    let reply = try await account.responses.reply {
      try await account.client.events.invite(friends.map(\.id), to: event.id)
    }
    let names = friends.map(\.fullName).joined(separator: ", ")
    try console.show(reply) { "Invited \(names) to \(EventText(event: $0).name)." }
  }
}

struct WithdrawInvitation: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "withdraw", abstract: "Take back a guest's invitation, turn a guest away, or remove a visitor.",
    discussion: """
      A guest with an account is notified. A visitor's page is gone.

        musterctl events withdraw pasta ben
        musterctl events withdraw pasta Zoe
      """)

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Argument(help: .guest, completion: .guests)
  var guest: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let guest = try await account.guest(named: guest, of: event)
    let reply = try await account.responses.reply {
      try await account.client.events.withdraw(guest.id, from: event.id)
    }
    let state = guest.user == nil ? "a guest of" : "invited to"
    try console.show(reply) { "\(guest.fullName) is no longer \(state) \(EventText(event: $0).name)." }
  }
}

struct ApproveGuest: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve", abstract: "Approve a guest who came through a share link that needs approval.",
    discussion: """
      A user may then answer. A visitor's answer takes effect immediately. To turn a guest away, withdraw them.

        musterctl events guests pasta
        musterctl events approve pasta Zoe
      """)

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Argument(help: .guest, completion: .guests)
  var guest: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let guest = try await account.guest(named: guest, of: event)
    let reply = try await account.responses.reply {
      try await account.client.events.approve(guest.id, at: event.id)
    }
    try console.show(reply) { "Approved \(guest.fullName) as a guest of \(EventText(event: $0).name)." }
  }
}

struct AnswerForGuest: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "answer-for", abstract: "Set a guest's answer to an event that you host.",
    discussion: """
      Works even after the deadline for answers. The guest is notified; a visitor with a confirmed address gets a mail.

        musterctl events answer-for pasta ben going
        musterctl events answer-for pasta Zoe going
      """)

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Argument(help: .guest, completion: .guests)
  var guest: String

  @Argument(help: ArgumentHelp("The guest's answer.", valueName: "answer"))
  var answer: Answer

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let guest = try await account.guest(named: guest, of: event)
    let reply = try await account.responses.reply {
      try await account.client.events.setAnswer(of: guest.id, at: event.id, to: answer)
    }
    try console.show(reply) {
      "Set the answer of \(guest.fullName) to \(EventText(event: $0).name): \(answer.rawValue)."
    }
  }
}

struct RemindGuests: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "remind", abstract: "Remind the guests who have not answered, each at most once a day.")

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let name = EventText(event: event).name
    let reply = try await account.responses.reply { try await account.client.events.remindGuests(of: event.id) }
    try console.show(reply) { reminded in
      switch reminded {
      case 0: "No guest of \(name) needs a reminder: all have answered, or were reminded within a day."
      case 1: "Reminded 1 guest of \(name)."
      default: "Reminded \(reminded) guests of \(name)."
      }
    }
  }
}
