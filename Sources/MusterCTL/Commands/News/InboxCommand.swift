import ArgumentParser
import MusterKit

struct InboxCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "inbox", abstract: "List your notifications, newest first. A dot marks those that you have not read.")

  @Flag(help: "Leave out notifications that you have read.")
  var unread = false

  @Flag(help: "Mark the shown notifications as read.")
  var markRead = false

  @Option(help: ArgumentHelp("The maximum number of notifications.", valueName: "number"))
  var limit = 50

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard (1...10_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 10000.") }
  }

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages(limit: limit) {
      try await account.client.notifications.list(unread: unread, limit: $0, cursor: $1)
    }
    try console.show(reply, orNote: unread ? "You have read everything." : "Nothing has happened yet.") { items in
      Table(
        [.init(""), .init("WHEN"), .init("MESSAGE", .flexible)],
        rows: items.map { item in
          let isRead = item.readAt != nil
          return [
            .init(isRead ? "" : "•", .yellow), .init(TimeText.here.dayAndTime(item.createdAt), .faint),
            .init(item.message, isRead ? .plain : .bold),
          ]
        })
    }
    guard markRead else { return }
    let new = reply.value.filter { $0.readAt == nil }.map(\.id)
    for start in stride(from: 0, to: new.count, by: InboxCommand.batch) {
      try await account.client.notifications.markRead(ids: Array(new[start...].prefix(InboxCommand.batch)))
    }
  }

  /// The most that the service marks with one request.
  private static let batch = 500
}
