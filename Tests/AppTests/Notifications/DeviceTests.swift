import Foundation
import NIOCore
import Postgres
import Testing

@testable import App

@Suite struct DeviceTests {
  // MARK: Registering

  @Test func `a device that is registered repeatedly is kept once, and shown without its token`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let token = String(repeating: "0aF9", count: 16)
      let first = try await ana.register(.ios, token: token, #", "name": "Ana's iPhone", "topic": "com.example.app""#)
      let id = try #require(first.json["id"].string)
      #expect(
        first.json.keys == ["id", "platform", "environment", "topic", "name", "localizes", "createdAt", "current"])
      #expect(first.json["environment"].string == "production" && first.json["current"].bool == true)
      let again = try await ana.register(
        .ios, token: token.uppercased(), #", "name": "Ana's iPhone", "topic": "com.example.app""#, expecting: 200)
      #expect(again.json == first.json)
      // A registration is complete: omitted members become null.
      let other = try await ana.register(.ios, token: token, #", "environment": "sandbox""#, expecting: 200).json
      #expect(other["id"].string == id && other["environment"].string == "sandbox")
      #expect(other["name"] == .null && other["topic"] == .null)
      for (more, localizes) in [(#", "localizes": true"#, true), ("", false)] {
        let response = try await ana.register(.ios, token: token, #", "environment": "sandbox""# + more, expecting: 200)
        #expect(response.json["localizes"].bool == localizes)
      }
      let list = try await ana.get("devices")
      #expect(list["items"] == .array([other]) && list["timestamp"] == .null)

      let second = try await ana.signInAgain()
      let seen = try await second.get("devices")["items"].array
      #expect(seen.map { $0["current"].bool } == [false])
      // Another session of the same user takes the device over, with its id.
      #expect(try await second.register(.ios, token: token, expecting: 200).json["id"].string == id)
      #expect(try await ana.devices().map { $0["current"].bool } == [false])
      #expect(try await ana.stale { try await ana.register(token: "x") } == [])
    }
  }

  private static let tokens: [(platform: Device.Platform, token: String, isRight: Bool)] = [
    (.ios, String(repeating: "ab", count: 32), true), (.ios, String(repeating: "ab", count: 100), true),
    (.ios, String(repeating: "ab", count: 31), false), (.ios, String(repeating: "xy", count: 32), false),
    (.android, "dQw4w9WgXcQ:APA91b-_0", true), (.android, "a b", false), (.android, "a%20b", false),
    (.log, "anything://at-all", true), (.log, "é", false),
    (.webhook, "https://hooks.example.com/muster?key=1", true), (.webhook, "https://[2606:4700::1111]/x", true),
    (.webhook, "HTTPS://hooks.example.com:8443", true), (.webhook, "http://hooks.example.com", false),
    (.webhook, "ftp://hooks.example.com", false), (.webhook, "hooks.example.com", false), (.webhook, "https://", false),
    (.webhook, "https://me@hooks.example.com", false), (.webhook, "https://:pw@hooks.example.com", false),
    (.webhook, "https://hooks.example.com/#part", false), (.webhook, "https://localhost/x", false),
    (.webhook, "https://a.localhost", false), (.webhook, "https://127.0.0.1", false),
    (.webhook, "https://127.1", false),
    (.webhook, "https://127.0.0.%31/", false),
    (.webhook, "https://2130706433", false), (.webhook, "https://0x7f000001", false),
    (.webhook, "https://10.1.2.3", false),
    (.webhook, "https://169.254.169.254/latest", false), (.webhook, "https://[::1]/", false),
    (.webhook, "https://[::ffff:10.0.0.1]/", false), (.webhook, "https://[fe80::1]/", false),
    (.webhook, "https://8.8.8.8/x", true), (.webhook, "https://8.8.8.8:65535/x", true),
    (.webhook, "https://8.8.8.8:65536/x", false), (.webhook, "https://8.8.8.8:99999/", false),
    (.webhook, "https://8.8.8.8:0/", false), (.webhook, "https://[]/", false),
    (.webhook, "https://192.168.0.1.", false),
    (.webhook, "https://x.example/" + String(repeating: "a", count: 1007), false),
  ]

  @Test func `a token must have its provider's format`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (platform, token, isRight) in Self.tokens {
        let response = try await ana.register(platform, token: token, expecting: isRight ? 201 : 422)
        #expect(response.badFields == (isRight ? [] : ["token"]), "\(platform) \(token)")
      }
    }
  }

