import ArgumentParser
import MusterKit

struct HostsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hosts", abstract: "Add and remove co-hosts of an event that you created.",
    discussion: """
      Co-hosts edit the event, invite their friends, and answer for guests. `musterctl events show` lists the hosts.

        musterctl events hosts add pasta ben
        musterctl events hosts remove pasta ben
      """,
    subcommands: [AddHost.self, RemoveHost.self])
}

struct AddHost: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Ask a friend or a guest to be a co-host. They accept with `musterctl proposals accept`.",
    discussion: """
        musterctl events hosts add pasta ben
      """)

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Argument(help: .username, completion: .friends)
  var user: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let person = try await account.user(named: user)
    let reply = try await account.responses.reply {
      try await account.client.events.addHost(person.id, to: event.id)
    }
    try console.show(reply) { "Asked \(person.fullName) to host \(EventText(event: $0).name)." }
  }
}

struct RemoveHost: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove a co-host, or leave an event that you co-host.")

  @Argument(help: .event, completion: .hostedEvents)
  var event: String

  @Argument(help: .username, completion: .hosts)
  var user: String

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let event = try await account.changeableEvent(named: event)
    let host = try account.person(
      named: user, in: event.hosts, "\"\(user)\" is not a host of “\(event.title)”.",
      otherwise: "`musterctl events show` lists the hosts.")
    let reply = try await account.responses.reply {
      try await account.client.events.removeHost(host.id, from: event.id)
    }
    try console.show(reply) { "\(host.fullName) is no longer a host of \(EventText(event: event).name)." }
  }
}
