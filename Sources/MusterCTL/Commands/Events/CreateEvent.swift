import ArgumentParser
import Foundation
import MusterKit

struct CreateEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create an event, and invite friends to it.",
    discussion: """
      Times are written as people write them: tomorrow 19:00, fri 6:30pm, 1 May 18:00, 2026-05-01 18:00. A weekday is \
      the next one. Durations are 90 (minutes), "2 hours" or 1h30m. Asks before it creates an event in the past; \
      without a terminal, --yes is required.

        musterctl events create "Pasta night" tomorrow 19:00 --for 3h --invite ben
        musterctl events create "Coffee" --in 45 --invite ben --invite cleo
        musterctl events create "Concert" 2026-06-12 20:00 --zone Europe/Paris
      """)

  @Argument(help: "The title.")
  var title: String

  @Argument(help: "The start, if --in is not given.")
  var time: [String] = []

  @Option(help: ArgumentHelp("Start after this time, such as 45 (minutes) or \"2 hours\".", valueName: "duration"))
  var `in`: String?

  @Option(name: .customLong("for"), help: ArgumentHelp("How long it takes.", valueName: "duration"))
  var length: String?

  @Option(help: ArgumentHelp("The end, in place of --for.", valueName: "time"))
  var until: String?

  @Option(help: ArgumentHelp("The time zone of the times and of the event. By default yours.", valueName: "name"))
  var zone: String?

  @Option(help: ArgumentHelp("Where it takes place.", valueName: "text"))
  var place: String?

  @Option(
    help: ArgumentHelp("Tickets, the video call or the menu: an https address.", valueName: "address"),
    transform: URL.init(argument:))
  var url: URL?

  @Option(help: ArgumentHelp("More about it.", valueName: "text"))
  var note: String?

  @Option(help: ArgumentHelp("The number of places for guests.", valueName: "number"))
  var capacity: Int?

  @Option(help: ArgumentHelp("How many people each guest may bring along, at most 10.", valueName: "number"))
  var plusOnes: Int?

  @Option(help: ArgumentHelp("Until when guests answer.", valueName: "time"))
  var answerBy: String?

  @Option(
    help: ArgumentHelp("Invite these friends: ben, or ben,cleo. May be repeated.", valueName: "usernames"),
    completion: .severalFriends)
  var invite: [String] = []

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard time.isEmpty != (`in` == nil) else { throw ValidationError("Specify the start as a time, or with --in.") }
    guard until == nil || length == nil else { throw ValidationError("Use either --until or --for.") }
  }

  func run(as account: Account, on console: Console) async throws {
    let plan = try PlannedTime(zoneNamed: zone)
    let start = try plan.start(`in`.map { "in \($0)" } ?? time.joined(separator: " "))
    try plan.confirm(start, isConfirmed: yes)
    let end = try plan.end(after: start, until: until, length: length)
    let invitees = try await account.friends(named: invite.flatMap { $0.split(separator: ",").map(String.init) })
    let draft = EventDraft(
      title: title, note: note, startTime: start, endTime: end, timeZone: plan.zone,
      location: place.map { Location(name: $0) }, url: url, capacity: capacity, answerBy: try answerBy.map(plan.start),
      maxPlusOnes: plusOnes,
      inviteeIds: invitees.map(\.id))
    let reply = try await account.responses.reply { try await account.client.events.create(draft) }
    try console.show(reply) { event in
      let names = invitees.map(\.fullName).joined(separator: ", ")
      let invited = invitees.isEmpty ? "" : " Invited \(names)."
      return "Created \(EventText(event: event).name).\(invited)"
    }
  }
}

extension URL {
  /// - Throws: ``ValidationError`` if it is no URL. The service has further rules.
  init(argument: String) throws {
    guard let url = URL(string: argument) else { throw ValidationError("“\(argument)” is not a web address.") }
    self = url
  }
}

struct DuplicateEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "duplicate", abstract: "Create an event like one that you host, at another time.",
    discussion: """
      The copy takes as long as the event, unless --until or --for is given. Times are in the event's time zone. Asks \
      before it creates an event in the past; without a terminal, --yes is required.

        musterctl events duplicate pasta "fri 19:00" --invite
        musterctl events duplicate pasta "in 7 days" --for 2h
      """)

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

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
    let event = try await account.event(named: event)
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