  @Test func `private addresses and plain http can be allowed`() async throws {
    try await TestApp.run(["MUSTER_WEBHOOK_ALLOW_PRIVATE": "on"]) { app in
      let ana = try await app.signUp("ana")
      for url in ["http://127.0.0.1:9/x", "https://10.0.0.1", "http://localhost"] {
        try await ana.register(.webhook, token: url)
      }
      for url in ["ftp://127.0.0.1", "http://me:pw@127.0.0.1", "http://127.0.0.1/#x"] {
        #expect(try await ana.register(.webhook, token: url, expecting: 422).badFields == ["token"])
      }
    }
  }

  @Test func `a user has at most twenty devices, even if they register them at once`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await app.signUp("ana")
      let statuses = try await app.race(30) {
        try await ana.send("PUT", "devices", #"{"platform": "log", "token": "t\#($0)"}"#)
      }
      #expect(statuses == [201: 20, 409: 10])
      let devices = try await ana.devices()
      #expect(devices.count == 20)
      #expect(try await ana.register(token: "new", expecting: 409).problem == "too-many-devices")
      try await ana.removeDevice(try #require(devices[0]["id"].string))
      try await ana.register(token: "new")
      try await ana.register(token: "new", expecting: 200)
    }
  }

  // MARK: Ownership

