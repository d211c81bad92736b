import Foundation
import Logging
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Keeps what it was asked to send; fails where told to.
private final class Recorder: PushSender {
  let sent = Mutex<[Push]>([])
  let refuses: @Sendable (Push) -> Bool
  /// Whether what is begun waits.
  let isHeld = Mutex(false)
  let begun = Mutex(0)

  init(refusing: @escaping @Sendable (Push) -> Bool = { _ in false }) {
    refuses = refusing
  }

  func send(_ push: Push) async throws {
    begun.withLock { $0 += 1 }
    while isHeld.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(20)) }
    if refuses(push) { throw AppError(.unavailable, "down", "down") }
    sent.withLock { $0.append(push) }
  }

  var count: Int { sent.withLock { $0.count } }
}

@Suite struct NotificationWorkerTests {
  private func worker(_ app: TestApp, _ sender: any PushSender) -> NotificationWorker {
    NotificationWorker(app.dependencies, sender: sender, mailer: NoMailer(), concurrency: 4)
  }

  /// Puts rows into the queue: as many subjects, `each` rows for each, in order.
  private func enqueue(_ app: TestApp, subjects: Int, each: Int = 1) async throws {
    for round in 0..<each {
      try await app.database.execute(
        """
        INSERT INTO notification_queue (type, recipient_id, subject_id, payload)
        SELECT 'test', md5('r' || n)::uuid, md5('s' || n)::uuid, jsonb_build_object('round', \(round), 'n', n)
        FROM generate_series(1, \(subjects)) AS n
        """)
    }
  }

