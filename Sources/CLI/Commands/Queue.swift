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
        if stats.isEstimate { print("estimated from samples because a queue has many rows") }
      }
    }
  }

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List rows: name, time, type, recipient, device, attempts and the last error.")

    @Flag(help: "List dead letters, latest first.")
    var dead = false

    @Option(help: "List only rows of this type, such as event-updated or mail-verify-email.")
    var type: String?

    @Option(help: "The maximum number of rows.")
    var limit = 100

    @Flag(help: "Print JSON, for scripts.")
    var json = false

    func validate() throws {
      guard (1...100_000).contains(limit) else { throw ValidationError("--limit must be from 1 to 100000.") }
    }

    func run() async throws {
      try await withDatabase("muster queue") { database in
        let rows = try await QueueRow.list(dead: dead, ofType: type, atMost: limit, in: database)
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
    static let configuration = CommandConfiguration(abstract: "Make dead letters due now.")

    @Argument(
      help: "The names of the dead letters, as shown by `list --dead`, such as deliveries/17.",
      transform: { text in
        guard let id = QueueRow.ID(text) else { throw ValidationError("\"\(text)\" must look like deliveries/17.") }
        return id
      })
    var ids: [QueueRow.ID] = []

    @Flag(help: "Retry all dead letters.")
    var all = false

    @Option(help: "With --all: retry only dead letters of this type.")
    var type: String?

    func validate() throws {
      guard ids.isEmpty == all else { throw ValidationError("Name the dead letters to retry, or use --all.") }
      guard all || type == nil else { throw ValidationError("--type requires --all.") }
    }

    func run() async throws {
      try await withDatabase("muster queue") { database in
        let count = try await DeadLetters.retry(all ? nil : ids, ofType: type, in: database)
        print("retried \(count)")
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
