import Foundation
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

@Suite struct NotificationWorkerTests {
  @Test func `a due notification is delivered and removed from the queue`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.addDevice("bens")
      let request = try await ana.sendFriendRequest(to: ben)
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      let received = try #require(recorder.received.first)
      #expect(recorder.received.count == 1)
      #expect(received.token == "bens")
      #expect(received.push.type == "friend-request")
      #expect(received.push.recipient == ben.id)
      #expect(received.push.subject == ana.id)
      #expect(received.payload["requestId"].string == request)
      #expect(received.payload["message"].string == "Ana wants to be friends.")
      // The id is the same in the inbox.
      let filed: UUID? = try await app.value("SELECT id FROM notifications")
      #expect(filed?.uuidString.lowercased() == received.push.id)
      #expect(try await app.takeNotifications().isEmpty)
    }
  }

  @Test func `a failed delivery is retried later and blocks only those behind it`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2)
      try await app.enqueue(rounds: 0..<2, to: 2)
      let recorder = Recorder { _, device in if device.token == "1-1" { throw DeliveryFailure.down } }
      _ = try await app.worker(recorder).step()
      #expect(recorder.rounds("2-1") == [0, 1])
      #expect(recorder.received.count == 2)
      let rows = try await app.database.rows(
        """
        SELECT attempts, last_error, due_at > created_at + interval '500 milliseconds' AS waits, lease
        FROM deliveries ORDER BY id
        """)
      #expect(rows.count == 2)
      #expect(try rows[0]["attempts"] == 1)
      #expect(try rows[0]["waits"] == true)
      #expect(try rows[0]["lease"] == UUID?.none)
      #expect(try rows[0]["last_error"] == "down")
      #expect(try rows[1]["attempts"] == 0)
      try await app.hurry()
      let healthy = Recorder()
      try await app.worker(healthy).runOnce()
      #expect(healthy.rounds("1-1") == [0, 1])
    }
  }

  @Test func `several workers deliver everything once and each subject in order`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(150)
      try await app.enqueue(rounds: 0..<4, to: 150)
      let recorder = Recorder()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { try await app.worker(recorder).runOnce() } }
        try await group.waitForAll()
      }
      // A worker stops when nothing is claimable, even if another still holds rows before it.
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.count == 600)
      #expect(Set(recorder.received.map(\.push.id)).count == 600)
      for reader in 1...150 { #expect(recorder.rounds("\(reader)-1") == [0, 1, 2, 3]) }
    }
  }

  @Test func `rows of a killed worker are taken over without counting a failed attempt`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(5)
      try await app.enqueue(rounds: 0..<2, to: 5)
      let dead = UUID()
      try await app.database.batch(Worker.beating(dead))
      let held = try await Delivery.queue.claim(.all, atMost: 3, for: dead, lease: UUID(), in: app.database)
      #expect(held.runs.map(\.count) == [2, 2, 2])
      let recorder = Recorder { push, _ in
        let attempts: Int? = try await app.value("SELECT max(attempts) FROM deliveries")
        #expect(attempts == 0)
      }
      let running = Task { try await app.worker(recorder).run() }
      try await eventually(within: .seconds(20)) { try await app.countQueue() == 0 }
      #expect(recorder.received.count == 10)
      for reader in 1...5 { #expect(recorder.rounds("\(reader)-1") == [0, 1]) }
      running.cancel()
      try await running.value
    }
  }

  @Test func `a row that was in flight at two deaths of workers is sent with nothing else in flight`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(6)
      try await app.enqueue(rounds: 0..<2, to: 6)
      try await app.database.execute("UPDATE deliveries SET deaths = 2 WHERE payload->>'round' = '0'")
      let inFlight = Mutex(0)
      let recorder = Recorder { push, _ in
        let count = inFlight.withLock { count -> Int in
          count += 1
          return count
        }
        if push.payload.contains(#""round": 0"#) { #expect(count == 1) }
        try await Task.sleep(for: .milliseconds(5))
        inFlight.withLock { $0 -= 1 }
      }
      try await app.worker(recorder).runOnce()
      for reader in 1...6 { #expect(recorder.rounds("\(reader)-1") == [0, 1]) }
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `one death of a worker makes no row wait for another`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(3)
      try await app.enqueue(rounds: 0..<1, to: 3)
      try await app.database.execute("UPDATE deliveries SET deaths = 1")
      let reached = Mutex(0)
      let recorder = Recorder { _, _ in
        reached.withLock { $0 += 1 }
        // Each ends only after all have begun.
        try await eventually { reached.withLock { $0 == 3 } }
      }
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.count == 3)
      #expect(try await app.countQueue() == 0)
    }
  }

  // MARK: Housekeeping

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

  @Test func `a failing chore does not keep the others from being done`() async throws {
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
        await Housekeeping.run(in: app.database, logger: app.dependencies.logger)
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

  @Test func `a failed change leaves neither rows nor stamps`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let stale = try await ana.stale {
        await #expect(throws: AppError.notYours) {
          try await app.database.change { change in
            _ = try await FriendRequest.send(from: ana.userID, to: ben.userID, in: change)
            throw AppError.notYours
          }
        }
      }
      #expect(stale == [])
      #expect(try await app.value("SELECT count(*) FROM friend_requests") == 0)
    }
  }
}
