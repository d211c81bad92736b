import App
import ArgumentParser
import Foundation
import Postgres

struct Queue: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Inspect the queues (notices, deliveries, mails, revocations) and their dead letters.",
    subcommands: [Stats.self, List.self, Retry.self, Purge.self])

  struct Stats: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Count the rows that are due, waiting for a later attempt, in flight, and dead.")

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func run() async throws {
      try await withDatabase("muster queue") { database in
        let stats = try await QueueStats.read(in: database)
        if json { return try stats.printJSON() }
        for (name, counts) in [("all", stats.total)]
          + stats.types.map({ ($0.key, $0.value) }).sorted(by: { $0.0 < $1.0 })
        {
          print(
            name.padding(toLength: 24, withPad: " ", startingAt: 0),
            "due \(counts.due)  waiting \(counts.waiting)  in flight \(counts.inFlight)  dead \(counts.dead)")
        }
        if let age = stats.oldestDueSeconds { print("oldest due: \(Int(age)) s ago") }
        for (channel, age) in stats.oldestUndeliveredSeconds.sorted(by: { $0.key < $1.key }) {
          print("oldest undelivered for \(channel): \(Int(age)) s old")
        }
        if stats.isEstimate { print("estimated from samples because a queue has many rows") }
      }
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List rows: name, time, type, recipient, device, attempts and the last error.")

    @Flag(help: "List dead letters, latest first.")
    var dead = false

    @Option(help: "List only rows of this type, such as event-updated or mail-verify-email.", transform: knownType)
    var type: String?

    @Option(help: "List only rows for the user with this username.")
    var user: String?

    @Option(help: "The maximum number of rows.")
    var limit = 100

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func validate() throws {
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 100000.") }
    }

    func run() async throws {
      try await withDatabase("muster queue") { database in
        let rows = try await QueueRow.list(
          dead: dead, ofType: type, forUserNamed: user, atMost: limit, in: database)
        if json { return try rows.printJSON() }
        for row in rows {
          let recipient = row.recipient.map { "for \($0)  " } ?? ""
          let device = row.device.map { "device \($0)  " } ?? ""
          let error = row.lastError.map { "  \($0)" } ?? ""
          print("\(row.id)  \(row.time)  \(row.type)  \(recipient)\(device)attempts \(row.attempts)\(error)")
        }
      }
    }
  }

  struct Retry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Make dead letters due now, and with --all also the rows that wait for a later attempt.")

    @Argument(
      help: "The names of the dead letters, as shown by `list --dead`, such as deliveries/17.",
      transform: { text in
        guard let id = QueueRow.ID(text) else { throw ValidationError("\"\(text)\" must look like deliveries/17.") }
        return id
      })
    var ids: [QueueRow.ID] = []

    @Flag(help: "Retry all dead letters, and all rows that wait after a failure: the outage is over.")
    var all = false

    @Option(help: "With --all: retry only rows of this type.", transform: knownType)
    var type: String?

    func validate() throws {
      guard ids.isEmpty == all else { throw ValidationError("Name the dead letters to retry, or use --all.") }
      guard all || type == nil else { throw ValidationError("--type requires --all.") }
    }

    func run() async throws {
      try await withDatabase("muster queue") { database in
        guard all else {
          let missing = try await DeadLetters.missing(among: ids, in: database)
          guard missing.isEmpty else {
            let names = missing.map(\.description).joined(separator: ", ")
            throw Failure("nothing was retried, because there is no dead letter \(names)")
          }
          return print("retried \(try await DeadLetters.retry(ids, in: database))")
        }
        let dead = try await DeadLetters.retry(ofType: type, in: database)
        let waiting = try await DeadLetters.hurry(ofType: type, in: database)
        print("retried \(dead + waiting)")
      }
    }
  }

  struct Purge: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Delete dead letters permanently.")

    @Flag(help: "Required: only dead letters can be purged.")
    var dead = false

    @Option(help: "Purge only dead letters that died at least this many days ago.")
    var olderThan = 0

    func validate() throws {
      guard dead else { throw ValidationError("Use --dead: only dead letters can be purged.") }
      guard (0...36_500).contains(olderThan) else { throw ValidationError("--older-than must be from 0 to 36500.") }
    }

    func run() async throws {
      try await withDatabase("muster queue") { database in
        var count = 0
        while case let purged = try await DeadLetters.purge(olderThan: olderThan, in: database), purged > 0 {
          count += purged
        }
        print("purged \(count)")
      }
    }
  }
}

/// Refuses a type that no row can have: a misspelled one would look like an empty queue.
private func knownType(_ text: String) throws -> String {
  guard QueueTable.types.contains(text) else {
    throw ValidationError("\"\(text)\" is not a type. The types are \(QueueTable.types.joined(separator: ", ")).")
  }
  return text
}
