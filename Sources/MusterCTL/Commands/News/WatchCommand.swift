import ArgumentParser
import Foundation
import MusterKit

struct WatchCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch", abstract: "Print notifications as they arrive, until Ctrl-C.",
    discussion: """
      Reconnects after a lost connection, and misses nothing. With --json, prints one line for each event: \
      {"event":"notification","data":{...}}

        musterctl watch
        musterctl watch --json --count 1
      """)

  @Flag(help: "Also print which lists have changed.")
  var changes = false

  @Option(help: ArgumentHelp("Stop after this many notifications.", valueName: "number"))
  var count: Int?

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard count.map({ $0 > 0 }) ?? true else { throw ValidationError("--count must be at least 1.") }
  }

  func run(as account: Account, on console: Console) async throws {
    // The stream retries forever. A first call tells whether the service is there.
    let user = try await account.client.me.get()
    let watching = Task { try await watch(account, as: user, on: console) }
    let interrupt = Interrupt { watching.cancel() }
    defer { interrupt.end() }
    do {
      try await watching.value
    } catch  where watching.isCancelled {
      // Ctrl-C is the usual end.
    }
  }

  private func watch(_ account: Account, as user: User, on console: Console) async throws {
    var left = count ?? .max
    var isFirst = true
    var events = account.client.notifications.stream().makeAsyncIterator()
    while let event = try await events.next() {
      switch event {
      case .connected:
        console.note(isFirst ? "Watching as \(user.person.fullName). Ctrl-C ends it." : "Connected again.")
        isFirst = false
      case .notification(let item):
        if console.printsJSON {
          try show("notification", events.lastData, on: console)
        } else {
          let time = console.styled(TimeText.here.dayAndTime(item.createdAt), .faint)
          console.say("\(time)  \(item.text.safeLine)")
        }
        left -= 1
        if left == 0 { return }
      case .changed(let stamps):
        guard changes else { continue }
        if console.printsJSON {
          try show("changed", events.lastData, on: console)
        } else {
          let names = stamps.keys.map(\.rawValue).sorted().joined(separator: ", ")
          console.say(console.styled("changed: \(names)", .faint))
        }
      }
    }
  }

  /// - Parameter json: as the service sent it, with members that this program does not know.
  private func show(_ event: String, _ json: String?, on console: Console) throws {
    let data = try JSONDecoder.muster().decode(JSONValue.self, from: Data((json ?? "null").utf8))
    console.say(JSONText.of(.object(["event": .string(event), "data": data]), isIndented: false))
  }
}

extension InboxItem {
  /// The message, and the old and new values of an event's fields. The message says which fields have changed.
  fileprivate var text: String {
    let changes = (changes ?? []).filter { $0.field != "note" }
    return changes.isEmpty ? message : "\(message) (\(FieldChangeText().text(of: changes)))"
  }
}
