import Crypto
import CryptoExtras
import Foundation
import NIOHTTP1
import Postgres
import Testing

@testable import App

/// Google's push service, tested with a server that speaks its protocol.
@Suite struct FCMTests {
  private static let sendPath = "/v1/projects/muster-test/messages:send"

  /// A response of the service that issues access tokens.
  static func grant(_ number: Int, seconds: Int = 3599) -> PushServer.Reply {
    .response(200, #"{"access_token": "ya29.\#(number)", "expires_in": \#(seconds), "token_type": "Bearer"}"#)
  }

  static func sender(
    _ server: PushServer, _ outgoing: Outgoing, clock: StandingClock = StandingClock()
  ) async throws -> FCMSender {
    let account = try await server.serviceAccount()
    let settings = try #require(FCMSender.Settings(serviceAccount: account, url: server.url))
    return FCMSender(settings, client: outgoing.client, now: { clock.now })
  }

  /// Responds to pushes, and issues tokens.
  private func google(
    _ reply: @escaping @Sendable (_ number: Int) -> PushServer.Reply = { _ in .response(200, #"{"name": "x"}"#) }
  ) -> @Sendable (PushServer.Received, Int) -> PushServer.Reply {
    { request, number in request.path == "/token" ? Self.grant(number) : reply(number) }
  }

  @Test func `a push has everything Google requires, and a token obtained with the account's key`() async throws {
    try await PushServer.run(responding: google()) { server, outgoing in
      let sender = try await Self.sender(server, outgoing)
      let push = Push.ofEdit(createdAt: Timestamp.now().adding(seconds: -100))
      let device = Device.android()
      try await sender.send(push, to: device)

      let asked = try #require(server.received(at: "/token").first)
      #expect(asked.header("content-type") == "application/x-www-form-urlencoded")
      let prefix = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="
      #expect(asked.body.hasPrefix(prefix))
      let assertion = try TokenParts(asked.body.dropFirst(prefix.count))
      #expect(assertion.header["alg"].string == "RS256" && assertion.header["kid"].string == "0a1b2c")
      #expect(assertion.claims["iss"].string == "muster@muster-test.iam.gserviceaccount.com")
      #expect(assertion.claims["aud"].string == "\(server.url)/token")
      #expect(assertion.claims["scope"].string == "https://www.googleapis.com/auth/firebase.messaging")
      let issuedAt = try #require(assertion.claims["iat"].int)
      #expect(abs(Double(issuedAt) - Date().timeIntervalSince1970) < 60)
      #expect(assertion.claims["exp"].int == issuedAt + 3600)
      let key = try #require(try await IdentityServer.prepared.value.keys["first"]).publicKey
      let isValid = key.isValidSignature(
        _RSA.Signing.RSASignature(rawRepresentation: assertion.signature), for: assertion.signed,
        padding: .insecurePKCS1v1_5)
      #expect(isValid)

      let request = try #require(server.received(at: Self.sendPath).first)
      #expect(server.received.count == 2)
      #expect(request.path == Self.sendPath)
      #expect(request.header("authorization") == "Bearer ya29.1")
      #expect(request.header("content-type") == "application/json")
      #expect(request.json.keys == ["message"])
      let message = request.json["message"]
      #expect(message.keys == ["token", "notification", "data", "android"])
      #expect(message["token"].string == device.token)
      #expect(message["notification"] == .object(["body": .string("“Picnic” has changed: the time, the note.")]))
      let data = message["data"]
      #expect(data.keys == ["notificationId", "type", "eventId", "title", "changes", "loc-key", "loc-args"])
      #expect(data["loc-key"].string == "event-updated")
      #expect(data["loc-args"].string == #"["Picnic","the time, the note"]"#)
      #expect(data["notificationId"].string == push.id && data["eventId"].string == push.subject)
      #expect(data["type"].string == "event-updated" && data["title"].string == "Picnic")
      // Google accepts only strings.
      for word in ["startTime", "2030-05-01T19:00:00Z", "note", "New"] {
        #expect(data["changes"].string?.contains("\"\(word)\"") == true, "\(data)")
      }
      let android = message["android"]
      #expect(android.keys == ["priority", "ttl", "notification"])
      #expect(android["priority"].string == "HIGH")
      let ttl = try #require(android["ttl"].string)
      #expect(ttl.hasSuffix("s") && (86_200...86_300).contains(Int(ttl.dropLast()) ?? 0))
      #expect(android["notification"]["tag"].string == "event-updated:\(push.subject)")
    }
  }

  @Test func `an app that has the sentences gets their keys instead, as names of Android's resources`() async throws {
    try await PushServer.run(responding: google()) { server, outgoing in
      let sender = try await Self.sender(server, outgoing)
      let event = Event.ID.new()
      let start = Timestamp.now().adding(seconds: 600)
      try await sender.send(Push(.eventReminder(event, "Picnic", start: start)), to: .android(localizes: true))
      try await sender.send(.ofEdit(), to: .android(localizes: true))
      let messages = server.received(at: Self.sendPath).map { $0.json["message"] }
      // Android prefers the sentence, if there is one.
      for message in messages { #expect(message.keys == ["token", "data", "android"]) }
      let reminder = messages[0]["android"]["notification"]
      #expect(reminder.keys == ["body_loc_key", "body_loc_args"])
      #expect(reminder["body_loc_key"].string == "event_reminder_soon")
      #expect(reminder["body_loc_args"] == .array([.string("Picnic")]))
      #expect(messages[0]["data"]["loc-key"].string == "event-reminder.soon")
      #expect(messages[0]["data"]["message"].string == "“Picnic” starts soon.")
      #expect(messages[1]["android"]["notification"].keys == ["tag", "body_loc_key", "body_loc_args"])
    }
  }

  @Test func `Google does not keep a late push for a phone that is off`() async throws {
    try await PushServer.run(responding: google()) { server, outgoing in
      let sender = try await Self.sender(server, outgoing)
      let old = Timestamp.now().adding(seconds: -90_000)
      try await sender.send(Push(.eventCancelled(Event.ID.new(), "Picnic", by: .new()), createdAt: old), to: .android())
      let android = try #require(server.received(at: Self.sendPath).first).json["message"]["android"]
      #expect(android["ttl"].string == "0s")
      #expect(android.keys == ["priority", "ttl"])
    }
  }

  @Test func `a token is used until shortly before it expires`() async throws {
    try await PushServer.run(responding: google()) { server, outgoing in
      let clock = StandingClock()
      let sender = try await Self.sender(server, outgoing, clock: clock)
      // It is replaced five minutes before it expires.
      for (minutes, tokens) in [(0, 1), (54, 1), (1, 2), (1, 2)] {
        clock.advance(minutes: minutes)
        try await sender.send(.ofEdit(), to: .android())
        #expect(server.received(at: "/token").count == tokens)
      }
      #expect(server.received.last?.header("authorization") == "Bearer ya29.2")
    }
  }

  @Test func `without a token a push fails, and a later one gets a token`() async throws {
    try await PushServer.run(responding: { request, number in
      guard request.path == "/token" else { return .response(200) }
      switch number {
      case 1: return .response(503, "", ["retry-after": "12"])
      case 2: return .response(400, #"{"error": "invalid_grant", "error_description": "muster@muster-test"}"#)
      case 3: return .response(429, #"{"error": "quota"}"#)
      case 4: return .response(200, #"{"access_token": 5}"#)
      default: return Self.grant(number)
      }
    }) { server, outgoing in
      let sender = try await Self.sender(server, outgoing)
      let results: [(String, Int?)] = [
        ("Google's token service returned 503", 12), ("Google's token service returned 400 invalid_grant", nil),
        ("Google's token service returned 429 quota", 60), ("Google's token service returned no token", nil),
      ]
      for (description, seconds) in results {
        let refused = try await failure { try await sender.send(.ofEdit(), to: .android()) }
        #expect(refused.description == description)
        #expect(refused.remedy == .later(seconds: seconds))
      }
      try await sender.send(.ofEdit(), to: .android())
      #expect(server.received(at: Self.sendPath).count == 1)
    }
  }

  @Test func `only a service account's key is accepted`() async throws {
    try await PushServer.run { server, _ in
      let good = try await server.serviceAccount()
      let settings = try #require(FCMSender.Settings(serviceAccount: good, url: server.url))
      #expect(settings.project == "muster-test")
      for (part, other) in [
        ("muster-test\"", "../x\""), ("project_id", "project"), ("https://", "http://"), ("BEGIN", "BEGUN"),
        ("client_email", "email"), ("private_key_id", "id"), ("{", "["),
      ] {
        let bad = good.replacing(part, with: other)
        #expect(bad != good && FCMSender.Settings(serviceAccount: bad, url: server.url) == nil, "\(part)")
      }
    }
  }
}
