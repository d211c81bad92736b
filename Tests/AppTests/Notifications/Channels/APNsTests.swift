import Crypto
import Foundation
import JWTKit
import Postgres
import Synchronization
import Testing

@testable import App

/// Apple's push service, tested with a server that speaks its protocol.
@Suite struct APNsTests {
  private static let key = P256.Signing.PrivateKey()

  static func sender(
    _ server: PushServer, _ outgoing: Outgoing, topic: String? = "com.example.muster",
    deadline: Duration = .seconds(10), clock: StandingClock = StandingClock()
  ) throws -> APNsSender {
    let settings = APNsSender.Settings(
      teamID: "TEAM", keyID: "KEY", key: try ES256PrivateKey(pem: Self.key.pemRepresentation), topic: topic,
      url: server.url, sandboxURL: "\(server.url)/sandbox")
    return APNsSender(settings, client: outgoing.client, deadline: deadline, now: { clock.now })
  }

  /// The provider token of a request, verified as Apple verifies it.
  static func token(_ request: PushServer.Received) throws -> String {
    let authorization = try #require(request.header("authorization"))
    #expect(authorization.hasPrefix("bearer "))
    let text = String(authorization.dropFirst("bearer ".count))
    let parts = try TokenParts(text)
    #expect(parts.header["alg"].string == "ES256" && parts.header["kid"].string == "KEY")
    #expect(parts.claims.keys == ["iss", "iat"])
    #expect(parts.claims["iss"].string == "TEAM")
    let issuedAt = Double(try #require(parts.claims["iat"].int))
    #expect(abs(issuedAt - Date().timeIntervalSince1970) < 60)
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: parts.signature)
    #expect(Self.key.publicKey.isValidSignature(signature, for: parts.signed))
    return text
  }

