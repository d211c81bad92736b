import ArgumentParser
import MusterKit

struct SyncCommand: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync", abstract: "Show which copies of your lists are stale, and why, as a phone would at launch.",
    discussion: """
      Keeps a copy of each list, sends the copies' stamps and digests to the service, and prints for each list whether \
      the copy was stale and what has changed since. Then the copies are up to date. With --json, prints the service's \
      verdicts.
      """)

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    guard account.client.userID != nil else { throw MusterError.loggedOut }
    let reply = try await CopySync(account).run()
    if console.printsJSON { return console.say(JSONText.of(reply.json)) }
    let changes = reply.value
    console.say(
      Table(
        [.init("LIST"), .init("COPY"), .init("SINCE THEN", .flexible)],
        rows: changes.map {
          [
            .init($0.collection.rawValue),
            $0.isStale ? .init($0.hadCopy ? "stale" : "none", .yellow) : .init("up to date", .green),
            .init($0.summary),
          ]
        }))
    for change in changes where !change.items.isEmpty {
      console.say(["", console.styled(change.collection.rawValue, .bold)] + change.items.map { $0.line(on: console) })
    }
  }
}

extension CopyChange.Item {
  fileprivate func line(on console: Console) -> String {
    switch self {
    case .new(let name): "  \(console.styled("+", .green)) \(name.safeLine)"
    case .gone(let name): "  \(console.styled("-", .red)) \(name.safeLine)"
    case .changed(let name, let members):
      "  \(console.styled("~", .yellow)) \(name.safeLine): \(members.joined(separator: ", ").safeLine)"
    }
  }
}
