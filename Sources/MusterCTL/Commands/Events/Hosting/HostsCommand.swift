import ArgumentParser

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
