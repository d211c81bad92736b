import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// When a worker relies on announcements, and polls less.
@Suite struct HearingTests {
  @Test func `only an announcement of its own that comes back makes a process certain, for ten seconds`() async throws {
    let hearing = Hearing()
    let start = ContinuousClock.now
    #expect(!hearing.isCertain(at: start))
    // Work, and the announcement of another worker to itself.
    #expect(hearing.note(.notification(channel: "c", payload: ""), at: start))
    #expect(!hearing.note(.notification(channel: "c", payload: "another"), at: start))
    #expect(!hearing.isCertain(at: start))
    try await TestCluster.withDatabase { url in
      let database = try Database(Database.Configuration(url: url))
      defer { database.close() }
      let speaking = Task { await hearing.speak(on: "c", in: database) }
      defer { speaking.cancel() }
      for await event in database.notifications(on: "c") {
        let isWork = hearing.note(event, at: start)
        #expect(isWork == (event == .mayHaveMissed))
        if hearing.isCertain(at: start) { break }
      }
    }
    #expect(hearing.isCertain(at: start + .seconds(9)) && !hearing.isCertain(at: start + Hearing.lifetime))
    // The connection was lost: nothing is certain on the new one.
    #expect(hearing.note(.mayHaveMissed, at: start))
    #expect(!hearing.isCertain(at: start))
  }

  @Test func `an idle worker that hears sends less than half of the transactions of one behind a pooler`() async throws
  {
    // Without a service, which also asks the database.
    try await TestCluster.withDatabase { url in
      try await Muster.run("migrate", environment: Muster.ownersEnvironment(url))
      func transactions(_ more: [String: String]) async throws -> Int {
        let program = try await Program(
          Program.path("muster"), ["worker"], environment: Muster.environment(url).merging(more) { $1 }, in: "/tmp")
        defer { program.signal(SIGKILL) }
        try await program.waitForOutput(#""message":"started""#)
        // The first seconds are for the start, and for a time in which nothing happens.
        try await Task.sleep(for: Polling.quietTime + .seconds(2))
        let before = try await self.transactions(at: url)
        try await Task.sleep(for: .seconds(8))
        let after = try await self.transactions(at: url)
        program.signal(SIGTERM)
        _ = try await program.exitStatus()
        return after - before
      }
      let (listening, pooled) = (
        try await transactions([:]), try await transactions(["MUSTER_PGBOUNCER": "on"])
      )
      #expect(listening * 2 < pooled, "\(listening) and \(pooled)")
    }
  }

  private func transactions(at url: String) async throws -> Int {
    // A session reports its count at most once a second.
    try await Task.sleep(for: .seconds(1.2))
    return try await ScriptConnection.run(url) {
      try $0.rows("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")[0][0]
    }
  }
}
