import ArgumentParser

struct LinksCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "links", abstract: "Manage the share links of an event that you host.",
    discussion: """
      A link leads to a page about the event, which needs no account.

        musterctl events links create pasta
        musterctl events links create pasta --kind view --expires "fri 12:00"
        musterctl events links list pasta
        musterctl events links edit pasta 4902ab --approval
        musterctl events links revoke pasta 4902ab
      """,
    subcommands: [ListLinks.self, CreateLink.self, EditLink.self, RevokeLink.self])
}