  @Test func `what is due is delivered and forgotten`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ana.sendFriendRequest(to: ben)
      let recorder = Recorder()
      try await worker(app, recorder).runOnce()
      let push = try #require(recorder.sent.withLock { $0.first })
      #expect(push.type == "friend-request")
      #expect(push.recipient == ben.id)
      let payload = try JSON(parsing: push.payload.utf8)
      #expect(payload["requestId"].string == request)
      #expect(payload["message"].string == "Ana wants to be friends.")
      #expect(recorder.count == 1)
    }
  }

  @Test func `a failed delivery is tried again later, and blocks nothing but what comes after it`() async throws {
    try await TestApp.run { app in
      try await enqueue(app, subjects: 2, each: 2)
      let recorder = Recorder { $0.payload.contains(#""n": 1"#) }
      let failing = worker(app, recorder)
      // The first rows of both subjects, then the second one of the subject that does not fail.
      for _ in 0..<2 { _ = try await failing.step() }
      #expect(recorder.count == 2)
      let rows = try await app.database.rows(
        "SELECT attempts, last_error, due_at > created_at + interval '500 milliseconds' AS waits, lease FROM notification_queue ORDER BY id"
      )
      #expect(rows.count == 2)
      #expect(try rows[0]["attempts"] == 1)
      #expect(try rows[0]["waits"] == true)
      #expect(try rows[0]["lease"] == UUID?.none)
      #expect(try (rows[0]["last_error"] as String?)?.isEmpty == false)
      #expect(try rows[1]["attempts"] == 0)
      try await app.database.execute("UPDATE notification_queue SET due_at = now()")
      let healthy = Recorder()
      try await worker(app, healthy).runOnce()
      let rounds = try healthy.sent.withLock { $0 }.map { try JSON(parsing: $0.payload.utf8)["round"].int }
      #expect(rounds == [0, 1])
    }
  }

  @Test func `the wait between attempts doubles`() async throws {
    try await TestApp.run { app in
      try await enqueue(app, subjects: 1)
      let recorder = Recorder { _ in true }
      for attempt in 0..<6 {
        _ = try await worker(app, recorder).step()
        let wait: Double = try #require(
          try await app.value("SELECT extract(epoch FROM due_at - created_at)::float8 FROM notification_queue"))
        let expected = pow(2, Double(attempt))
        // A loaded machine may take a second or two from one statement to the next.
        #expect((expected * 0.8...expected * 1.2 + 2).contains(wait), "attempt \(attempt): \(wait)")
        try await app.database.execute("UPDATE notification_queue SET due_at = now(), created_at = now()")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `several workers deliver everything once and each subject in order`() async throws {
    try await TestApp.run { app in
      try await enqueue(app, subjects: 150, each: 4)
      let recorder = Recorder()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { try await worker(app, recorder).runOnce() } }
        try await group.waitForAll()
      }
      // A worker stops when nothing is claimable, even if another still holds rows before it.
      try await worker(app, recorder).runOnce()
      let pushes = try recorder.sent.withLock { $0 }.map { try JSON(parsing: $0.payload.utf8) }
      #expect(pushes.count == 600)
      #expect(Set(recorder.sent.withLock { $0.map(\.id) }).count == 600)
      for subject in 1...150 {
        #expect(pushes.filter { $0["n"].int == subject }.map { $0["round"].int } == [0, 1, 2, 3])
      }
    }
  }

  @Test func `a claim runs out, and its holder can no longer acknowledge`() async throws {
    try await TestApp.run { app in
      try await enqueue(app, subjects: 1)
      let (dead, alive) = (UUID(), UUID())
      let held = try await NotificationQueue.claim(atMost: 10, lease: dead, seconds: 60, in: app.database)
      #expect(held.count == 1)
      #expect(try await NotificationQueue.claim(atMost: 10, lease: alive, seconds: 60, in: app.database).isEmpty)
      try await app.database.execute("UPDATE notification_queue SET leased_until = now() - interval '1 second'")
      let taken = try await NotificationQueue.claim(atMost: 10, lease: alive, seconds: 60, in: app.database)
      #expect(taken.map(\.id) == held.map(\.id))
      #expect(taken[0].attempts == 0)
      try await NotificationQueue.finish(held.map(\.id), lease: dead, in: app.database)
      try await NotificationQueue.retry(held[0], because: "late", lease: dead, in: app.database)
      #expect(try await app.value("SELECT count(*) FROM notification_queue WHERE lease = \(alive)") == 1)
      try await NotificationQueue.finish(taken.map(\.id), lease: alive, in: app.database)
    }
  }

  @Test func `what a killed worker held is taken over`() async throws {
    try await TestApp.run { app in
      try await enqueue(app, subjects: 5)
      _ = try await NotificationQueue.claim(atMost: 3, lease: UUID(), seconds: 1, in: app.database)
      let recorder = Recorder()
      let running = Task { try await worker(app, recorder).run() }
      try await eventually {
        let left: Int? = try await app.value("SELECT count(*) FROM notification_queue")
        return left == 0
      }
      #expect(recorder.count == 5)
      running.cancel()
      try await running.value
    }
  }

  @Test func `what another worker has taken over meanwhile is not begun`() async throws {
    try await TestApp.run { app in
      try await enqueue(app, subjects: 3)
      let slow = Recorder()
      slow.isHeld.withLock { $0 = true }
      let worker = NotificationWorker(app.dependencies, sender: slow, mailer: NoMailer(), concurrency: 1)
      let step = Task { try await worker.step() }
      try await eventually { slow.begun.withLock { $0 } == 1 }
      let other = UUID()
      try await app.database.execute(
        "UPDATE notification_queue SET lease = \(other) WHERE id > (SELECT min(id) FROM notification_queue)")
      try await app.database.execute("CREATE SEQUENCE renewals")
      try await app.database.execute(
        """
        CREATE FUNCTION count_renewal() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM nextval('renewals');
          RETURN NULL;
        END
        $$
        """)
      try await app.database.execute(
        """
        CREATE TRIGGER renewals AFTER UPDATE ON notification_queue
        FOR EACH STATEMENT EXECUTE FUNCTION count_renewal()
        """)
      // Once there is a second renewal, the worker knows what the first has told.
      try await eventually {
        let renewals: Int? = try await app.value("SELECT last_value FROM renewals")
        return renewals.map { $0 >= 2 } ?? false
      }
      slow.isHeld.withLock { $0 = false }
      _ = try await step.value
      #expect(slow.count == 1)
      #expect(try await app.value("SELECT count(*) FROM notification_queue WHERE lease = \(other)") == 2)
      #expect(try await app.takeNotifications().count == 2)
    }
  }

  // MARK: Housekeeping

  /// Something to forget of three kinds.
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

  @Test func `a kind of housekeeping that fails keeps no other from being done`() async throws {
    try await TestApp.run { app in
      try await expire(app)
      try await app.database.execute(
        """
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not this one'; END $$
        """)
      try await app.database.execute(
        "CREATE TRIGGER refuse BEFORE DELETE ON mail_tokens FOR EACH ROW EXECUTE FUNCTION refuse()")
      try await worker(app, Recorder()).runOnce()
      #expect(try await left(app) == [1, 0, 0])
      try await app.database.execute("DROP TRIGGER refuse ON mail_tokens")
      try await worker(app, Recorder()).runOnce()
      #expect(try await left(app) == [0, 0, 0])
    }
  }

  @Test func `housekeeping ends between two batches when it is told to`() async throws {
    try await TestApp.run { app in
      try await expire(app)
      let told = Task {
        while !Task.isCancelled { await Task.yield() }
        await worker(app, Recorder()).keepHouse()
      }
      told.cancel()
      await told.value
      #expect(try await left(app) == [1, 1, 1])
    }
  }

  @Test func `housekeeping holds up no notification`() async throws {
    try await TestApp.run { app in
      try await expire(app)
      try await enqueue(app, subjects: 1)
      let recorder = Recorder()
      let holder = try Database(Database.Configuration(url: app.databaseURL))
      defer { holder.close() }
      let running = try await holder.transaction { transaction -> Task<Void, any Error> in
        try await transaction.rows("LOCK TABLE retired_usernames IN ACCESS EXCLUSIVE MODE")
        let running = Task { try await worker(app, recorder).run() }
        try await app.waitForLocks(1)
        try await eventually {
          let waiting: Int? = try await app.value("SELECT count(*) FROM notification_queue")
          return waiting == 0
        }
        running.cancel()
        return running
      }
      try await running.value
      #expect(recorder.count == 1)
    }
  }

  @Test func `past events are archived by the worker`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await ana.createEvent("Old", startTime: "2020-01-01T10:00:00Z", endTime: nil)
      _ = try await ana.createEvent("New")
      #expect(try await ana.stale { try await worker(app, Recorder()).runOnce() } == [.events])
      #expect(try await ana.get("events")["items"].array.map { $0["title"].string } == ["New"])
    }
  }

  @Test func `a change that fails leaves neither row nor stamp`() async throws {
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
