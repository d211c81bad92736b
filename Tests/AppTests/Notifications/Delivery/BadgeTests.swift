import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Badge-only pushes: reading on one phone updates the number on the user's others.
@Suite struct BadgeTests {
  /// A user's phone, and another phone of theirs with an iPhone's token.
  private func phones(_ name: String = "ana", in app: TestApp) async throws -> (reader: Phone, other: Phone) {
    let reader = try await app.signUp(name)
    let other = try await reader.signInAgain()
    try await other.register(.ios, token: token("b"))
    return (reader, other)
  }

  /// - Parameter digit: hexadecimal.
  private func token(_ digit: String) -> String { String(repeating: digit, count: 64) }

  /// Marks this number of unread notifications, oldest first.
  private func read(_ count: Int, on phone: Phone) async throws {
    let unread = try await phone.pages(of: "notifications?unread=true", limit: 100).suffix(count)
    let ids = unread.compactMap { $0["id"].string }.map { "\"\($0)\"" }
    #expect(ids.count == count)
    try await phone.markRead(#"{"ids": [\#(ids.joined(separator: ","))]}"#)
  }

  // MARK: Recipients

  @Test func `reading on one phone sends the number to the user's other iPhones, whatever is muted`() async throws {
    try await TestApp.run { app in
      let (ana, other) = try await phones(in: app)
      let third = try await ana.signInAgain()
      try await ana.register(.ios, token: token("a"))
      try await other.register(.log, token: "log")
      try await third.register(.android, token: "android")
      let ben = try await app.signUp("ben")
      try await ben.register(.ios, token: token("e"))
      let types = Notice.Kind.optional.map { "\"\($0.rawValue)\": false" }.joined(separator: ",")
      _ = try await ana.send("PUT", "notification-preferences", "{\(types)}")
      try await app.fileNotifications(5, for: ana)
      try await app.fileNotifications(1, for: ben)
      let recorder = Recorder()
      try await read(2, on: ana)
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.token) == [token("b")])
      #expect(recorder.received.map(\.push.type) == ["badge"])
      #expect(recorder.received.map(\.push.badge) == [3])
      // From a phone without a device.
      try await third.markRead(#"{"all": true}"#)
      try await app.worker(recorder).runOnce()
      #expect(Set(recorder.received.dropFirst().map(\.token)) == [token("a"), token("b")])
      #expect(recorder.received.dropFirst().map(\.push.badge) == [0, 0])
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `Apple gets the number and nothing to show`() async throws {
    try await PushServer.run { server, _ in
      try await TestApp.run(try await server.environment()) { app in
        let (ana, _) = try await phones(in: app)
        try await app.fileNotifications(3, for: ana)
        try await read(1, on: ana)
        try await app.worker(Channels(app.dependencies)).runOnce()
        #expect(server.received.map(\.path) == ["/3/device/\(token("b"))"])
        #expect(server.received.first?.body == #"{"aps":{"badge":2}}"#)
        #expect(server.received.first?.header("apns-priority") == "5")
      }
    }
  }

  @Test func `no push follows a call that marks nothing, or when there is no other iPhone`() async throws {
    try await TestApp.run { app in
      let (ana, other) = try await phones(in: app)
      let ben = try await app.signUp("ben")
      try await ben.register(.ios, token: token("c"))
      try await ben.signInAgain().register(.android, token: "android")
      try await app.fileNotifications(1, for: ben)
      try await ben.markRead(#"{"all": true}"#)
      try await app.fileNotifications(1, for: ana)
      // Her only iPhone is the reader's.
      try await other.markRead(#"{"all": true}"#)
      for body in [#"{"all": true}"#, #"{"ids": []}"#, #"{"before": "2100-01-01T00:00:00Z"}"#] {
        try await ana.markRead(body)
      }
      #expect(try await app.countQueue() == 0)
      // The other session was ended by hand.
      let session = try other.session
      try await app.database.execute("UPDATE sessions SET ended_at = clock_timestamp() WHERE id = \(session)")
      try await app.fileNotifications(1, for: ana)
      try await ana.markRead(#"{"all": true}"#)
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `a waiting push goes with its device and with the account`() async throws {
    try await TestApp.run { app in
      let (ana, other) = try await phones(in: app)
      try await app.fileNotifications(2, for: ana)
      try await read(1, on: ana)
      #expect(try await app.countQueue() == 1)
      _ = try await other.send("POST", "auth/logout")
      #expect(try await app.countQueue() == 0)
      let again = try await ana.signInAgain()
      try await again.register(.ios, token: token("b"))
      try await read(1, on: ana)
      #expect(try await app.countQueue() == 1)
      try await ana.deleteAccount()
      #expect(try await app.countQueue() == 0)
      try await app.takeNotifications()
    }
  }

  // MARK: Merging

  @Test func `reading on before a worker runs adds no push, and the push has the last number`() async throws {
    try await TestApp.run { app in
      let (ana, _) = try await phones(in: app)
      try await app.fileNotifications(6, for: ana)
      for _ in 1...3 { try await read(1, on: ana) }
      let key = [("Idempotency-Key", "once")]
      let oldest = try await ana.pages(of: "notifications?unread=true", limit: 100).last?["id"].string ?? ""
      for _ in 1...2 {
        let response = try await ana.send("POST", "notifications/read", #"{"ids": ["\#(oldest)"]}"#, headers: key)
        #expect(response.json["unread"].int == 2)
      }
      #expect(try await app.countQueue() == 1)
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.badge) == [2])
    }
  }

  @Test func `a push that is being sent while the user reads on is followed by one more`() async throws {
    try await TestApp.run { app in
      let (ana, _) = try await phones(in: app)
      try await app.fileNotifications(5, for: ana)
      try await read(1, on: ana)
      let recorder = Recorder()
      recorder.hold()
      let step = Task { try await app.worker(recorder).step() }
      try await eventually { recorder.begun == 1 }
      // It has its number already.
      for _ in 1...2 { try await read(1, on: ana) }
      #expect(try await app.countQueue() == 2)
      recorder.letGo()
      _ = try await step.value
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.badge) == [4, 2])
      #expect(Set(recorder.received.map(\.push.id)).count == 2)
    }
  }

  @Test func `of two pushes that wait for a device, only the last is sent`() async throws {
    try await TestApp.run { app in
      let (ana, _) = try await phones(in: app)
      try await app.fileNotifications(2, for: ana)
      try await read(1, on: ana)
      // As after a push that failed while the user read on.
      try await app.database.execute(
        """
        INSERT INTO deliveries (notification_id, recipient_id, device_id, type, subject_id, payload, created_at)
        SELECT uuid_v7(), recipient_id, device_id, type, subject_id, payload, created_at FROM deliveries
        """)
      let last: UUID = try #require(
        try await app.value("SELECT notification_id FROM deliveries ORDER BY id DESC LIMIT 1"))
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.id) == [last.uuidString.lowercased()])
      #expect(try await app.countQueue() == 0)
    }
  }

  @Test func `a push that fails is sent again with the number of then`() async throws {
    try await TestApp.run { app in
      let (ana, _) = try await phones(in: app)
      try await app.fileNotifications(3, for: ana)
      try await read(1, on: ana)
      _ = try await app.worker(Recorder { _, _ in throw DeliveryFailure.down }).step()
      #expect(try await app.value("SELECT attempts FROM deliveries") == 1)
      try await read(1, on: ana)
      #expect(try await app.countQueue() == 1)
      try await app.hurry()
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.badge) == [1])
      // A failed attempt does not count against the hour.
      #expect(try await app.value("SELECT cardinality(badges_sent_at)::bigint FROM devices") == 1)
    }
  }

  // MARK: Three an hour

  @Test func `a device gets three pushes an hour, and the next one waits`() async throws {
    try await TestApp.run { app in
      let (ana, _) = try await phones(in: app)
      try await app.fileNotifications(9, for: ana)
      let recorder = Recorder()
      for count in 1...3 {
        try await read(1, on: ana)
        try await app.worker(recorder).runOnce()
        #expect(recorder.received.count == count)
      }
      try await read(1, on: ana)
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.count == 3)
      let row = try #require(
        try await app.database.first(
          "SELECT attempts, extract(epoch FROM due_at - now())::float8 AS wait FROM deliveries"))
      #expect(try row["attempts"] == 0)
      let wait: Double = try row["wait"]
      #expect((3400...3600).contains(wait))
      #expect(try await QueueStats.read(in: app.service).types["badge"]?.waiting == 1)
      // An early attempt, and reading on, change nothing.
      try await app.hurry()
      try await read(1, on: ana)
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.count == 3)
      #expect(try await app.countQueue() == 1)
      // A notification is not delayed.
      let user = ana.userID
      try await app.service.change { $0.notify(user, about: .waitlistPromoted(.new(), "Picnic", guest: user)) }
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.type) == ["badge", "badge", "badge", "waitlist-promoted"])
      // The first of the three is an hour old now.
      try await app.database.execute("UPDATE devices SET badges_sent_at[1] = now() - interval '1 hour'")
      try await app.hurry()
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.badge) == [8, 7, 6, 5, 5])
      #expect(try await app.countQueue() == 0)
      // The second is not.
      try await read(1, on: ana)
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.count == 5)
      try await app.takeNotifications()
    }
  }

  // MARK: Races

  @Test func `however many phones read at once while workers send, the last number arrives`() async throws {
    try await TestApp.run { app in
      let (ana, other) = try await phones(in: app)
      var readers = [ana]
      for digit in ["c", "d", "e"] {
        let reader = try await ana.signInAgain()
        try await reader.register(.ios, token: token(digit))
        readers.append(reader)
      }
      try await app.fileNotifications(40, for: ana)
      let ids = try await other.pages(of: "notifications", limit: 100).compactMap { $0["id"].string }
      let recorder = Recorder()
      let workers = (0..<2).map { _ in Task { try await app.worker(recorder).run() } }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (number, reader) in readers.enumerated() {
          group.addTask {
            for id in ids.enumerated() where id.offset % 4 == number {
              try await reader.markRead(#"{"ids": ["\#(id.element)"]}"#)
              try await app.database.execute("UPDATE devices SET badges_sent_at = '{}' WHERE token = \(token("b"))")
            }
          }
        }
        try await group.waitForAll()
      }
      try await eventually(within: .seconds(60)) {
        try await app.database.execute("UPDATE devices SET badges_sent_at = '{}'")
        try await app.hurry()
        return try await app.countQueue() == 0
      }
      for worker in workers {
        worker.cancel()
        try await worker.value
      }
      let numbers = recorder.received.filter { $0.token == token("b") }.map(\.push.badge)
      #expect(numbers.last == 0, "\(numbers)")
      #expect(numbers.count <= 40)
    }
  }
}
