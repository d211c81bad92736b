import Logging
import Postgres
import ServiceLifecycle

/// Archives past events and deletes expired data, in small batches.
enum Housekeeping {
  private struct Chore: Sendable {
    let name: String
    /// Does one batch, and returns the number of rows in it.
    let batch: @Sendable (Database) async throws -> Int
  }

  /// Days after which dead letters are deleted.
  private static let deadLetterLifetime = 30

  private static let chores = [
    Chore(name: "archiving events") { database in
      try await database.change { try await Event.archive(endedBefore: .now(), atMost: 100, in: $0) }
    },
    Chore(name: "ending visitors' answers") { database in
      try await database.change { try await Visitor.endLapsed(atMost: 100, in: $0) }
    },
    Chore(name: "forgetting mails to visitors") { try await VisitorMail.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting mailed tokens") { database in
      try await database.change { try await MailToken.purge(atMost: 500, in: $0) }
    },
    Chore(name: "forgetting uses of codes") { try await SignInCode.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting failed attempts") { try await Throttle.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting sessions") { try await Session.purge(atMost: 1000, in: $0) },
    Chore(name: "freeing usernames") { try await User.freeNames(atMost: 1000, in: $0) },
    Chore(name: "forgetting devices") { try await Device.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting dead letters") {
      try await DeadLetters.purge(olderThan: deadLetterLifetime, atMost: 1000, in: $0)
    },
    Chore(name: "forgetting responses") { try await IdempotentRequest.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting reports") { try await Report.purge(atMost: 1000, in: $0) },
    Chore(name: "forgetting workers") { try await Worker.purge(atMost: 1000, in: $0) },
    Chore(name: "emptying inboxes") { database in
      try await database.change { try await Notice.purge(atMost: 1000, in: $0) }
    },
  ]

  /// Does a batch of each chore in turn, until nothing is left or the process is asked to stop. A chore that fails is
  /// skipped until the next run and does not hold up the others.
  static func run(in database: Database, logger: Logger) async {
    var chores = Self.chores
    while !chores.isEmpty {
      var unfinished: [Chore] = []
      for chore in chores {
        if Task.isShuttingDownGracefully || Task.isCancelled { return }
        do {
          if try await chore.batch(database) > 0 { unfinished.append(chore) }
        } catch {
          if Task.isCancelled { return }
          logger.warning("a chore failed", metadata: ["chore": "\(chore.name)", "error": "\(error)"])
        }
      }
      chores = unfinished
    }
  }
}
