import ArgumentParser
import MusterKit

struct RequestsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requests", abstract: "Send, list, accept and decline friend requests.",
    discussion: """
        musterctl requests
        musterctl requests send ben
        musterctl requests accept ana
      """,
    subcommands: [List.self, Send.self, Accept.self, Decline.self, Cancel.self], defaultSubcommand: List.self)

  struct List: AccountCommand {
    static let configuration = CommandConfiguration(abstract: "List pending friend requests, newest first.")

    @Flag(help: "List the requests that you have sent, instead of those that you have received.")
    var sent = false

    @Flag(help: "List the requests of accounts without a verified address. You are not notified of them.")
    var filtered = false

    @OptionGroup var options: AccountOptions

    func validate() throws {
      if sent, filtered { throw ValidationError("Use either --sent or --filtered.") }
    }

    func run(as account: Account, on console: Console) async throws {
      let direction: RequestDirection = sent ? .sent : filtered ? .filtered : .incoming
      let reply = try await account.responses.pages {
        try await account.client.friends.requests.list(direction, limit: $0, cursor: $1)
      }
      try console.show(reply, orNote: "There are no pending friend requests.") {
        Table.people($0.map { (sent ? $0.receiver : $0.sender, $0.createdAt) }, title: sent ? "SENT" : "RECEIVED")
      }
    }
  }

  struct Send: AccountCommand {
    static let configuration = CommandConfiguration(abstract: "Ask a user to be friends.")

    @Argument(help: .username, completion: .others)
    var user: String

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let person = try await account.user(named: user)
      let reply = try await account.responses.reply {
        try await account.client.friends.requests.send(to: person.id)
      }
      try console.show(reply) { request in
        // The other user had asked before.
        request.status == .accepted
          ? "You and \(person.fullName) are friends." : "Asked \(person.fullName) to be friends."
      }
    }
  }

  struct Accept: AccountCommand {
    static let configuration = CommandConfiguration(abstract: "Accept a user's friend request.")

    @Argument(help: .username, completion: .senders)
    var user: String

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let request = try await account.request([.incoming, .filtered], named: user)
      let reply = try await account.responses.reply {
        try await account.client.friends.requests.accept(request.id)
      }
      try console.show(reply) { "You and \($0.sender.fullName) are friends." }
    }
  }

  struct Decline: AccountCommand {
    static let configuration = CommandConfiguration(
      abstract: "Decline a user's friend request. The user is not notified.")

    @Argument(help: .username, completion: .senders)
    var user: String

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let request = try await account.request([.incoming, .filtered], named: user)
      let reply = try await account.responses.reply {
        try await account.client.friends.requests.decline(request.id)
      }
      try console.show(reply) { "Declined the request of \($0.sender.fullName)." }
    }
  }

  struct Cancel: AccountCommand {
    static let configuration = CommandConfiguration(abstract: "Take back a friend request that you have sent.")

    @Argument(help: .username, completion: .receivers)
    var user: String

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let request = try await account.request([.sent], named: user)
      let reply = try await account.responses.reply {
        try await account.client.friends.requests.cancel(request.id)
      }
      try console.show(reply) { "Took back the request to \($0.receiver.fullName)." }
    }
  }
}
