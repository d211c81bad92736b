import ArgumentParser
import Foundation
import MusterKit

struct ProposalsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "proposals", abstract: "List, accept and decline offers to host, and answers with your address.",
    discussion: """
      Offers to host an event, and answers that someone gave with your e-mail address while you have another answer. \
      They are named by a part of the event's title, or by the end of their id.

        musterctl proposals
        musterctl proposals accept pasta
      """,
    subcommands: [List.self, Accept.self, Decline.self], defaultSubcommand: List.self)

  struct List: AccountCommand {
    static let configuration = CommandConfiguration(abstract: "List your proposals, newest first.")

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let reply = try await account.responses.pages {
        try await account.client.proposals.list(limit: $0, cursor: $1)
      }
      try console.show(reply, orNote: "There are no proposals.") { Table.proposals($0) }
    }
  }

  struct Accept: AccountCommand {
    static let configuration = CommandConfiguration(
      abstract: "Become a co-host, or make the answer with your address your own.")

    @Argument(help: .proposal, completion: .proposals)
    var proposal: String

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let id = try await account.proposal(named: proposal).id
      let reply = try await account.responses.reply { try await account.client.proposals.accept(id) }
      try console.show(reply) { event in
        let name = EventText(event: event).name
        return event.myRole == .guest ? "Your answer to \(name): \(event.myAnswer)." : "You are a host of \(name)."
      }
    }
  }

  struct Decline: AccountCommand {
    static let configuration = CommandConfiguration(
      abstract: "Decline an offer, or refuse an answer that is not yours.")

    @Argument(help: .proposal, completion: .proposals)
    var proposal: String

    @OptionGroup var options: AccountOptions

    func run(as account: Account, on console: Console) async throws {
      let found = try await account.proposal(named: proposal)
      let reply = try await account.responses.reply { try await account.client.proposals.decline(found.id) }
      try console.show(reply) { "Declined \(found.text) “\(found.event.title)”." }
    }
  }
}

extension Account {
  func proposal(named name: String) async throws -> Proposal {
    let all = try await responses.pages { try await client.proposals.list(limit: $0, cursor: $1) }.value
    let word = name.lowercased()
    let found = all.filter {
      $0.id.description.hasSuffix(word) || $0.event.title.lowercased().contains(word)
    }
    guard let only = found.first, found.count == 1 else {
      let reason = found.isEmpty ? "There is no proposal" : "There are several proposals like"
      throw Failure.refused(
        "\(reason) \"\(name)\". `musterctl proposals` lists them.",
        candidates: found.map { .members("id", "kind", "event", of: $0) })
    }
    return only
  }
}

extension Proposal {
  /// The proposal, in words.
  var text: String {
    switch kind {
    case .host: "to host"
    case .answer:
      "the answer “\(status?.rawValue ?? "-")”" + (plusOnes > 0 ? " with \(plusOnes) more" : "") + " to"
    default: kind.rawValue
    }
  }
}

extension Table {
  static func proposals(_ proposals: [Proposal]) -> Table {
    let times = TimeText.here
    let ids = ShortID(proposals.map(\.id))
    return Table(
      [.init("ID"), .init("WHAT"), .init("EVENT", .flexible), .init("FROM"), .init("RECEIVED", .optional)],
      rows: proposals.map { proposal in
        [
          Cell(ids.of(proposal.id), .faint), Cell(proposal.text),
          Cell("“\(proposal.event.title)”, \(times.dayAndTime(proposal.event.startTime))"),
          Cell(proposal.person?.username ?? proposal.name ?? "-"), Cell(times.day(proposal.createdAt), .faint),
        ]
      })
  }
}
