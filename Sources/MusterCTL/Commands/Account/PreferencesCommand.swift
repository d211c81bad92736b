import ArgumentParser
import MusterKit

struct PreferencesCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "preferences", abstract: "Show or change which notifications are sent to your devices.",
    discussion: """
      The inbox has all of them.

        musterctl preferences
        musterctl preferences --off event-updated --off guest-answered
        musterctl preferences --on event-updated
      """)

  private static let types = NotificationType.known.map(\.rawValue)

  @Option(
    help: ArgumentHelp("Send notifications of this type. May be repeated.", valueName: "type"), completion: .list(types)
  )
  var on: [String] = []

  @Option(
    help: ArgumentHelp("Do not send notifications of this type. May be repeated.", valueName: "type"),
    completion: .list(types))
  var off: [String] = []

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard let both = on.first(where: off.contains) else { return }
    throw ValidationError("The type \(both) cannot be both on and off.")
  }

  func run(as account: Account, on console: Console) async throws {
    let old = try await account.responses.reply { try await account.client.notifications.preferences() }
    // The service may know more types than this program.
    for type in on + off where old.value.choices[.init(rawValue: type)] == nil {
      if NotificationType.known.contains(.init(rawValue: type)) {
        throw Failure.refused("Notifications of the type \(type) are always sent.")
      }
      let names = old.value.choices.keys.map(\.rawValue).sorted()
      let similar = Suggestion.things(for: type, in: names) { [$0, $0.replacing("-", with: " ")] }
      let advice = similar.isEmpty ? "`musterctl preferences` lists them." : Suggestion.question(similar)
      throw Failure.usage("There is no type of notification \"\(type)\". \(advice)")
    }
    guard !(on + off).isEmpty else { return try show(old, on: console) }
    let choices = on.map { ($0, true) } + off.map { ($0, false) }
    let edit = NotificationPreferences(
      Dictionary(choices.map { (NotificationType(rawValue: $0), $1) }) { _, last in last })
    let new = try await account.responses.reply { try await account.client.notifications.setPreferences(edit) }
    try show(new, on: console)
  }

  private func show(_ reply: Reply<NotificationPreferences>, on console: Console) throws {
    if console.printsJSON { return console.say(JSONText.of(reply.json)) }
    let known = NotificationType.known.filter { reply.value.choices[$0] != nil }
    let new = reply.value.choices.keys.filter { !known.contains($0) }.sorted { $0.rawValue < $1.rawValue }
    console.say(
      Table(
        [.init("NOTIFICATION"), .init("SENT")],
        rows: (known + new).map {
          [.init($0.rawValue), reply.value[$0] ? .init("on", .green) : .init("off", .red)]
        }))
  }
}
