import ArgumentParser
import MusterKit

struct SessionsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sessions", abstract: "List where you are logged in, and end sessions.",
    discussion: """
        musterctl sessions
        musterctl sessions end 4902ab
        musterctl sessions end --others
      """,
    subcommands: [ListSessions.self, EndSession.self], defaultSubcommand: ListSessions.self)
}

struct ListSessions: AccountCommand {
  static let configuration = CommandConfiguration(commandName: "list", abstract: "List your sessions, newest first.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.pages { try await account.client.auth.sessions(limit: $0, cursor: $1) }
    try console.show(reply, orNote: "There are no sessions.") { sessions in
      let ids = ShortID(sessions.map(\.id))
      return Table(
        [.init("ID"), .init("DEVICE", .flexible), .init("LAST USED"), .init("SINCE", .optional), .init("")],
        rows: sessions.map {
          [
            .init(ids.of($0.id), .faint), .init($0.device ?? "-"), .init(TimeText.here.dayAndTime($0.lastUsedAt)),
            .init(TimeText.here.day($0.createdAt), .faint), .init($0.current ? "this session" : "", .green),
          ]
        })
    }
  }
}

struct EndSession: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "end", abstract: "End a session, or all but this one. Its app must log in again.",
    discussion: """
      Asks first. Without a terminal, --yes is required. `musterctl logout` ends this session. `musterctl password` \
      also ends all others.

        musterctl sessions end 4902ab
        musterctl sessions end "Ana's iPhone"
        musterctl sessions end --others
      """)

  @Argument(
    help: ArgumentHelp(
      "The session: its device, its id, or the beginning or end of the id.", valueName: "session"),
    completion: .sessions)
  var session: String?

  @Flag(help: "End all sessions but this one.")
  var others = false

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var options: AccountOptions

  func validate() throws {
    guard (session == nil) == others else { throw ValidationError("Specify a session, or use --others.") }
  }

  func run(as account: Account, on console: Console) async throws {
    let all = try await account.responses.pages {
      try await account.client.auth.sessions(limit: $0, cursor: $1)
    }.value
    let chosen = try session.map { [try only(named: $0, in: all)] } ?? all.filter { !$0.current }
    guard !chosen.isEmpty else {
      return try console.show(Reply(value: (), json: .object([:]))) { "You have no other sessions." }
    }
    let times = TimeText.here
    let name =
      chosen.count == 1
      ? "the session “\(chosen[0].device ?? "-")”, last used \(times.dayAndTime(chosen[0].lastUsedAt))"
      : "\(chosen.count) other sessions"
    try Prompt.confirm("End \(name.safeLine)?", isConfirmed: yes, refusal: "Nothing was ended.")
    for session in chosen {
      do {
        try await account.client.auth.endSession(session.id)
      } catch MusterError.refused(let problem) where others && problem.type == .sessionNotFound {
        // It has ended meanwhile.
      }
    }
    try console.show(Reply(value: (), json: .object([:]))) { "Ended \(name)." }
  }

  private func only(named name: String, in sessions: [Session]) throws -> Session {
    let found = PartialID.candidates(for: name, in: sessions, id: \.id) { $0.device }
    guard let only = found.first, found.count == 1 else {
      throw Failure.refused(
        "\(found.isEmpty ? "There is no session" : "There are several sessions") \"\(name)\". `musterctl sessions` lists "
          + "them with their ids.",
        candidates: found.map { .members("id", "device", "lastUsedAt", "current", of: $0) })
    }
    guard !only.current else { throw Failure.refused("This is the session that you use. Use `musterctl logout`.") }
    return only
  }
}

/// Finds things by their ids, the beginnings or ends of ids, or their names.
enum PartialID {
  /// The minimum length of a partial id.
  private static let minimum = 4

  static func candidates<Item, Thing>(
    for text: String, in items: [Item], id: (Item) -> Identifier<Thing>, name: (Item) -> String?
  ) -> [Item] {
    let word = text.lowercased()
    let found = items.filter { item in
      let whole = id(item).description
      return word.count >= minimum && (whole.hasPrefix(word) || whole.hasSuffix(word))
    }
    return found.isEmpty ? items.filter { name($0)?.folded == text.folded } : found
  }
}