  @Test func `a push has everything Apple requires`() async throws {
    try await PushServer.run { server, outgoing in
      let sender = try Self.sender(server, outgoing)
      var push = Push.ofEdit()
      push.badge = 7
      let device = Device.iOS()
      try await sender.send(push, to: device)
      let request = try #require(server.received.first)
      #expect(server.received.count == 1)
      #expect(request.path == "/3/device/\(device.token)")
      _ = try Self.token(request)
      #expect(request.header("content-type") == "application/json")
      #expect(request.header("apns-id") == push.id)
      #expect(request.header("apns-topic") == "com.example.muster")
      #expect(request.header("apns-push-type") == "alert")
      #expect(request.header("apns-priority") == "10")
      #expect(request.header("apns-expiration") == "\(push.createdAt.microseconds / 1_000_000 + 86_400)")
      #expect(request.header("apns-collapse-id") == "event-updated:\(push.subject)")
      let body = request.json
      #expect(
        body.keys == ["aps", "notificationId", "type", "eventId", "title", "changes", "loc-key", "loc-args"])
      #expect(
        body["aps"].keys == [
          "alert", "badge", "category", "interruption-level", "mutable-content", "sound", "thread-id",
        ])
      #expect(body["aps"]["badge"].int == 7 && body["aps"]["mutable-content"].int == 1)
      #expect(body["aps"]["category"].string == "event-updated")
      #expect(body["aps"]["interruption-level"].string == "active")
      #expect(body["aps"]["alert"]["body"].string == "“Picnic” has changed: the time, the note.")
      #expect(body["aps"]["sound"].string == "default")
      #expect(body["aps"]["thread-id"].string == push.subject)
      #expect(body["aps"]["alert"].keys == ["body"])
      #expect(body["loc-key"].string == "event-updated")
      #expect(body["loc-args"].array.map(\.string) == ["Picnic", "the time, the note"])
      #expect(body["notificationId"].string == push.id)
      #expect(body["type"].string == "event-updated")
      #expect(body["eventId"].string == push.subject)
      #expect(body["changes"].array.map { $0["field"].string } == ["startTime", "note"])
    }
  }

  @Test func `an app that has the sentences gets their keys, and the sentence for its extension`() async throws {
    try await PushServer.run { server, outgoing in
      let sender = try Self.sender(server, outgoing)
      let device = Device.iOS(localizes: true)
      try await sender.send(.ofEdit(), to: device)
      let body = try #require(server.received.first).json
      #expect(body["aps"]["alert"].keys == ["loc-key", "loc-args"])
      #expect(body["aps"]["alert"]["loc-key"] == body["loc-key"] && body["loc-key"].string == "event-updated")
      #expect(body["aps"]["alert"]["loc-args"] == body["loc-args"] && body["loc-args"].array.count == 2)
      #expect(body["message"].string == "“Picnic” has changed: the time, the note.")
      // What the message is made from is left out first.
      let long = String(repeating: "long ", count: 250)
      try await sender.send(.ofEdit(long), to: device)
      let shorter = try #require(server.received.last).json
      #expect(shorter["aps"]["alert"]["loc-args"][0].string == long)
      #expect(shorter.keys == ["aps", "notificationId", "type", "eventId"])
      // Arguments are never cut: their sentence is.
      try await sender.send(.ofEdit(String(repeating: "long ", count: 1000)), to: device)
      let cut = try #require(server.received.last).json
      #expect(cut["aps"]["alert"].keys == ["body"] && cut["aps"]["alert"]["body"].string?.hasSuffix("…") == true)
      // A type of a newer release has only its sentence.
      let unknown = Push(
        id: UUID().uuidString.lowercased(), type: "new-type", subject: Event.ID.new().description,
        recipient: User.ID.new().description, payload: #"{"type": "new-type", "message": "News."}"#, createdAt: .now())
      try await sender.send(unknown, to: device)
      #expect(server.received.last?.json["aps"]["alert"] == .object(["body": .string("News.")]))
    }
  }

  @Test func `a badge-only push sets the number and shows nothing`() async throws {
    try await PushServer.run { server, outgoing in
      var push = Push(
        id: UUID().uuidString.lowercased(), type: "badge", subject: Device.ID.new().description,
        recipient: User.ID.new().description, payload: "{}", createdAt: .now())
      for number in [3, 0] {
        push.badge = number
        try await Self.sender(server, outgoing).send(push, to: .iOS(localizes: true))
        let request = try #require(server.received.last)
        #expect(request.body == #"{"aps":{"badge":\#(number)}}"#)
        #expect(request.header("apns-push-type") == "alert")
        #expect(request.header("apns-priority") == "5")
        #expect(request.header("apns-collapse-id") == "badge")
        #expect(request.header("apns-id") == push.id)
        #expect(request.header("apns-expiration") == "\(push.createdAt.microseconds / 1_000_000 + 86_400)")
      }
    }
  }

  @Test func `only edits replace each other, and a reminder expires after an hour`() async throws {
    try await PushServer.run { server, outgoing in
      let sender = try Self.sender(server, outgoing)
      try await sender.send(Push(.eventCancelled(Event.ID.new(), "Picnic", by: .new())), to: .iOS())
      let now = Timestamp.now()
      let reminder = Push(
        id: UUID().uuidString.lowercased(), type: "event-reminder", subject: Event.ID.new().description,
        recipient: User.ID.new().description, payload: #"{"type": "event-reminder", "message": "Soon."}"#,
        createdAt: now)
      try await sender.send(reminder, to: .iOS())
      #expect(server.received.map { $0.header("apns-collapse-id") } == [nil, nil])
      #expect(server.received.last?.header("apns-expiration") == "\(now.microseconds / 1_000_000 + 3600)")
    }
  }

  @Test func `the latest push about an invitation or about one guest's answer replaces the others`() throws {
    let (event, ana, ben) = (Event.ID.new(), User.ID.new(), User.ID.new())
    func person(_ id: User.ID) -> Person { Person(id: id, username: "a", displayName: "A", pictureURL: nil) }
    func guest(_ id: User.ID) -> Notice.NamedGuest { Notice.NamedGuest(person(id)) }
    func id(_ notice: Notice) -> String? { Push(notice).collapseID }
    let invited = try #require(id(.eventInvited(event, "Picnic", by: person(ana))))
    #expect(id(.invitationWithdrawn(event, "Picnic")) == invited)
    let answers = [Invitation.Status.going, .declined].map { id(.guestAnswered(event, "P", guest(ana), $0)) }
    #expect(answers[0] == answers[1] && answers[0] != id(.guestAnswered(event, "P", guest(ben), .going)))
    // Apple accepts 64 bytes.
    for id in [invited, try #require(answers[0])] { #expect(id.utf8.count <= 64, "\(id)") }
  }

  @Test func `a device's own environment and topic are used`() async throws {
    try await PushServer.run { server, outgoing in
      try await Self.sender(server, outgoing).send(.ofEdit(), to: .iOS("abcd", .sandbox, topic: "com.example.other"))
      let request = try #require(server.received.first)
      #expect(request.path == "/sandbox/3/device/abcd")
      #expect(request.header("apns-topic") == "com.example.other")
      let untitled = try await failure {
        try await Self.sender(server, outgoing, topic: nil).send(.ofEdit(), to: .iOS())
      }
      #expect(untitled.description.contains("MUSTER_APNS_TOPIC"))
      #expect(untitled.remedy == .later(seconds: nil))
      // These would change the path of the request.
      for token in ["", "../../x", "abcd?x", "zz"] {
        let refused = try await failure { try await Self.sender(server, outgoing).send(.ofEdit(), to: .iOS(token)) }
        #expect(refused.remedy == .forgettingTheDevice)
      }
      #expect(server.received.count == 1)
    }
  }

  @Test func `a token is used for forty minutes`() async throws {
    try await PushServer.run { server, outgoing in
      let clock = StandingClock()
      let sender = try Self.sender(server, outgoing, clock: clock)
      for minutes in [0, 39, 2] {
        clock.advance(minutes: minutes)
        try await sender.send(.ofEdit(), to: .iOS())
      }
      let tokens = try server.received.map { try Self.token($0) }
      #expect(tokens.count == 3)
      #expect(tokens[0] == tokens[1] && tokens[1] != tokens[2])
    }
  }

  @Test func `when many pushes have their token refused, only one new token is made`() async throws {
    let stale = Stale()
    try await PushServer.run(responding: { request, _ in
      stale.isFirst(request.header("authorization"))
        ? .response(403, #"{"reason": "ExpiredProviderToken"}"#) : .response(200)
    }) { server, outgoing in
      let sender = try Self.sender(server, outgoing)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<50 { group.addTask { try await sender.send(.ofEdit(), to: .iOS()) } }
        try await group.waitForAll()
      }
      #expect(Set(server.received.map { $0.header("authorization") }).count == 2)
    }
  }

  /// Remembers the first token.
  private final class Stale: Sendable {
    private let first = Mutex<String?>(nil)

    func isFirst(_ token: String?) -> Bool {
      first.withLock { first in
        if first == nil { first = token }
        return first == token
      }
    }
  }

  @Test func `a malformed response is reported, but not quoted`() async throws {
    try await PushServer.run(responding: { _, number in
      number == 1 ? .response(502, "<html>token</html>") : .response(500, #"{"reason": "a sentence, of whom?"}"#)
    }) { server, outgoing in
      let sender = try Self.sender(server, outgoing)
      for status in [502, 500] {
        let refused = try await failure { try await sender.send(.ofEdit(), to: .iOS()) }
        #expect(refused.description == "APNs returned \(status)")
        #expect(refused.remedy == .later(seconds: 10))
      }
    }
  }

  @Test func `a token that Apple found invalid before the app registered it again is kept`() async throws {
    let registered = Timestamp(microseconds: 1_777_658_400_000_000)
    let cases: [(body: String, remedy: DeliveryFailure.Remedy)] = [
      (#"{"reason": "Unregistered", "timestamp": 1777658399999}"#, .later(seconds: nil)),
      (#"{"reason": "Unregistered", "timestamp": 1777658400000}"#, .forgettingTheDevice),
      (#"{"reason": "Unregistered", "timestamp": 1777658400001}"#, .forgettingTheDevice),
      (#"{"reason": "ExpiredToken", "timestamp": 0}"#, .later(seconds: nil)),
      (#"{"reason": "Unregistered"}"#, .forgettingTheDevice),
      (#"{"reason": "Unregistered", "timestamp": "yesterday"}"#, .forgettingTheDevice),
    ]
    try await PushServer.run(responding: { _, number in .response(410, cases[number - 1].body) }) { server, outgoing in
      let sender = try Self.sender(server, outgoing)
      for (body, remedy) in cases {
        let refused = try await failure { try await sender.send(.ofEdit(), to: .iOS(registeredAt: registered)) }
        #expect(refused.remedy == remedy, "\(body)")
      }
    }
  }

  @Test func `a silent server times out and does not delay other pushes`() async throws {
    let unanswered = Push.ofEdit()
    try await PushServer.run(responding: { request, _ in
      request.header("apns-id") == unanswered.id ? .silence : .response(200)
    }) { server, outgoing in
      let impatient = try Self.sender(server, outgoing, deadline: .seconds(2))
      // On a busy machine, the time may be over before the server has the push.
      while server.received.isEmpty {
        await #expect(throws: (any Error).self) { try await impatient.send(unanswered, to: .iOS()) }
      }
      // The same connections, with time for a busy machine.
      try await Self.sender(server, outgoing).send(.ofEdit(), to: .iOS())
      #expect(server.received.last?.header("apns-id") != unanswered.id)
    }
  }

  @Test func `after a GOAWAY the next push takes another connection`() async throws {
    try await PushServer.run(responding: { _, number in
      number == 1 ? .goAway(afterResponse: true) : .response(200)
    }) { server, outgoing in
      let sender = try Self.sender(server, outgoing)
      try await sender.send(.ofEdit(), to: .iOS())
      try await sender.send(.ofEdit(), to: .iOS())
      #expect(server.received.map(\.connection) == [0, 1])
    }
  }

  @Test func `a push that gets no response before a GOAWAY fails, and succeeds the next time`() async throws {
    try await PushServer.run(responding: { _, number in
      number == 2 ? .goAway(afterResponse: false) : .response(200)
    }) { server, outgoing in
      let sender = try Self.sender(server, outgoing, deadline: .seconds(5))
      try await sender.send(.ofEdit(), to: .iOS())
      let push = Push.ofEdit()
      await #expect(throws: (any Error).self) { try await sender.send(push, to: .iOS()) }
      try await sender.send(push, to: .iOS())
      #expect(server.received.map(\.connection) == [0, 0, 1])
      #expect(Set(server.received.suffix(2).map { $0.header("apns-id") }) == [push.id])
    }
  }
}
