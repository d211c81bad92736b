import Foundation
import Logging
import Postgres
import ServiceLifecycle

/// Keeps the local times of events, archives past ones and deletes expired data, in small batches.
struct Housekeeping: Sendable {
  let zones: ZoneDatabase
  /// Days in the archive; nil if archived events are kept.
  var eventRetention: Int?
  let logger: Logger

  private struct Step: Sendable {
    let name: String
    /// Does one batch, and returns the number of rows in it.
    let batch: @Sendable (Database, Housekeeping) async throws -> Int

    init(name: String, batch: @escaping @Sendable (Database) async throws -> Int) {
      (self.name, self.batch) = (name, { database, _ in try await batch(database) })
    }

    init(name: String, batch: @escaping @Sendable (Database, Housekeeping) async throws -> Int) {
      (self.name, self.batch) = (name, batch)
    }
  }

  /// Days after which dead letters are deleted.
  private static let deadLetterLifetime = 30

  private static let steps = [
    Step(name: "keeping local times") { database, house in
      try await database.change { try await Event.keepLocalTimes(by: house.zones, atMost: 200, in: $0) }
    },
    Step(name: "archiving events") { database in
      try await database.change { try await Event.archive(endedBefore: .now(), atMost: 100, in: $0) }
    },
    Step(name: "ending visitors' answers") { database in
      try await database.change { try await Visitor.endLapsed(atMost: 100, in: $0) }
    },
    Step(name: "deleting archived events") { database, house in
      guard let days = house.eventRetention else { return 0 }
      return try await database.change { try await Event.deleteArchived(keptFor: days, atMost: 100, in: $0) }
    },
    Step(name: "forgetting counted mails") { try await MailGate.purge(atMost: 1000, in: $0) },
    Step(name: "forgetting spent forms") { try await FormTokens.purge(atMost: 1000, in: $0) },
    Step(name: "forgetting mailed tokens") { database in
      try await database.change { try await MailToken.purge(atMost: 500, in: $0) }
    },
    Step(name: "forgetting uses of codes") { try await SignInCode.purge(atMost: 1000, in: $0) },
    Step(name: "forgetting failed attempts") { try await Throttle.purge(atMost: 1000, in: $0) },
    Step(name: "forgetting sessions") { try await Session.purge(atMost: 1000, in: $0) },
    Step(name: "freeing usernames") { try await User.freeNames(atMost: 1000, in: $0) },
    Step(name: "forgetting devices") { try await Device.purge(atMost: 1000, in: $0) },
    Step(name: "forgetting dead letters") {
      try await DeadLetters.purge(olderThan: deadLetterLifetime, atMost: 1000, in: $0)
    },
    Step(name: "forgetting responses") { try await IdempotentRequest.purge(atMost: 1000, in: $0) },
    Step(name: "forgetting reports") { try await Report.purge(atMost: 1000, in: $0) },
    Step(name: "forgetting workers") { try await Heartbeat.purge(atMost: 1000, in: $0) },
    Step(name: "making room for notifications") { try await InboxItem.makePartitions(in: $0) },
    Step(name: "emptying inboxes") { try await InboxItem.purge(atMost: 1000, in: $0) },
  ]

  /// Seconds by which the clocks of this process and of the database may differ. If one of them is wrong by more, its
  /// time would delete what is not over.
  private static let maximumOffset = 3600.0

  /// Does a batch of each step in turn, until nothing is left or the process is asked to stop. A step that fails is
  /// skipped until the next run and does not hold up the others.
  ///
  /// - Parameter now: the time by the clock of this process.
  func run(in database: Database, now: Date = Date()) async {
    guard await clocksAgree(in: database, now: now) else { return }
    var steps = Self.steps
    while !steps.isEmpty {
      var unfinished: [Step] = []
      for step in steps {
        if Task.isShuttingDownGracefully || Task.isCancelled { return }
        do {
          if try await step.batch(database, self) > 0 { unfinished.append(step) }
        } catch {
          if Task.isCancelled { return }
          logger.warning("a housekeeping step failed", metadata: ["step": "\(step.name)", "error": "\(error)"])
        }
      }
      steps = unfinished
    }
  }
}

extension Housekeeping {
  private func clocksAgree(in database: Database, now: Date) async -> Bool {
    do {
      let time: Double? = try await database.value("SELECT extract(epoch FROM now())::double precision")
      let offset = (time ?? 0) - now.timeIntervalSince1970
      if abs(offset) <= Self.maximumOffset { return true }
      logger.error(
        "nothing is archived or deleted: the clocks of this process and of the database differ",
        metadata: ["seconds": "\(Int(offset))"])
    } catch {
      if !Task.isCancelled {
        logger.warning("a housekeeping step failed", metadata: ["step": "comparing clocks", "error": "\(error)"])
      }
    }
    return false
  }
}

extension Database {
  /// Deletes the rows whose time has come, oldest first. Skips rows that another transaction has locked, so that
  /// neither waits for the other.
  ///
  /// - Parameters:
  ///   - key: the column of the primary key.
  ///   - column: the column with the time.
  ///   - time: rows with this time or an earlier one are deleted.
  ///   - limit: the maximum number of rows.
  /// - Returns: the number of deleted rows.
  func purge(_ table: SQL, key: SQL = "id", by column: SQL, upTo time: SQL, atMost limit: Int) async throws -> Int {
    try await batch(
      """
      DELETE FROM \(table)
      WHERE \(key) IN (
        SELECT \(key) FROM \(table)
        WHERE \(column) <= \(time)
        ORDER BY \(column)
        LIMIT \(limit)
        FOR UPDATE SKIP LOCKED
      )
      """)[0].affected
  }
}