  @Test func `a phone's token belongs to the last user who registers it, without the old deliveries`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let token = String(repeating: "ab", count: 32)
      let id = try #require(try await ana.register(.ios, token: token).json["id"].string)
      let other = try await ana.register(token: "other").json["id"].string ?? ""
      for device in [id, other] { try await queue(for: device, of: ana, in: app) }
      let taken = try await ben.register(.ios, token: token).json
      #expect(taken["id"].string != id)
      #expect(try await ana.devices().compactMap { $0["id"].string } == [other])
      #expect(try await ben.devices().count == 1)
      #expect(try await app.waitingDevices() == [other])
      try await ana.removeDevice(id, expecting: 404)
      try await app.forgetDeliveries()
    }
  }

  @Test func `each user who registers a webhook's URL has a device and a secret of their own`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let url = "https://hooks.example.com/x"
      let first = try await ana.register(.webhook, token: url).json
      try await queue(for: try #require(first["id"].string), of: ana, in: app)
      let second = try await ben.register(.webhook, token: url).json
      #expect(second["id"].string != first["id"].string)
      #expect(first["secret"].string != nil && second["secret"].string != nil && first["secret"] != second["secret"])
      #expect(try await ana.devices().compactMap { $0["id"].string } == [first["id"].string])
      #expect(try await ben.devices().compactMap { $0["id"].string } == [second["id"].string])
      #expect(try await app.waitingDevices() == [first["id"].string])
      // Registering it again does not add a device.
      #expect(try await ana.register(.webhook, token: url, expecting: 200).json["id"] == first["id"])
      // Rotating one leaves the other alone.
      try await ana.register(.webhook, token: url, #", "rotateSecret": true"#, expecting: 200)
      let rotated: Int? = try await app.value("SELECT count(*) FROM devices WHERE sealed_previous_secret IS NOT NULL")
      #expect(rotated == 1)
      try await app.forgetDeliveries()
    }
  }

  @Test func `when many users register one phone's token at once, one has it`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      var phones: [Phone] = []
      for number in 0..<8 { phones.append(try await app.signUp("user\(number)")) }
      let people = phones
      for round in 0..<5 {
        let statuses = try await app.race(32) {
          let body = #"{"platform": "android", "token": "token-\#(round)"}"#
          return try await people[$0 % 8].send("PUT", "devices", body)
        }
        #expect(statuses.keys.allSatisfy { $0 == 200 || $0 == 201 } && statuses[201, default: 0] > 0, "\(statuses)")
        let owners: Int? = try await app.value("SELECT count(*) FROM devices")
        #expect(owners == round + 1)
      }
      var shown = 0
      for phone in people { shown += try await phone.devices().count }
      #expect(shown == 5)
    }
  }

  @Test func `any phone of its owner removes a device, with its deliveries`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let id = try #require(try await ana.register(token: "ana").json["id"].string)
      try await queue(for: id, of: ana, in: app)
      try await ana.signInAgain().removeDevice(id.uppercased())
      #expect(try await ana.devices().isEmpty)
      #expect(try await app.waitingDevices().isEmpty)
      try await ana.removeDevice(id, expecting: 404)
    }
  }

  // MARK: Secrets

  @Test func `a webhook's secret is shown once, and the previous one stays valid for a day`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let url = "https://hooks.example.com/x"
      let first = try await ana.register(.webhook, token: url)
      #expect(first.header("Cache-Control") == "no-store")
      let old = try #require(first.json["secret"].string)
      #expect(try await app.secrets() == [old].signing)
      let again = try await ana.register(.webhook, token: url, expecting: 200)
      #expect(again.json.keys.contains("secret") == false)
      #expect(try await ana.devices()[0].keys.contains("secret") == false)
      #expect(try await app.secrets() == [old].signing)
      let rotated = try await ana.register(.webhook, token: url, #", "rotateSecret": true"#, expecting: 200)
      let new = try #require(rotated.json["secret"].string)
      #expect(rotated.json["id"] == first.json["id"])
      #expect(new != old)
      #expect(try await app.secrets() == [new, old].signing)
      let hours = try #require(
        try await app.value(
          "SELECT extract(epoch FROM previous_secret_until - now())::double precision / 3600 FROM devices",
          as: Double.self))
      #expect((23.9...24).contains(hours))
      for secret in [old, new] {
        let isThere: Bool? = try await app.value(
          """
          SELECT position(convert_to(\(secret), 'UTF8') IN sealed_secret) > 0
            OR position(convert_to(\(secret), 'UTF8') IN sealed_previous_secret) > 0
          FROM devices
          """)
        #expect(isThere == false)
      }
      // Only webhooks have a secret.
      let logged = try await ana.register(token: "x")
      #expect(logged.json.keys.contains("secret") == false)
    }
  }

  // MARK: The end of the session

  @Test func `a device is removed with its session, whatever ends it`() async throws {
    try await TestApp.run { app in
      let ends: [(String, @Sendable (Phone, Phone) async throws -> Void)] = [
        ("logging out", { phone, _ in _ = try await phone.send("POST", "auth/logout") }),
        (
          "from another phone", { phone, other in _ = try await other.send("DELETE", "auth/sessions/\(phone.session)") }
        ),
        (
          "a new password",
          { _, other in
            let body = #"{"currentPassword": "\#(other.password)", "newPassword": "\#(other.password)"}"#
            let changed = try await other.send("POST", "auth/password", body)
            #expect(changed.status == 204, "\(changed.body)")
          }
        ),
        (
          "a stolen token",
          { phone, _ in
            let stolen = phone.refreshToken
            for _ in 1...2 { try await phone.refresh() }
            let refused = try await phone.refresh(stolen)
            #expect(refused.problem == "session-ended")
          }
        ),
      ]
      for (number, (name, end)) in ends.enumerated() {
        let other = try await app.signUp("user\(number)")
        let phone = try await other.signInAgain()
        let kept = try await other.register(token: "other\(number)").json["id"].string ?? ""
        let gone = try await phone.register(token: "phone\(number)").json["id"].string ?? ""
        for device in [kept, gone] { try await queue(for: device, of: other, in: app) }
        try await end(phone, other)
        #expect(try await other.devices().compactMap { $0["id"].string } == [kept], "\(name)")
        #expect(try await app.waitingDevices() == [kept], "\(name)")
        try await app.forgetDeliveries()
        try await app.takeNotifications()
      }
    }
  }

  @Test func `a password reset removes all devices, and so does the deletion of the account`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for name in ["a", "b"] { try await ana.register(token: name) }
      _ = try await app.askForReset("ana@example.com")
      let reset = try await app.confirmReset(try await app.takeToken("mail-reset-password"), ana.password)
      #expect(reset.status == 204, "\(reset.body)")
      #expect(try await app.value("SELECT count(*) FROM devices") == 0)
      let again = try await ana.signInAgain()
      try await again.register(token: "a")
      _ = try await again.send("PUT", "notification-preferences", #"{"event-updated": false}"#)
      try await again.deleteAccount()
      for table in ["devices", "muted_notifications"] {
        #expect(try await app.value("SELECT count(*) FROM \(unescaped: table)") == 0, "\(table)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a session that was ended by hand has no devices`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let other = try await ana.signInAgain()
      try await ana.register(token: "ana")
      let session = try ana.session
      try await app.database.execute("UPDATE sessions SET ended_at = clock_timestamp() WHERE id = \(session)")
      #expect(try await other.devices().isEmpty)
      // The device can be registered again.
      try await other.register(token: "ana", expecting: 200)
      #expect(try await other.devices().count == 1)
    }
  }

  @Test func `a session that ends during registrations keeps no device`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<24 {
          group.addTask {
            let other = try await app.signUp("ana\(round)")
            let phone = try await other.signInAgain()
            async let registered = app.race(4) {
              try await phone.send("PUT", "devices", #"{"platform": "log", "token": "\#(round)-\#($0)"}"#)
            }
            let session = try phone.session
            let password = #"{"currentPassword": "\#(other.password)", "newPassword": "\#(other.password)"}"#
            let ends: [(Phone, String, String, String?)] = [
              (phone, "POST", "auth/logout", nil), (other, "DELETE", "auth/sessions/\(session)", nil),
              (other, "POST", "auth/password", password),
            ]
            let (ender, method, path, body) = ends[round % ends.count]
            async let ended = ender.send(method, path, body)
            let statuses = try await registered
            #expect(statuses.keys.allSatisfy { [201, 401].contains($0) }, "\(statuses)")
            let response = try await ended
            #expect(response.status == 204, "\(response.body)")
          }
        }
        try await group.waitForAll()
      }
      #expect(try await app.value("SELECT count(*) FROM devices") == 0)
      try await app.takeNotifications()
    }
  }

  // MARK: The export

  @Test func `the export has devices, muted types and the inbox, but no secret`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let secret = try #require(
        try await ana.register(.webhook, token: "https://hooks.example.com/x", #", "name": "Hook""#).json["secret"]
          .string)
      _ = try await ana.send("PUT", "notification-preferences", #"{"event-updated": false}"#)
      let response = try await ana.send("GET", "users/me/export")
      #expect(!response.body.contains(secret) && !response.body.contains("whsec_"))
      let export = response.json
      #expect(export["devices"].array.map { $0["token"].string } == ["https://hooks.example.com/x"])
      #expect(
        export["devices"][0].keys == [
          "id", "sessionId", "platform", "token", "environment", "topic", "name", "localizes", "createdAt",
          "registeredAt",
        ])
      #expect(export["mutedNotifications"] == .array([.object(["type": .string("event-updated")])]))
      #expect(export["notifications"].array.map { $0["payload"]["type"].string } == ["friend-accepted"])
      #expect(export["notifications"][0]["person"]["username"].string == "ben")
      // Items that name a hidden user are left out, those that name no user are not.
      try await app.service.change {
        $0.notify(ana.userID, about: .waitlistPromoted(.new(), "Picnic", guest: ana.userID))
      }
      try await app.fanOut()
      try await ana.block(ben)
      let hidden = try await ana.get("users/me/export")["notifications"].array
      #expect(hidden.map { $0["type"].string } == ["waitlist-promoted"])
      #expect(hidden[0]["person"] == .null)
      try await app.takeNotifications()
    }
  }

  /// Queues a delivery for one device.
  private func queue(for device: String, of phone: Phone, in app: TestApp) async throws {
    try await app.database.execute(
      """
      INSERT INTO deliveries (notification_id, type, recipient_id, subject_id, payload, device_id, created_at)
      VALUES (
        uuid_v7(), 'event-cancelled', \(phone.userID), uuid_v7(), \(JSONDocument("{}")), \(Device.ID(device)), now()
      )
      """)
  }
}

