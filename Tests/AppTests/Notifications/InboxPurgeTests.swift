import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// The end of notifications that are over: floors rise, and what no inbox shows is dropped.
@Suite struct InboxPurgeTests {
  // MARK: Partitions

  @Test func `the periods of the last 90 days and of the next month have partitions`() async throws {
    try await TestApp.run { app in
      let rows = try await app.database.rows(
        """
        SELECT start <= now() - interval '90 days' AS is_first, until > now() + interval '30 days' AS is_last,
          start = coalesce(lag(until) OVER (ORDER BY start), start) AS follows
        FROM notification_partitions ORDER BY start
        """)
      #expect(rows.count == 5)
      #expect(try rows[0]["is_first"] && rows[4]["is_last"])
      for row in rows { #expect(try row["follows"]) }
      #expect(try await InboxItem.makePartitions(in: app.service) == 0)
    }
  }

  @Test func `the worker makes a partition before its month begins`() async throws {
    try await TestApp.run { app in
      let (before, newest) = (try await partitions(of: app), try await partitions(of: app).last)
      try await app.database.execute("DROP TABLE \(unescaped: #require(newest))")
      try await app.worker(Recorder()).runOnce()
      #expect(try await partitions(of: app) == before)
    }
  }

  @Test func `without a partition, notifications are filed and read as usual, and none is made for their time`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for name in try await partitions(of: app) {
        try await app.database.execute("DROP TABLE \(unescaped: name)")
      }
      try await app.fileNotifications(3, for: ana)
      try await app.worker(Recorder()).runOnce()
      #expect(try await partitions(of: app).count == 1)
      try await app.fileNotifications(2, for: ana)
      #expect(try await app.value("SELECT count(*) FROM notifications_default") == 5)
      #expect(try await ana.get("notifications")["items"].array.count == 5)
      #expect(try await ana.markRead(#"{"all": true}"#).json["unread"].int == 0)
    }
  }

  @Test func `there are at most six partitions, whatever the clock was`() async throws {
    try await TestApp.run { app in
      for years in [-2, -1, 1, 2] {
        try await app.database.execute(
          "SELECT make_notification_partition(now() + make_interval(years => \(Int32(years))))")
      }
      #expect(try await partitions(of: app).count == 6)
      // The oldest one is over, and no one sees it.
      try await app.worker(Recorder()).runOnce()
      #expect(try await partitions(of: app).count == 5)
    }
  }

  // MARK: Floors

  @Test func `raising the floors moves the stamps of inboxes that lose items, and no others`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      try await plantOver(2, for: ana, in: app)
      try await app.fileNotifications(1, for: ana)
      try await app.fileNotifications(1, for: ben)
      var stamps: [[App.Collection: String]] = []
      for phone in [ana, ben, cleo] { stamps.append(try await phone.refreshLists()) }
      #expect(try await ana.get("notifications")["unread"].int == 3)
      while try await InboxItem.purge(atMost: 1, in: app.service) > 0 {}
      #expect(try await ana.stale(stamps[0]) == [.notifications])
      #expect(try await ben.stale(stamps[1]) == [])
      #expect(try await cleo.stale(stamps[2]) == [])
      #expect(try await ana.get("notifications")["items"].array.count == 1)
      #expect(try await app.value("SELECT count(*) FROM notifications") == 2)
      #expect(try await app.value("SELECT count(*) FROM user_stamps WHERE inbox_floor < notifications_over()") == 0)
      #expect(try await partitions(of: app).count == 5)
    }
  }

  @Test func `items below the floor are neither listed, counted, marked, streamed nor on a badge`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let token = String(repeating: "ab", count: 32)
      try await ana.register(.ios, token: token)
      try await plantOver(2, for: ana, in: app)
      _ = try await app.service.change { try await InboxItem.raiseFloors(to: InboxItem.over, atMost: 10, in: $0) }
      #expect(try await app.value("SELECT count(*) FROM notifications") == 2)
      for path in ["notifications", "notifications?unread=true"] {
        let list = try await ana.get(path)
        #expect(list["items"].array.isEmpty && list["unread"].int == 0, "\(path)")
      }
      let stale = try await ana.stale {
        let unread = try await ana.markRead(#"{"all": true}"#).json["unread"].int
        #expect(unread == 0)
      }
      #expect(stale == [])
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE read_at IS NULL") == 2)
      try await EventStream.follow(ana, after: "0") { stream in
        try await app.fileNotifications(1, for: ana)
        try await eventually { !stream.events.isEmpty }
        #expect(stream.events.count == 1)
      }
      try await app.fileNotifications(1, for: ana)
      let recorder = Recorder()
      let other = try await ana.signInAgain()
      let newest = try #require(try await other.get("notifications")["items"][0]["id"].string)
      try await other.markRead(#"{"ids": ["\#(newest)"]}"#)
      try await app.worker(recorder).step()
      #expect(recorder.received.map(\.push.badge) == [1])
    }
  }

  @Test func `a notification is filed above the floor, although the clock was set back`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.database.execute("UPDATE user_stamps SET inbox_floor = now() + interval '1 day'")
      let stale = try await ana.stale {
        try await app.service.change {
          for _ in 0..<2 { $0.notify(ana.userID, about: .waitlistPromoted(.new(), "Picnic", guest: ana.userID)) }
        }
      }
      #expect(stale == [.notifications])
      #expect(try await ana.get("notifications")["items"].array.count == 2)
      #expect(
        try await app.value("SELECT bool_and(n.filed_at > s.inbox_floor) FROM notifications AS n, user_stamps AS s")
          == true)
      try await app.takeNotifications()
    }
  }

  // MARK: Dropping

  @Test func `a partition stays while a user sees something of its time`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for phone in [ana, ben] { try await plantOver(1, for: phone, in: app) }
      func drop() async throws -> Int {
        try await app.service.batch("SELECT drop_notification_partition()")[0][0][0]
      }
      #expect(try await drop() == 0)
      _ = try await app.service.change { try await InboxItem.raiseFloors(to: InboxItem.over, atMost: 1, in: $0) }
      #expect(try await drop() == 0)
      #expect(try await app.value("SELECT count(*) FROM notifications") == 2)
      _ = try await app.service.change { try await InboxItem.raiseFloors(to: InboxItem.over, atMost: 1, in: $0) }
      #expect(try await drop() == 1)
      #expect(try await app.value("SELECT count(*) FROM notifications") == 0)
      #expect(try await drop() == 0)
    }
  }

  @Test func `a partition stays while an account has a lower floor, which registered with a clock that was behind`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await plantOver(1, for: ana, in: app)
      _ = try await app.service.change { try await InboxItem.raiseFloors(to: InboxItem.over, atMost: 10, in: $0) }
      // The drop waits for a transaction in which someone registers and gets an item.
      let ben = User.ID.new()
      let dropping = try await app.database.transaction { transaction in
        try await transaction.rows("INSERT INTO users (id, username, display_name) VALUES (\(ben), 'ben', 'Ben')")
        try await transaction.rows(
          "INSERT INTO user_stamps (user_id, inbox_floor) VALUES (\(ben), now() - interval '2 years')")
        try await transaction.rows(Self.item(for: ben, at: "notifications_over() - interval '2 hours'"))
        // Detached: in this task, the transaction is open. The function's limit for locks would end it too early.
        let dropping = Task.detached {
          try await app.database.batch(
            "ALTER FUNCTION drop_notification_partition() RESET lock_timeout", "SELECT drop_notification_partition()")
        }
        try await app.waitForLocks(1)
        return dropping
      }
      let dropped: Int = try await dropping.value[1][0][0]
      #expect(dropped == 0)
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE recipient_id = \(ben)") == 1)
    }
  }

  @Test func `a drop waits for a moment only, so that reads do not wait behind it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await plantOver(1, for: ana, in: app)
      _ = try await app.service.change { try await InboxItem.raiseFloors(to: InboxItem.over, atMost: 10, in: $0) }
      try await app.database.transaction { reader in
        try await reader.rows("SELECT FROM notifications LIMIT 1")
        let dropping = Task.detached { try await InboxItem.purge(atMost: 10, in: app.service) }
        let refused = await #expect(throws: PostgresError.self) { try await dropping.value }
        #expect(refused?.isLockTimeout == true)
      }
      #expect(try await partitions(of: app).count == 6)
      try await app.worker(Recorder()).runOnce()
      #expect(try await partitions(of: app).count == 5)
    }
  }

  @Test func `items of a time without a partition are deleted once their inboxes do not show them`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await app.database.execute("UPDATE user_stamps SET inbox_floor = '-infinity'")
      for phone in [ana, ben] {
        for age in ["3 years", "2 years", "80 days", "-2 years"] {
          try await app.database.execute(Self.item(for: phone.userID, at: "now() - interval '\(unescaped: age)'"))
        }
      }
      #expect(try await app.value("SELECT count(*) FROM notifications_default") == 6)
      // In batches: two floors, then the items.
      #expect(try await InboxItem.purge(atMost: 3, in: app.service) == 2)
      #expect(try await ana.get("notifications")["items"].array.count == 2)
      #expect(try await app.value("SELECT count(*) FROM notifications_default") == 6)
      #expect(try await InboxItem.purge(atMost: 3, in: app.service) == 3)
      #expect(try await InboxItem.purge(atMost: 3, in: app.service) == 1)
      #expect(try await InboxItem.purge(atMost: 3, in: app.service) == 0)
      #expect(try await app.value("SELECT count(*) FROM notifications_default") == 2)
      #expect(try await app.value("SELECT count(*) FROM notifications") == 4)
    }
  }

  // MARK: Everything at once

  @Test(arguments: Array<UInt64>(1...(testsAreLong ? 40 : 4)))
  func `a step of the purge, even one that is cut short, changes no inbox without its stamp`(seed: UInt64) async throws
  {
    try await TestApp.run { app in
      var random = SeededRandom(seed: seed)
      var phones: [Phone] = []
      for name in ["ana", "ben", "cleo"] { phones.append(try await app.signUp(name)) }
      for phone in phones where Bool.random(using: &random) {
        try await plantOver(.random(in: 1...3, using: &random), for: phone, in: app)
      }
      var copies: [String: JSON] = [:]
      func compare(after step: String) async throws {
        for phone in phones {
          let list = try await phone.get("notifications?limit=100")
          if let copy = copies[phone.id], copy["timestamp"] == list["timestamp"] {
            #expect(copy == list, "\(step), seed \(seed)")
          }
          copies[phone.id] = list
        }
      }
      for number in 0..<60 {
        let phone = phones[.random(in: phones.indices, using: &random)]
        let step = Int.random(in: 0..<9, using: &random)
        switch step {
        case 0: try await app.fileNotifications(1, for: phone)
        case 1: try await phone.markRead(#"{"all": true}"#)
        case 2: _ = try await InboxItem.purge(atMost: 1, in: app.service)
        case 3:
          // The worker is killed before its COMMIT.
          _ = try? await app.service.change { change in
            _ = try await InboxItem.raiseFloors(to: InboxItem.over, atMost: 1, in: change)
            throw CancellationError()
          }
        case 4: _ = try await InboxItem.makePartitions(in: app.service)
        case 5: try await app.service.batch("SELECT drop_notification_partition()")
        case 6:
          // Two workers.
          async let one = InboxItem.purge(atMost: 2, in: app.service)
          async let other = InboxItem.purge(atMost: 2, in: app.service)
          _ = (try? await one, try? await other)
        case 7 where number < 30:
          // The clock was behind for a moment. Its item has a stamp, as fan-out would give it.
          try await app.database.batch(
            "UPDATE user_stamps SET notifications = clock_timestamp() WHERE user_id = \(phone.userID)",
            Self.item(
              for: phone.userID, at: "greatest(now() - make_interval(days => \(Int32(60 + 2 * number))), inbox_floor)")
          )
        default: if phones.count < 6 { phones.append(try await app.signUp("guest\(phones.count)")) }
        }
        try await compare(after: "step \(step)")
      }
      while try await InboxItem.purge(atMost: 2, in: app.service) > 0 { try await compare(after: "the end") }
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE filed_at < notifications_over()") == 0)
      #expect(
        try await app.value("SELECT count(*) FROM notification_partitions WHERE until <= notifications_over()") == 0)
      for phone in phones {
        let stored: Int? = try await app.value(
          "SELECT count(*) FROM notifications WHERE recipient_id = \(phone.userID)")
        #expect(copies[phone.id]?["items"].array.count == stored)
      }
    }
  }

  @Test func `while workers purge and die, no phone calls an old copy of its inbox fresh`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off", "MUSTER_RATE_LIMITS": "off"]) { app in
      var phones: [Phone] = []
      for number in 0..<6 { phones.append(try await app.signUp("ana\(number)")) }
      for phone in phones { try await plantOver(3, for: phone, in: app) }
      let copies = Copies()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for phone in phones {
          group.addTask {
            for round in 0..<12 {
              copies.add(try await phone.get("notifications?limit=100"), of: phone.id)
              if round % 3 == 0 { try await app.fileNotifications(1, for: phone) }
            }
          }
        }
        for _ in 0..<2 {
          group.addTask {
            for _ in 0..<15 { _ = try? await InboxItem.purge(atMost: 1, in: app.service) }
          }
        }
        group.addTask {
          for _ in 0..<8 {
            try await app.database.execute(
              """
              SELECT pg_terminate_backend(pid) FROM pg_stat_activity
              WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'
                AND query LIKE '%inbox_floor = notifications_over()%'
              """)
          }
        }
        try await group.waitForAll()
      }
      while try await InboxItem.purge(atMost: 10, in: app.service) > 0 {}
      for phone in phones {
        let last = try await phone.get("notifications?limit=100")
        #expect(last["items"].array.count == 4)
        copies.add(last, of: phone.id)
      }
      #expect(copies.differing == [])
    }
  }

  // MARK: Planting

  private func partitions(of app: TestApp) async throws -> [String] {
    try await app.database.rows("SELECT name FROM notification_partitions ORDER BY start").map { try $0[0] }
  }

  /// Files items of 121 days ago or so, into a partition of their own, which has come to its end.
  private func plantOver(_ count: Int, for phone: Phone, in app: TestApp) async throws {
    try await app.database.batch(
      "SELECT make_notification_partition(notifications_over() - interval '1 hour')",
      "UPDATE user_stamps SET inbox_floor = '-infinity' WHERE inbox_floor >= notifications_over()")
    for place in 0..<count {
      try await app.database.execute(
        Self.item(for: phone.userID, at: "notifications_over() - make_interval(mins => \(Int32(60 + place)))"))
    }
  }

  /// - Parameter time: an expression, over the user's stamps.
  private static func item(for user: User.ID, at time: SQL) -> SQL {
    """
    INSERT INTO notifications (recipient_id, filed_at, id, type, subject_id, payload, created_at)
    SELECT user_id, \(time), uuid_v7(), 'event-cancelled', uuid_v7(),
      '{"type": "event-cancelled", "title": "Picnic"}', now()
    FROM user_stamps WHERE user_id = \(user)
    ON CONFLICT DO NOTHING
    """
  }
}

/// All copies of lists that phones have read, by their stamps.
private final class Copies: Sendable {
  private let state = Mutex<(copies: [String: JSON], differing: [String])>(([:], []))

  var differing: [String] { state.withLock { $0.differing } }

  func add(_ copy: JSON, of user: String) {
    let key = "\(user) \(copy["timestamp"].string ?? "")"
    state.withLock { state in
      if let other = state.copies[key], other != copy { state.differing.append(key) }
      state.copies[key] = copy
    }
  }
}
