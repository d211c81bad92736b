import ArgumentParser
import Foundation
import MusterKit

struct EditEvent: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "edit", abstract: "Change an event that you host. Guests who have not declined are notified.",
    discussion: """
      A new start also moves the end, so that the event takes as long as before, unless --until or --for is given. A \
      new place has no coordinates. Times are in the event's time zone, even if it is not yours, or in that of --zone. \
      Asks before it moves the start into the past; without a terminal, --yes is required.

        musterctl events edit pasta --time "fri 20:00"
        musterctl events edit pasta --title "Pizza night" --place "Ben's garden"
        musterctl events edit pasta --clear capacity --clear note
      """)

  enum Field: String, ExpressibleByArgument, CaseIterable {
    case note, place, url, capacity, end
    case answerBy = "answer-by"
  }

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Option(help: ArgumentHelp("The new title.", valueName: "text"))
  var title: String?

  @Option(help: ArgumentHelp("The new start.", valueName: "time"))
  var time: String?

  @Option(name: .customLong("for"), help: ArgumentHelp("How long it takes.", valueName: "duration"))
  var length: String?

  @Option(help: ArgumentHelp("The new end.", valueName: "time"))
  var until: String?

  @Option(
    help: ArgumentHelp(
      "The time zone of the times, and the new one of the event. By default the event's.", valueName: "name"))
  var zone: String?

  @Option(help: ArgumentHelp("The new place.", valueName: "text"))
  var place: String?

  @Option(
    help: ArgumentHelp("The new web address.", valueName: "address"), transform: URL.init(argument:))
  var url: URL?

  @Option(help: ArgumentHelp("The new note.", valueName: "text"))
  var note: String?

  @Option(help: ArgumentHelp("The new number of places for guests.", valueName: "number"))
  var capacity: Int?

  @Option(help: ArgumentHelp("How many people each guest may bring along, at most 10.", valueName: "number"))
  var plusOnes: Int?

  @Option(help: ArgumentHelp("Until when guests answer.", valueName: "time"))
  var answerBy: String?

  @Option(help: ArgumentHelp("Remove this. May be repeated.", valueName: "field"))
  var clear: [Field] = []

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard until == nil || length == nil else { throw ValidationError("Use either --until or --for.") }
    let given: [Field?] = [
      note.map { _ in .note }, place.map { _ in .place }, url.map { _ in .url }, capacity.map { _ in .capacity },
      (until ?? length).map { _ in .end }, answerBy.map { _ in .answerBy },
    ]
    guard let both = given.compactMap({ $0 }).first(where: clear.contains) else { return }
    throw ValidationError("The field \(both.rawValue) cannot be both set and cleared.")
  }

  func run(as account: Account, on console: Console) async throws {
    let old = try await account.changeableEvent(named: event)
    let edit = try edit(of: old)
    guard edit != EventEdit() else {
      throw Failure.usage("Specify what to change. See `musterctl events edit --help`.")
    }
    if let start = edit.startTime { try PlannedTime(zoneNamed: nil).confirm(start, isConfirmed: yes) }
    // The new end depends on the old times.
    let reply = try await account.responses.reply {
      try await account.client.events.edit(old.id, applying: edit, ifVersion: old.version)
    }
    try console.show(reply) { new in
      let changes = FieldChangeText().text(of: try FieldChangeText.changes(from: old, to: new))
      return changes.isEmpty ? "Nothing has changed." : "Changed “\(new.title)”: \(changes)."
    }
  }

  func edit(of old: Event, now: Date = Date()) throws -> EventEdit {
    let plan = try PlannedTime(now: now, zoneNamed: zone ?? old.timeZoneName)
    let start = try time.map(plan.start)
    var edit = EventEdit(title: title, startTime: start, timeZone: zone == nil ? nil : plan.zone)
    if let end = try plan.end(after: start ?? old.startTime, until: until, length: length) {
      edit.endTime = .set(end)
    } else if let start, let end = old.endTime, !clear.contains(.end) {
      edit.endTime = .set(start.addingTimeInterval(end.timeIntervalSince(old.startTime)))
    }
    if let note { edit.note = .set(note) }
    if let place { edit.location = .set(Location(name: place)) }
    if let url { edit.url = .set(url) }
    if let capacity { edit.capacity = .set(capacity) }
    edit.maxPlusOnes = plusOnes
    if let answerBy { edit.answerBy = .set(try plan.start(answerBy)) }
    for field in clear {
      switch field {
      case .note: edit.note = .clear
      case .place: edit.location = .clear
      case .url: edit.url = .clear
      case .capacity: edit.capacity = .clear
      case .end: edit.endTime = .clear
      case .answerBy: edit.answerBy = .clear
      }
    }
    return edit
  }
}
