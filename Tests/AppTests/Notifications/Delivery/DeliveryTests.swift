import Foundation
import Logging
import Postgres
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import App

@Suite struct DeliveryTests {
  // MARK: Devices

  @Test func `a failing device neither blocks nor repeats another, and gets everything in order`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1, devices: 2)
      let isDown = Switch(true)
      let recorder = Recorder { _, device in if device.token == "1-2", isDown.isOn { throw DeliveryFailure.down } }
      try await app.enqueue(rounds: 0..<2, to: 1)
      _ = try await app.worker(recorder).step()
      let failed = try await app.database.rows(
        """
        SELECT attempts, last_error, due_at > created_at + interval '500 milliseconds' AS waits, lease
        FROM deliveries ORDER BY id
        """)
      #expect(failed.count == 2)
      #expect(try failed[0]["attempts"] == 1 && failed[0]["last_error"] == "down" && failed[0]["waits"] == true)
      #expect(try failed[0]["lease"] == UUID?.none && failed[1]["attempts"] == 0)
      // Postpone the next attempt, however slow this machine is.
      try await app.database.execute(
        "UPDATE deliveries SET due_at = now() + interval '1 hour' WHERE attempts > 0")
      // New rows go to the first device immediately. For the other, they wait behind the failed row.
      try await app.enqueue(rounds: 2..<4, to: 1)
      _ = try await app.worker(recorder).step()
      #expect(recorder.rounds("1-1") == [0, 1, 2, 3])
      #expect(recorder.rounds("1-2") == [])
      // The failing device was tried only once.
      #expect(recorder.begun == 5)
      let rows = try await app.database.rows(
        "SELECT (payload->>'round')::bigint AS round, attempts FROM deliveries ORDER BY id")
      #expect(try rows.map { try $0["round"] as Int } == [0, 1, 2, 3])
      #expect(try rows.map { try $0["attempts"] as Int } == [1, 0, 0, 0])
      isDown.turn(false)
      try await app.hurry()
      try await app.worker(recorder).runOnce()
      #expect(recorder.rounds("1-1") == [0, 1, 2, 3])
      #expect(recorder.rounds("1-2") == [0, 1, 2, 3])
      #expect(Set(recorder.received.map(\.push.id)).count == 4)
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `a device that its provider does not know is forgotten, with its deliveries`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2, devices: 2)
      try await app.enqueue(rounds: 0..<3, to: 2)
      let recorder = Recorder { _, device in if device.token == "1-1" { throw DeliveryFailure.unknownDevice } }
      try await app.worker(recorder).runOnce()
      let left = try await app.database.rows("SELECT token FROM devices ORDER BY token")
      #expect(try left.map { try $0[0] as String } == ["1-2", "2-1", "2-2"])
      for token in ["1-2", "2-1", "2-2"] { #expect(recorder.rounds(token) == [0, 1, 2]) }
      #expect(try await app.countQueue() == 0)
      #expect(try await app.countDead() == 0)
    }
  }

  @Test func `many rows for a device that is gone or down do not delay others`() async throws {
    try await TestApp.run { app in
      for failure in [DeliveryFailure.down, .unknownDevice] {
        try await app.database.batch(
          "DELETE FROM sessions WHERE kid = 'k'", "DELETE FROM users WHERE username LIKE 'reader%'")
        try await app.gatherReaders(2)
        // More subjects than a worker holds at once, and then one of another reader.
        try await app.enqueue(subjects: 300, to: 1)
        try await app.enqueue(subjects: 1, to: 2, round: 1)
        let recorder = Recorder { _, device in if device.token == "1-1" { throw failure } }
        let running = Task { try await app.worker(recorder).run() }
        try await eventually(within: .seconds(60)) { recorder.rounds("2-1") == [1] }
        running.cancel()
        try await running.value
        try await app.forgetDeliveries()
      }
    }
  }

  @Test func `a device that has a new token by then is kept and reached there`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<3, to: 1)
      let recorder = Recorder { _, device in
        guard device.token == "1-1" else { return }
        try await app.database.execute("UPDATE devices SET token = 'new' WHERE id = \(device.id)")
        throw DeliveryFailure.unknownDevice
      }
      try await app.worker(recorder).runOnce()
      #expect(recorder.rounds("new") == [0, 1, 2])
      #expect(try await app.value("SELECT count(*) FROM devices") == 1)
    }
  }

  @Test func `a device that is registered again while a push to it fails is kept`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for token in ["again", "gone"] {
        try await ana.register(token: token)
        try await app.database.execute(
          """
          INSERT INTO deliveries (notification_id, type, recipient_id, subject_id, payload, device_id, created_at)
          SELECT uuid_v7(), 'test', user_id, uuid_v7(), '{"message": "Hello"}', id, now()
          FROM devices WHERE token = \(token)
          """)
      }
      let isFirst = Switch(true)
      let recorder = Recorder { _, device in
        guard device.token == "gone" || isFirst.isOn else { return }
        if device.token == "again" {
          isFirst.turn(false)
          try await ana.register(token: "again", expecting: 200)
        }
        throw DeliveryFailure.unknownDevice
      }
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.token) == ["again"])
      let left = try await app.database.rows("SELECT token FROM devices")
      #expect(try left.map { try $0[0] as String } == ["again"])
    }
  }

  @Test func `muted types and ended sessions get no deliveries`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(3)
      try await app.enqueue(rounds: 0..<2, to: 3)
      try await app.database.execute(
        "INSERT INTO muted_notifications (user_id, type) VALUES (md5('r1')::uuid, 'test'), (md5('r2')::uuid, 'other')")
      try await app.database.execute("UPDATE sessions SET ended_at = now() WHERE id = md5('t3')::uuid")
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.token) == ["2-1", "2-1"])
      #expect(try await app.countQueue() == 0)
      // The device of the ended session is forgotten.
      #expect(try await app.value("SELECT count(*) FROM devices") == 2)
    }
  }

  // MARK: Failures

  @Test func `a permanently refused row becomes a dead letter, and those behind it are delivered`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1, devices: 2)
      try await app.enqueue(rounds: 0..<3, to: 1)
      let recorder = Recorder { push, device in
        if device.token == "1-1", push.payload.contains(#""round": 1"#) { throw DeliveryFailure.refused }
      }
      try await app.worker(recorder).runOnce()
      #expect(recorder.rounds("1-1") == [0, 2])
      #expect(recorder.rounds("1-2") == [0, 1, 2])
      #expect(try await app.countQueue() == 0)
      let dead = try #require(
        try await app.database.first(
          """
          SELECT l.last_error, l.attempts, l.payload->>'round' AS round, d.token
          FROM deliveries AS l JOIN devices AS d ON d.id = l.device_id
          """))
      #expect(try dead["last_error"] == "refused")
      #expect(try dead["attempts"] == 1)
      #expect(try dead["round"] == "1")
      #expect(try dead["token"] == "1-1")
    }
  }

  @Test func `a push that fails for a day is given up, and the log has no name of the user`() async throws {
    let log = CapturedLog()
    try await TestApp.run(logger: log.logger(.warning)) { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let recorder = Recorder { _, _ in throw DeliveryFailure.down }
      for hours in [0, 23, 25] {
        try await app.database.execute(
          "UPDATE deliveries SET due_at = now(), created_at = now() - make_interval(hours => \(Int32(hours)))")
        #expect(try await app.countDead() == 0)
        _ = try await app.worker(recorder).step()
      }
      #expect(try await app.countDead() == 1)
      #expect(try await app.countQueue() == 0)
      #expect(try await app.value("SELECT attempts FROM deliveries") == 3)
      let line = try #require(log.lines.first { $0.message == "dead letter" })
      #expect(line.level == .error)
      let reader: User.ID = try #require(try await app.value("SELECT id FROM users"))
      #expect(log.text.contains("\(reader)") && !log.text.contains("reader1") && !log.text.contains("1-1"))
    }
  }

  @Test func `a retry waits as long as the receiver asks`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      try await app.enqueue(rounds: 0..<1, to: 1)
      let recorder = Recorder { _, _ in
        throw DeliveryFailure(description: "busy", remedy: .later(seconds: 300))
      }
      _ = try await app.worker(recorder).step()
      let wait: Double = try #require(
        try await app.value("SELECT extract(epoch FROM due_at - now())::float8 FROM deliveries"))
      #expect((290...340).contains(wait))
      try await app.forgetDeliveries()
    }
  }

  // MARK: Concurrency

  @Test func `a slow send does not delay others, and few go to one device at once`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(20)
      // Ten subjects of the first reader, and one of each other.
      try await app.enqueue(subjects: 10, to: 1)
      let (isHeld, underWay) = (Switch(true), Gauge())
      let recorder = Recorder { _, device in
        guard device.token == "1-1" else { return }
        underWay.enter()
        defer { underWay.leave() }
        while isHeld.isOn { try await Task.sleep(for: .milliseconds(10)) }
      }
      let running = Task { try await app.worker(recorder, concurrency: 8).run() }
      try await eventually { underWay.now == 4 }
      for round in 0..<3 {
        try await app.enqueue(rounds: round..<round + 1, to: 20)
        try await eventually { (2...20).allSatisfy { recorder.rounds("\($0)-1") == (0...round).map(Optional.some) } }
      }
      #expect(underWay.most == 4)
      isHeld.turn(false)
      try await eventually {
        try await app.hurry()
        return try await app.countQueue() == 0
      }
      #expect(underWay.most <= 4)
      #expect(recorder.received.count == 20 * 3 + 10)
      running.cancel()
      try await running.value
    }
  }

  @Test func `with several workers and devices that fail at random, everything arrives in order`() async throws {
    try await TestApp.run { app in
      let (readers, rounds) = (30, 8)
      try await app.gatherReaders(readers, devices: 2)
      let recorder = Recorder { _, _ in
        if Int.random(in: 0..<5) == 0 { throw DeliveryFailure.down }
        if Int.random(in: 0..<3) == 0 { try await Task.sleep(for: .milliseconds(Int.random(in: 0..<10))) }
      }
      let workers = (0..<3).map { _ in Task { try await app.worker(recorder, concurrency: 6).run() } }
      for round in 0..<rounds { try await app.enqueue(rounds: round..<round + 1, to: readers) }
      try await app.finish(workers)
      // Exactly once, because no worker died.
      for reader in 1...readers {
        for device in 1...2 { #expect(recorder.rounds("\(reader)-\(device)") == (0..<rounds).map(Optional.some)) }
      }
      #expect(try await app.countDead() == 0)
    }
  }

  @Test func `workers whose claims are taken from them lose nothing and keep the order`() async throws {
    try await TestApp.run { app in
      let (readers, rounds) = (20, 6)
      try await app.gatherReaders(readers, devices: 2)
      let recorder = Recorder { _, _ in
        if Int.random(in: 0..<6) == 0 { throw DeliveryFailure.down }
        try await Task.sleep(for: .milliseconds(Int.random(in: 0..<30)))
      }
      let workers = (0..<3).map { _ in Task { try await app.worker(recorder, concurrency: 6).run() } }
      for round in 0..<rounds {
        try await app.enqueue(rounds: round..<round + 1, to: readers)
        // As if their leases had expired. On a machine under load, a worker may seem to be dead. Three such deaths
        // would make the row a dead letter, and let the rows behind it overtake.
        try await app.database.execute(
          """
          UPDATE deliveries SET lease = uuid_v7(), leased_until = now(), deaths = 0
          WHERE lease IS NOT NULL AND hashtext(lease::text) % 2 = 0
          """)
      }
      try await app.finish(workers)
      for reader in 1...readers {
        for device in 1...2 {
          // Rows in flight may have arrived twice.
          var firsts: [Int?] = []
          for round in recorder.rounds("\(reader)-\(device)") where !firsts.contains(round) { firsts.append(round) }
          #expect(firsts == (0..<rounds).map(Optional.some))
        }
      }
      #expect(try await app.countDead() == 0)
    }
  }

  @Test func `a worker that lost its leases acknowledges nothing and sends no rows behind`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(2)
      try await app.enqueue(rounds: 0..<3, to: 2)
      let recorder = Recorder { push, _ in if push.payload.contains(#""n": 1"#) { throw DeliveryFailure.refused } }
      recorder.hold()
      let step = Task { try await app.worker(recorder, concurrency: 8).step() }
      try await eventually { recorder.begun == 2 }
      let other = UUID()
      try await app.database.execute("UPDATE deliveries SET lease = \(other), attempts = 7")
      recorder.letGo()
      _ = try await step.value
      #expect(recorder.begun == 2)
      let rows = try await app.database.rows("SELECT lease, attempts FROM deliveries WHERE died_at IS NULL")
      #expect(rows.count == 6)
      for row in rows {
        #expect(try row["lease"] == other)
        #expect(try row["attempts"] == 7)
      }
      try await app.forgetDeliveries()
    }
  }

  @Test func `rows behind a waiting row are due no earlier`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1, devices: 2)
      // More than a claim takes of one device and subject.
      for round in 0..<60 { try await app.enqueue(rounds: round..<round + 1, to: 1) }
      let recorder = Recorder { _, device in
        if device.token == "1-1" { throw DeliveryFailure(description: "busy", remedy: .later(seconds: 600)) }
      }
      _ = try await app.worker(recorder).step()
      let early: Int? = try await app.value(
        """
        SELECT count(*) FROM deliveries AS q JOIN devices AS d ON d.id = q.device_id
        WHERE d.token = '1-1' AND q.due_at < now() + interval '500 seconds'
        """)
      #expect(early == 0)
      #expect(try await app.value("SELECT sum(attempts)::bigint FROM deliveries") == 1)
      try await app.worker(recorder).runOnce()
      #expect(recorder.rounds("1-2") == (0..<60).map(Optional.some))
      try await app.forgetDeliveries()
    }
  }

  @Test func `an iPhone's badge is the number of unread notifications when the push is sent`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await ana.register(.ios, token: String(repeating: "ab", count: 32))
      try await ana.register(.log, token: "log")
      for phone in [ben, cleo] { try await ana.sendFriendRequest(to: try await app.signUp("of-\(phone.username)")) }
      let first = try await ben.createEvent(inviting: [ana])["id"].string ?? ""
      try await ben.edit(first, #"{"title": "Dinner"}"#)
      try await cleo.sendFriendRequest(to: ana)
      try await app.fanOut()
      try await ana.markRead(
        #"{"ids": ["\#(try #require(try await ana.get("notifications")["items"][1]["id"].string))"]}"#)
      try await ana.block(cleo)
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      // Two of four: one is read, and one names a user whom she has blocked.
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE recipient_id = \(ana.userID)") == 4)
      #expect(try await ana.get("notifications")["unread"].int == 2)
      #expect(Set(recorder.received.filter { $0.token != "log" }.map(\.push.badge)) == [2])
      #expect(Set(recorder.received.filter { $0.token == "log" }.map(\.push.badge)) == [nil])
      try await app.takeNotifications()
    }
  }

  // MARK: Checked again when a send begins

  @Test func `a block, a mute or the end of a session stops rows that were claimed before it`() async throws {
    try await TestApp.run { app in
      let changes: [SQL] = [
        """
        INSERT INTO blocks (blocker_id, blocked_id, created_at) VALUES (md5('r1')::uuid, md5('r2')::uuid, now())
        """,
        "INSERT INTO muted_notifications (user_id, type) VALUES (md5('r1')::uuid, 'test')",
        "UPDATE sessions SET ended_at = now() WHERE id = md5('t1')::uuid",
        "UPDATE devices SET user_id = md5('r2')::uuid, session_id = md5('t2')::uuid WHERE token = '1-1'",
        "DELETE FROM devices WHERE token = '1-1'",
        "DELETE FROM deliveries",
        "UPDATE deliveries SET type = 'event-reminder', created_at = now() - interval '2 hours'",
      ]
      for (number, change) in changes.enumerated() {
        try await app.gatherReaders(2)
        try await app.enqueue(rounds: 0..<3, to: 1)
        try await app.database.execute("UPDATE deliveries SET person_id = md5('r2')::uuid")
        let recorder = Recorder()
        recorder.hold()
        let step = Task { try await app.worker(recorder).step() }
        try await eventually { recorder.begun == 1 }
        // All three rows are claimed by now.
        try await app.database.execute(change)
        recorder.letGo()
        _ = try await step.value
        #expect(recorder.begun == 1, "change \(number)")
        try await app.worker(recorder).runOnce()
        #expect(recorder.begun == 1, "change \(number)")
        #expect(try await app.value("SELECT count(*) FROM deliveries") == 0, "change \(number)")
        try await app.database.batch(
          "DELETE FROM sessions WHERE kid = 'k'", "DELETE FROM users WHERE username LIKE 'reader%'")
      }
    }
  }

  // MARK: Shutdown

  /// Runs a worker as the program does, until it is asked to stop.
  private func serve(_ worker: NotificationWorker, _ app: TestApp) -> (
    group: ServiceGroup, running: Task<Void, any Error>
  ) {
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [.init(service: worker, successTerminationBehavior: .gracefullyShutdownGroup)],
        logger: app.dependencies.logger))
    return (group, Task { try await group.run() })
  }

  @Test func `at a shutdown, a worker finishes the sends in flight and gives back the rest`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(20)
      try await app.enqueue(rounds: 0..<3, to: 20)
      let recorder = Recorder()
      recorder.hold()
      let (group, running) = serve(app.worker(recorder, concurrency: 4), app)
      try await eventually { recorder.begun == 4 }
      await group.triggerGracefulShutdown()
      // Rows are given back while others are still being sent.
      try await eventually {
        let leased: Int? = try await app.value("SELECT count(lease) FROM deliveries")
        // Rows behind those in flight are given back when the sends end.
        return leased == 4 * 3
      }
      recorder.letGo()
      try await running.value
      #expect(recorder.begun == 4)
      #expect(recorder.received.count == 4)
      let row = try #require(
        try await app.database.first(
          "SELECT count(*) AS rows, count(lease) AS leased, sum(attempts) AS attempts FROM deliveries"))
      #expect(try row["rows"] == 56)
      #expect(try row["leased"] == 0)
      #expect(try row["attempts"] == 0)
      let next = Recorder()
      try await app.worker(next).runOnce()
      #expect(next.received.count == 56)
    }
  }

  @Test func `a send that does not end within seconds is cut short and given back`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(3, devices: 2)
      try await app.enqueue(rounds: 0..<1, to: 3)
      // One device of each reader responds at once, and the other never.
      let recorder = Recorder { _, device in
        while device.token.hasSuffix("-2") { try await Task.sleep(for: .seconds(60)) }
      }
      let (group, running) = serve(app.worker(recorder, concurrency: 6), app)
      try await eventually { recorder.received.count == 3 && recorder.begun == 6 }
      let start = ContinuousClock.now
      await group.triggerGracefulShutdown()
      try await running.value
      #expect(ContinuousClock.now - start < .seconds(8))
      #expect(try await app.value("SELECT count(*) FROM deliveries WHERE lease IS NULL AND attempts = 0") == 3)
      // Nothing is sent again to devices that have it.
      let next = Recorder()
      try await app.worker(next).runOnce()
      #expect(next.received.map(\.token).sorted() == ["1-2", "2-2", "3-2"])
    }
  }

  @Test func `rows are found without a wake-up`() async throws {
    try await TestApp.run { app in
      try await app.gatherReaders(1)
      let recorder = Recorder()
      let running = Task { try await app.worker(recorder).run() }
      for round in 0..<3 {
        // Nothing announces these rows.
        try await app.enqueue(rounds: round..<round + 1, to: 1)
        try await eventually { recorder.received.count == round + 1 }
      }
      // Due long ago, like a row of a change that took long to commit.
      try await app.database.execute(
        """
        INSERT INTO deliveries (
          notification_id, recipient_id, device_id, type, subject_id, payload, created_at, due_at
        )
        SELECT uuid_v7(), user_id, id, 'test', uuid_v7(), '{"round": 3}', now(), now() - interval '1 hour' FROM devices
        """)
      try await eventually { recorder.rounds("1-1") == [0, 1, 2, 3] }
      running.cancel()
      try await running.value
    }
  }
}

/// On or off, for closures on any thread.
private final class Switch: Sendable {
  private let state: Mutex<Bool>

  init(_ isOn: Bool) {
    state = Mutex(isOn)
  }

  var isOn: Bool { state.withLock { $0 } }
  func turn(_ on: Bool) { state.withLock { $0 = on } }
}

/// Counts how many are inside, now and at most.
private final class Gauge: Sendable {
  private let counts = Mutex((now: 0, most: 0))

  var now: Int { counts.withLock { $0.now } }
  var most: Int { counts.withLock { $0.most } }

  func enter() {
    counts.withLock { counts in
      counts.now += 1
      counts.most = max(counts.most, counts.now)
    }
  }

  func leave() { counts.withLock { $0.now -= 1 } }
}

extension TestApp {
  /// Waits until the workers have delivered everything, and stops them.
  fileprivate func finish(_ workers: [Task<Void, any Error>]) async throws {
    try await eventually(within: .seconds(60)) {
      try await hurry()
      return try await countQueue() == 0
    }
    for worker in workers {
      worker.cancel()
      try await worker.value
    }
  }
}