extension Phone {
  /// - Parameter more: further members of the body, each after a comma.
  @discardableResult
  func register(
    _ platform: Device.Platform = .log, token: String, _ more: String = "", expecting status: Int = 201,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act(
      "registerDevice", [:], body: #"{"platform": "\#(platform.rawValue)", "token": "\#(token)"\#(more)}"#, status,
      sourceLocation)
  }

  @discardableResult
  func removeDevice(
    _ id: String, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("removeDevice", ["device": id], status, sourceLocation)
  }

  func devices() async throws -> [JSON] {
    try await get("devices")["items"].array
  }
}

extension TestApp {
  /// The devices that deliveries wait for.
  fileprivate func waitingDevices() async throws -> [String?] {
    try await database.rows("SELECT device_id FROM deliveries ORDER BY id")
      .map { (try $0["device_id"] as Device.ID).description }
  }

  /// Signatures made with the current secrets of the only webhook.
  fileprivate func secrets() async throws -> [String] {
    let row = try #require(
      try await database.first(
        """
        SELECT sealed_secret,
          CASE WHEN previous_secret_until > now() THEN sealed_previous_secret END AS sealed_previous_secret
        FROM devices WHERE platform = 'webhook'
        """))
    let sealed: [Data?] = [try row["sealed_secret"], try row["sealed_previous_secret"]]
    return try sealed.compactMap(\.self).map {
      try WebhookSecret.opened($0, keys: dependencies.refreshTokenKeys).signature
    }
  }
}

extension [String] {
  /// Signatures made with each of these secrets.
  fileprivate var signing: [String] { compactMap { WebhookSecret($0)?.signature } }
}

extension WebhookSecret {
  fileprivate var signature: String {
    headers(id: "x", body: ByteBuffer(string: "{}"), now: Timestamp(microseconds: 0))[2].value
  }
}
