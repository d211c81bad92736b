import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import App

/// Pushes that let the phone's app validate its lists: two an hour for each phone, and one for a burst.
@Suite struct WakingTests {
  private static let sendPath = "messages:send"

  /// - Parameter digit: hexadecimal.
  private func token(_ digit: String) -> String { String(repeating: digit, count: 64) }

  private func google(
    _ reply: @escaping @Sendable (PushServer.Received) -> PushServer.Reply = { _ in .response(200) }
  ) -> @Sendable (PushServer.Received, Int) -> PushServer.Reply {
    { request, number in request.path == "/token" ? FCMTests.grant(number) : reply(request) }
  }

  /// Queues one delivery to each device about each of some subjects.
  private func enqueue(_ subjects: Int, in app: TestApp) async throws {
    try await app.database.execute(
      """
      INSERT INTO deliveries (notification_id, type, recipient_id, subject_id, payload, device_id, created_at)
      SELECT uuid_v7(), 'event-updated', user_id, uuid_v7(), '{"message": "Hello"}', id, now()
      FROM devices, generate_series(1, \(subjects))
      """)
  }

  /// Time passes for the phones.
  private func pass(minutes: Int, in app: TestApp) async throws {
    try await app.database.execute(
      """
      UPDATE devices SET woken_at = ARRAY(
        SELECT time - make_interval(mins => \(minutes)::integer) FROM unnest(woken_at) AS woken (time) ORDER BY time
      )
      """)
  }

  @Test func `an iPhone's app is woken by the first push of a burst, and at most twice an hour`() async throws {
    try await PushServer.run { server, _ in
      try await TestApp.run(try await server.environment()) { app in
        let ana = try await app.signUp("ana")
        for digit in ["a", "b"] { try await ana.register(.ios, token: token(digit)) }
        // The minutes since the last burst, and whether its first push wakes the app.
        let bursts: [(minutes: Int, wakes: Bool)] = [
          (0, true), (9, false), (2, true), (30, false), (18, false), (2, true), (11, true), (40, false),
        ]
        for (number, burst) in bursts.enumerated() {
          try await pass(minutes: burst.minutes, in: app)
          try await enqueue(3, in: app)
          try await app.worker(Channels(app.dependencies)).runOnce()
          for digit in ["a", "b"] {
            let pushes = server.received(at: token(digit)).suffix(3)
            #expect(pushes.count == 3 && server.received.count == 6 * (number + 1))
            let waking = pushes.filter { $0.json["aps"]["content-available"] != .null }
            #expect(waking.count == (burst.wakes ? 1 : 0), "\(number)")
            // The notification itself is as ever.
            for push in pushes {
              #expect(push.json["aps"]["alert"]["body"].string == "Hello")
              #expect(push.header("apns-push-type") == "alert" && push.header("apns-priority") == "10")
            }
            for push in waking { #expect(push.json["aps"]["content-available"].int == 1) }
          }
        }
        #expect(try await app.value("SELECT max(cardinality(woken_at)) FROM devices") == 2)
        #expect(try await app.countQueue() == 0)
      }
    }
  }

  @Test func `several workers wake a phone once`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for digit in ["a", "b", "c", "d"] { try await ana.register(.ios, token: token(digit)) }
      for _ in 1...5 {
        try await app.database.execute("UPDATE devices SET woken_at = '{}'")
        try await enqueue(20, in: app)
        let recorder = Recorder()
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 1...4 { group.addTask { try await app.worker(recorder).runOnce() } }
          try await group.waitForAll()
        }
        #expect(recorder.received.count == 80)
        #expect(recorder.received.filter(\.push.wakesApp).map(\.token).sorted() == ["a", "b", "c", "d"].map(token))
      }
    }
  }

  @Test func `an Android app is woken by a second message of normal priority`() async throws {
    try await PushServer.run(responding: google()) { server, _ in
      try await TestApp.run(try await server.environment()) { app in
        try await app.signUp("ana").register(.android, token: "android")
        for _ in 1...2 {
          try await enqueue(2, in: app)
          try await app.worker(Channels(app.dependencies)).runOnce()
        }
        let messages = server.received(at: Self.sendPath).map { $0.json["message"] }
        let (silent, shown) = (
          messages.filter { $0["notification"] == .null }, messages.filter { $0["notification"] != .null }
        )
        #expect(shown.count == 4 && shown.allSatisfy { $0["android"]["priority"].string == "HIGH" })
        #expect(
          silent == [
            .object([
              "token": .string("android"), "data": .object(["type": .string("changed")]),
              "android": .object([
                "priority": .string("NORMAL"), "ttl": .string("3600s"), "collapse_key": .string("changed"),
              ]),
            ])
          ])
      }
    }
  }

  @Test func `a notification has arrived even if the message that wakes the app fails`() async throws {
    let replies = google { $0.json["message"]["notification"] == .null ? .response(500) : .response(200) }
    try await PushServer.run(responding: replies) { server, _ in
      try await TestApp.run(try await server.environment()) { app in
        try await app.signUp("ana").register(.android, token: "android")
        try await enqueue(1, in: app)
        try await app.worker(Channels(app.dependencies)).runOnce()
        #expect(server.received(at: Self.sendPath).count == 2)
        #expect(try await app.countQueue() == 0)
        #expect(try await app.countDead() == 0)
      }
    }
  }

  @Test func `a failed push counts, and its next attempt wakes no app`() async throws {
    try await TestApp.run { app in
      try await app.signUp("ana").register(.ios, token: token("a"))
      try await enqueue(1, in: app)
      let waking = Mutex(0)
      try await app.worker(
        Recorder { push, _ in
          if push.wakesApp { waking.withLock { $0 += 1 } }
          throw DeliveryFailure.down
        }
      ).runOnce()
      try await app.hurry()
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      #expect(waking.withLock { $0 } == 1)
      #expect(recorder.received.map(\.push.wakesApp) == [false])
    }
  }

  @Test func `neither a badge nor a webhook counts`() async throws {
    try await TestApp.run(["MUSTER_WEBHOOK_ALLOW_PRIVATE": "on"]) { app in
      let ana = try await app.signUp("ana")
      let other = try await ana.signInAgain()
      try await other.register(.ios, token: token("b"))
      try await ana.register(.webhook, token: "http://127.0.0.1:1/")
      try await ana.register(.log, token: "log")
      try await app.fileNotifications(2, for: ana)
      try await ana.markRead(#"{"all": true}"#)
      let recorder = Recorder()
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.map(\.push.type) == ["badge"])
      #expect(try await app.value("SELECT max(cardinality(woken_at)) FROM devices") == 0)
      try await enqueue(1, in: app)
      try await app.worker(recorder).runOnce()
      #expect(recorder.received.filter(\.push.wakesApp).map(\.token) == [token("b")])
    }
  }
}
