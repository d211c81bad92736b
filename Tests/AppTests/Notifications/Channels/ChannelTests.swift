import Crypto
import Foundation
import Logging
import NIOHTTP1
import Postgres
import TestSupport
import Testing

@testable import App

/// The channel that a notification takes.
@Suite struct ChannelTests {
  @Test func `each device is reached through its platform's channel`() async throws {
    try await WebhookSink.run { sink in
      try await PushServer.run(responding: { request, number in
        request.path == "/token" ? FCMTests.grant(number) : .response(200)
      }) { server, _ in
        let environment = try await server.environment().merging(["MUSTER_WEBHOOK_ALLOW_PRIVATE": "on"]) { $1 }
        let log = CapturedLog()
        try await TestApp.run(environment, logger: log.logger()) { app in
          let channels = Channels(app.dependencies)
          #expect(channels.gaps == [])
          let push = Push.ofEdit()
          try await channels.send(push, to: .iOS())
          try await channels.send(push, to: .iOS("abcd", .sandbox))
          try await channels.send(push, to: .android())
          #expect(
            server.received.map(\.path) == [
              "/3/device/\(Device.iOS().token)", "/sandbox/3/device/abcd", "/token",
              "/v1/projects/muster-test/messages:send",
            ])
          #expect(server.received.first?.header("apns-topic") == "com.example.muster")
          #expect(server.received.first?.header("apns-id") == push.id)
          let sealed = try WebhookSecret.sealed(sink.secret, keys: app.dependencies.refreshTokenKeys)
          try await channels.send(push, to: .webhook("http://\(sink.address)/", sealedSecrets: [sealed]))
          #expect(sink.deliveries.map(\.id) == [push.id])
          // None of it was logged: the log is only for devices of that platform.
          #expect(!log.text.contains(push.id))
          let device = Device(
            id: .new(), platform: .log, token: "x", environment: nil, topic: nil, registeredAt: .now(),
            sealedSecrets: [])
          try await channels.send(push, to: device)
          #expect(log.text.contains(push.id) && !log.text.contains("Picnic"))
          try await Channels(app.dependencies, printsPayloads: true).send(push, to: device)
          #expect(log.text.contains("Picnic"))
        }
      }
    }
  }

  @Test func `an old 410 of Apple removes no device that was registered since`() async throws {
    let found = Timestamp.now().adding(seconds: -3600).microseconds / 1000
    try await PushServer.run(responding: { _, number in
      number == 1 ? .response(410, #"{"reason": "Unregistered", "timestamp": \#(found)}"#) : .response(200)
    }) { server, _ in
      try await TestApp.run(try await server.environment()) { app in
        let ana = try await app.signUp("ana")
        let (kept, gone) = (String(repeating: "aa", count: 32), String(repeating: "bb", count: 32))
        for token in [kept, gone] { try await ana.register(.ios, token: token) }
        try await app.database.execute(
          "UPDATE devices SET created_at = now() - interval '1 day', registered_at = now() - interval '1 day'")
        // At its launch, the app registers the same token again.
        try await ana.register(.ios, token: kept, expecting: 200)
        try await app.database.execute(
          """
          INSERT INTO deliveries (notification_id, type, recipient_id, subject_id, payload, device_id, created_at)
          SELECT uuid_v7(), 'test', user_id, uuid_v7(), '{"message": "Hello"}', id, now() FROM devices
          """)
        try await app.worker(Channels(app.dependencies)).runOnce()
        let left = try await app.database.rows("SELECT token FROM devices")
        #expect(try left.map { try $0[0] as String } == [kept])
        // The push waits for its next attempt, and then arrives.
        try await app.hurry()
        try await app.worker(Channels(app.dependencies)).runOnce()
        #expect(server.received(at: kept).count == 2 && server.received(at: gone).count == 1)
        #expect(try await app.countQueue() == 0)
      }
    }
  }

  @Test func `deliveries to an unconfigured platform wait, and the worker says so on startup`() async throws {
    try await TestApp.run { app in
      let channels = Channels(app.dependencies)
      for (device, name) in [
        (Device.iOS(), "MUSTER_APNS_PRIVATE_KEY"), (Device.android(), "MUSTER_FCM_SERVICE_ACCOUNT"),
      ] {
        let refused = try await failure { try await channels.send(.ofEdit(), to: device) }
        #expect(refused.description == "\(name) is not set")
        #expect(refused.remedy == .later(seconds: nil))
        #expect(channels.gaps.filter { $0.contains(name) }.count == 1)
      }
      let worker = try await Program(
        Program.path("muster"), ["worker", "--once"], environment: Muster.environment(app.databaseURL))
      #expect(try await worker.exitStatus() == 0)
      for gap in channels.gaps { #expect(worker.standardError.contains(gap)) }
      // This test's configuration does not allow webhooks on this machine.
      let sealed = try WebhookSecret.sealed(
        "whsec_" + Data(count: 24).base64EncodedString(), keys: app.dependencies.refreshTokenKeys)
      let refused = try await failure {
        try await channels.send(.ofEdit(), to: .webhook("https://localhost/", sealedSecrets: [sealed]))
      }
      #expect(refused.description.contains("not public"))
    }
  }

  @Test func `a service account's key may be given as a file`() async throws {
    try await PushServer.run { server, _ in
      let path = FileManager.default.temporaryDirectory.appending(path: "muster-account-\(UUID().uuidString).json").path
      try await server.serviceAccount().write(toFile: path, atomically: true, encoding: .utf8)
      defer { try? FileManager.default.removeItem(atPath: path) }
      var environment = Muster.environment("postgresql://localhost/muster")
      environment["MUSTER_FCM_SERVICE_ACCOUNT"] = path
      let configuration = try await MusterConfiguration.load(environment: environment, file: nil)
      #expect(configuration.fcm?.project == "muster-test")
      #expect(configuration.fcm?.url == "https://fcm.googleapis.com")
      #expect(configuration.apns == nil)
    }
  }

  @Test func `Retry-After is read as seconds or as a date, and is an hour at most`() throws {
    let now = try #require(Timestamp(rfc3339: "1994-11-06T08:48:37Z"))
    for (text, seconds) in [
      ("1", 1), (" 120 ", 120), ("3600", 3600), ("3601", 3600), ("99999999999999999999", nil), ("0", nil), ("-5", nil),
      ("1.5", nil), ("", nil), ("Sun, 06 Nov 1994 08:49:37 GMT", 60), ("Sun, 06 Nov 1994 08:48:37 GMT", nil),
      ("Sat, 05 Nov 1994 08:49:37 GMT", nil), ("Mon, 07 Nov 1994 08:49:37 GMT", 3600),
      ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("Sun, 06 Nix 1994 08:49:37 GMT", nil),
      ("Sun, 32 Nov 1994 08:49:37 GMT", nil),
    ] as [(String, Int?)] {
      #expect(DeliveryFailure.Remedy.later(["Retry-After": text], now: now) == .later(seconds: seconds), "\(text)")
    }
    #expect(DeliveryFailure.Remedy.later([:], now: now) == .later(seconds: nil))
  }
}
