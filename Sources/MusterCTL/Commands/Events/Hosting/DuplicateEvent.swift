import ArgumentParser
import Foundation
import MusterKit

struct DuplicateEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "duplicate", abstract: "Create an event like one that you host, at another time.",
    discussion: """
      The copy takes as long as the event, unless --until or --for is given. Times are in the event's time zone. Asks \
      before it creates an event in the past; without a terminal, --yes is required.

        musterctl events duplicate pasta "fri 19:00" --invite
        musterctl events duplicate pasta "in 7 days" --for 2h
      """)

  @OptionGroup var event: EventArgument

  @Argument(help: "The start of the copy.")
  var time: [String]

  @Option(name: .customLong("for"), help: ArgumentHelp("How long it takes.", valueName: "duration"))
  var length: String?

  @Option(help: ArgumentHelp("The end, in place of --for.", valueName: "time"))
  var until: String?

  @Flag(help: "Invite the same guests if they are still your friends.")
  var invite = false

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard until == nil || length == nil else { throw ValidationError("Use either --until or --for.") }
  }

  func run(as account: Account, on console: Console) async throws {
    // A past event may also be repeated.
    let event = try await account.event(named: event.name)
    let plan = try PlannedTime(zoneNamed: event.timeZoneName)
    let start = try plan.start(time.joined(separator: " "))
    try plan.confirm(start, isConfirmed: yes)
    let end = try plan.end(after: start, until: until, length: length)
    let copy = EventCopy(startTime: start, endTime: end.map { .set($0) } ?? .keep, invite: invite)
    let reply = try await account.responses.reply { try await account.client.events.duplicate(event.id, as: copy) }
    try console.show(reply) { event in
      let count = event.counts?.invited ?? 0
      let invited = invite ? " Invited \(count == 1 ? "1 guest" : "\(count) guests")." : ""
      return "Created \(EventText(event: event).name).\(invited)"
    }
  }
}
