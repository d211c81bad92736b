import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct NotificationWorkerTests {
  @Test func `what is due is delivered and forgotten`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.addDevice("bens")
      let request = try await ana.sendFriendRequest(to: ben)
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      let told = try #require(recorder.told.first)
      #expect(recorder.told.count == 1)
      #expect(told.token == "bens")
      #expect(told.push.type == "friend-request")
      #expect(told.push.recipient == ben.id)
      #expect(told.push.subject == ana.id)
      #expect(told.payload["requestId"].string == request)
      #expect(told.payload["message"].string == "Ana wants to be friends.")
      // The same as in the inbox.
      let filed: UUID? = try await app.value("SELECT id FROM notifications")
      #expect(filed?.uuidString.lowercased() == told.push.id)
      #expect(try await app.takeNotifications().isEmpty)
    }
  }

  @Test func `what is for somebody without a device is done with, unless somebody wants to know`() async throws {
    try await TestApp.run { app in
      try await app.enqueue(rounds: 0..<2, to: 1)
      let (recorder, unheard) = (Recorder(), Recorder())
      try await app.worker(recorder).runOnce()
      #expect(try await app.countQueue() == 0)
      try await app.enqueue(rounds: 2..<4, to: 1)
      try await NotificationWorker(
        app.dependencies, sender: recorder, unheard: unheard, mailer: NoMailer(), concurrency: 4
      ).runOnce()
      #expect(recorder.told.isEmpty)
      #expect(unheard.told.map { $0.payload["round"].int } == [2, 3])
    }
  }

  @Test func `a failed delivery is tried again later, and blocks nothing but what comes after it`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2)
      try await app.enqueue(rounds: 0..<2, to: 2)
      let recorder = Recorder { _, device in if device.token == "1-1" { throw DeliveryFailure.down } }
      _ = try await app.worker(recorder).step()
      #expect(recorder.rounds("2-1") == [0, 1])
      #expect(recorder.told.count == 2)
      let rows = try await app.database.rows(
        """
        SELECT attempts, last_error, due_at > created_at + interval '500 milliseconds' AS waits, lease
        FROM notification_queue ORDER BY id
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

  @Test func `the wait between attempts doubles`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let recorder = Recorder { _, _ in throw DeliveryFailure.down }
      for attempt in 0..<6 {
        _ = try await app.worker(recorder).step()
        let wait: Double = try #require(
          try await app.value("SELECT extract(epoch FROM due_at - created_at)::float8 FROM notification_queue"))
        let expected = pow(2, Double(attempt))
        // A loaded machine may take a second or two from one statement to the next.
        #expect((expected * 0.8...expected * 1.2 + 2).contains(wait), "attempt \(attempt): \(wait)")
        try await app.database.execute("UPDATE notification_queue SET due_at = now(), created_at = now()")
      }
      for attempts in [12, 40, 2000] {
        #expect((2400...3600).contains(Delivery.delay(after: attempts, notBefore: nil)))
      }
      #expect(Delivery.delay(after: 0, notBefore: 90) >= 90)
      try await app.takeNotifications()
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
      #expect(recorder.told.count == 600)
      #expect(Set(recorder.told.map(\.push.id)).count == 600)
      for reader in 1...150 { #expect(recorder.rounds("\(reader)-1") == [0, 1, 2, 3]) }
    }
  }

  @Test func `a claim runs out, and its holder can no longer acknowledge`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let (dead, alive) = (UUID(), UUID())
      func claim(_ lease: UUID) async throws -> [App.NotificationQueue.Item] {
        try await NotificationQueue.claim(atMost: 10, lease: lease, in: app.database).flatMap { $0 }
      }
      let held = try await claim(dead)
      #expect(held.count == 1)
      #expect(try await claim(alive).isEmpty)
      try await app.database.execute("UPDATE notification_queue SET leased_until = now() - interval '1 second'")
      let taken = try await claim(alive)
      #expect(taken.map(\.id) == held.map(\.id))
      #expect(taken[0].attempts == 0)
      func rows(_ lease: UUID) -> [App.NotificationQueue.Held] { held.map { .init(id: $0.id, lease: lease) } }
      let device = Device.ID.new()
      var finished = Receipts()
      finished.finish(rows(dead))
      finished.retry(held[0].id, for: device, nil, after: 0, because: "late")
      finished.bury(held[0].id, for: device, nil, because: "late")
      try await finished.write(in: app.database)
      var others = Receipts()
      others.retry(rows(dead)[0], nil, after: 0, because: "late")
      others.release(rows(dead))
      try await others.write(in: app.database)
      #expect(try await NotificationQueue.renew(rows(dead), in: app.database).isEmpty)
      #expect(
        try await app.value("SELECT count(*) FROM notification_queue WHERE lease = \(alive) AND attempts = 0") == 1)
      #expect(try await app.countQueue() == 1)
      #expect(try await app.countDead() == 0)
      #expect(try await NotificationQueue.renew(rows(alive), in: app.database) == Set(held.map(\.id)))
      var last = Receipts()
      last.finish(rows(alive))
      try await last.write(in: app.database)
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `what is not next gets no row of a device's own, whoever has finished what was before it`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<3, to: 1)
      let (late, other, device) = (UUID(), UUID(), Device.ID.new())
      let rows = try await NotificationQueue.claim(atMost: 10, lease: late, in: app.database).flatMap { $0 }
      #expect(rows.count == 3)
      /// As if each were spooled for a device by whoever has the lease, in a transaction of its own.
      func spool(_ places: Range<Int>, _ lease: UUID) async throws -> Int {
        var receipts = Receipts()
        receipts.finish(rows[places].map { .init(id: $0.id, lease: lease) }, isReplaced: true)
        for row in rows[places] { receipts.spool(row.id, for: device, nil) }
        try await receipts.write(in: app.database)
        return try await app.value("SELECT count(*) FROM notification_queue WHERE device_id = \(device)") ?? 0
      }
      try await app.database.execute("UPDATE notification_queue SET lease = \(other) WHERE id = \(rows[0].id)")
      #expect(try await spool(1..<2, late) == 0)
      #expect(try await spool(0..<1, other) == 1)
      #expect(try await spool(2..<3, late) == 1)
      // Given back, both are taken by whoever comes next, and follow.
      let next = UUID()
      let chains = try await NotificationQueue.claim(atMost: 10, lease: next, in: app.database)
      #expect(Set(chains.joined().map(\.id)).isSuperset(of: rows[1...].map(\.id)))
      #expect(try await spool(1..<3, next) == 3)
      let order = try await app.database.rows("SELECT notification_id FROM notification_queue ORDER BY id")
      #expect(try order.map { try $0["notification_id"] as UUID } == rows.map(\.notificationID))
      try await app.takeNotifications()
    }
  }

  @Test func `what a killed worker held is taken over, and that is no failed attempt`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(5)
      try await app.enqueue(rounds: 0..<2, to: 5)
      let held = try await NotificationQueue.claim(atMost: 3, lease: UUID(), in: app.database)
      #expect(held.map(\.count) == [2, 2, 2])
      let recorder = Recorder()
      let running = Task { try await app.worker(recorder).run() }
      try await eventually(within: .seconds(15)) { try await app.countQueue() == 0 }
      #expect(recorder.told.count == 10)
      for reader in 1...5 { #expect(recorder.rounds("\(reader)-1") == [0, 1]) }
      running.cancel()
      try await running.value
    }
  }

  @Test func `what another worker has taken over meanwhile is not begun`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(3)
      try await app.enqueue(rounds: 0..<1, to: 3)
      let slow = Recorder()
      slow.hold()
      let step = Task { try await app.worker(slow, concurrency: 1).step() }
      try await eventually { slow.begun == 1 }
      let other = UUID()
      try await app.database.execute(
        "UPDATE notification_queue SET lease = \(other) WHERE id > (SELECT min(id) FROM notification_queue)")
      try await app.countRenewals()
      // Once there is a second renewal, the worker knows what the first has told.
      try await eventually { try await app.renewals() >= 2 }
      slow.letGo()
      _ = try await step.value
      #expect(slow.told.count == 1)
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
      try await app.worker(Recorder()).runOnce()
      #expect(try await left(app) == [1, 0, 0])
      try await app.database.execute("DROP TRIGGER refuse ON mail_tokens")
      try await app.worker(Recorder()).runOnce()
      #expect(try await left(app) == [0, 0, 0])
    }
  }

  @Test func `housekeeping ends between two batches when it is told to`() async throws {
    try await TestApp.run { app in
      try await expire(app)
      let told = Task {
        while !Task.isCancelled { await Task.yield() }
        await app.worker(Recorder()).keepHouse()
      }
      told.cancel()
      await told.value
      #expect(try await left(app) == [1, 1, 1])
    }
  }

  @Test func `housekeeping holds up no notification`() async throws {
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
          let waiting: Int? = try await app.value("SELECT count(*) FROM notification_queue")
          return waiting == 0
        }
        running.cancel()
        return running
      }
      try await running.value
      #expect(recorder.told.count == 1)
    }
  }

  @Test func `past events are archived by the worker`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await ana.createEvent("Old", startTime: "2020-01-01T10:00:00Z", endTime: nil)
      _ = try await ana.createEvent("New")
      #expect(try await ana.stale { try await app.worker(Recorder()).runOnce() } == [.events])
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
