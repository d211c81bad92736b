import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct HousekeepingTests {
  /// Makes three kinds of rows expire.
  private func expire(_ app: TestApp) async throws {
    _ = try await app.signUp("ana")
    try await app.database.execute("UPDATE mail_tokens SET expires_at = now() - interval '1 second'")
    try await app.database.execute(
      "INSERT INTO retired_usernames (digest, until) VALUES ('x', now() - interval '1 second')")
    try await app.database.execute("UPDATE sessions SET ended_at = now() - interval '3 days'")
    try await app.takeMails()
  }

  private func left(_ app: TestApp) async throws -> [Int] {
    let row = try await app.database.first(
      """
      SELECT (SELECT count(*) FROM mail_tokens) AS tokens, (SELECT count(*) FROM sessions) AS sessions,
        (SELECT count(*) FROM retired_usernames) AS names
      """)
    let counts = try #require(row)
    return [try counts["tokens"], try counts["sessions"], try counts["names"]]
  }

  @Test func `while the worker's and the database's clocks differ by more than an hour, nothing is deleted`()
    async throws
  {
    try await TestApp.run { app in
      try await expire(app)
      for wrong: TimeInterval in [-4000, 4000, 400 * 86_400] {
        await app.keepHouse(at: Date().addingTimeInterval(wrong))
        #expect(try await left(app) == [1, 1, 1])
      }
      await app.keepHouse(at: Date().addingTimeInterval(3000))
      #expect(try await left(app) == [0, 0, 0])
    }
  }

  @Test func `a failing step does not keep the others from being done`() async throws {
    try await TestApp.run { app in
      try await expire(app)
      try await app.database.execute(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$
        """)
      try await app.database.execute(
        "CREATE TRIGGER refuse BEFORE DELETE ON mail_tokens FOR EACH ROW EXECUTE FUNCTION refuse()")
      try await app.worker(Recorder()).runOnce()
      #expect(try await left(app) == [1, 0, 0])
      try await app.database.execute("DROP TRIGGER refuse ON mail_tokens")
      try await app.worker(Recorder()).runOnce()
      #expect(try await left(app) == [0, 0, 0])
    }
  }

  @Test func `housekeeping ends between two batches when it is cancelled`() async throws {
    try await TestApp.run { app in
      try await expire(app)
      let received = Task {
        while !Task.isCancelled { await Task.yield() }
        await app.keepHouse()
      }
      received.cancel()
      await received.value
      #expect(try await left(app) == [1, 1, 1])
    }
  }

  @Test func `housekeeping does not delay notifications`() async throws {
    try await TestApp.run { app in
      try await expire(app)
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let recorder = Recorder()
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      let running = try await holder.transaction { transaction -> Task<Void, any Error> in
        try await transaction.rows("LOCK TABLE retired_usernames IN ACCESS EXCLUSIVE MODE")
        let running = Task { try await app.worker(recorder).run() }
        try await app.waitForLocks(1)
        try await eventually {
          return try await app.countQueue() == 0
        }
        running.cancel()
        return running
      }
      try await running.value
      #expect(recorder.received.count == 1)
    }
  }

  @Test func `the worker archives past events`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await ana.createEvent("Old", startTime: "2020-01-01T10:00:00Z", endTime: nil)
      _ = try await ana.createEvent("New")
      #expect(try await ana.stale { try await app.worker(Recorder()).runOnce() } == [.events])
      #expect(try await ana.get("events")["items"].array.map { $0["title"].string } == ["New"])
    }
  }

  @Test func `rows that another transaction has locked are deleted later`() async throws {
    try await TestApp.run { app in
      try await app.database.execute(
        """
        INSERT INTO retired_usernames (digest, until)
        VALUES ('x', now() - interval '2 seconds'), ('y', now() - interval '1 second'), ('z', now() + interval '1 day')
        """)
      try await app.database.transaction { holder in
        try await holder.rows("SELECT 1 FROM retired_usernames WHERE digest = 'x' FOR UPDATE")
        // Detached: in this task, the transaction is open.
        let freed = Task.detached { try await User.freeNames(atMost: 2, in: app.service) }
        #expect(try await freed.value == 1)
      }
      #expect(try await User.freeNames(atMost: 2, in: app.service) == 1)
      #expect(try await app.value("SELECT digest = 'z' FROM retired_usernames") == true)
    }
  }
}
