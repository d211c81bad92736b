import Foundation
import NIOHTTP1
import Postgres
import Testing

@testable import App

/// Claims about both Apple's and Google's push service.
@Suite struct ProviderPushTests {
  enum Provider: CaseIterable {
    case apple, google

    /// Minutes after which another token may be made.
    fileprivate var pause: Int { self == .apple ? 21 : 2 }
    fileprivate var name: String { self == .apple ? "APNs" : "FCM" }
    fileprivate var device: Device { self == .apple ? .iOS(registeredAt: Timestamp(microseconds: 0)) : .android() }

    fileprivate func sender(
      _ server: PushServer, _ outgoing: Outgoing, clock: StandingClock = StandingClock()
    ) async throws -> any PushSender {
      switch self {
      case .apple: try APNsTests.sender(server, outgoing, clock: clock)
      case .google: try await FCMTests.sender(server, outgoing, clock: clock)
      }
    }

    /// Runs a server of the provider.
    ///
    /// - Parameter reply: the reply to a push. `number` counts them, from 1.
    fileprivate func run(
      responding reply: @escaping @Sendable (_ number: Int) -> PushServer.Reply = { _ in .response(200) },
      _ body: (PushServer, Outgoing) async throws -> Void
    ) async throws {
      try await PushServer.run(
        responding: { request, number in request.path == "/token" ? FCMTests.grant(number) : reply(number) }, body)
    }

    fileprivate func pushes(_ server: PushServer) -> [PushServer.Received] {
      server.received.filter { $0.path != "/token" }
    }

    /// The text that a phone shows, and the event that its app opens.
    fileprivate func content(of request: PushServer.Received) -> (text: String?, event: String?) {
      switch self {
      case .apple: (request.json["aps"]["alert"]["body"].string, request.json["eventId"].string)
      case .google:
        (
          request.json["message"]["notification"]["body"].string, request.json["message"]["data"]["eventId"].string
        )
      }
    }
  }

  // MARK: Connections and tokens

  @Test(arguments: Provider.allCases)
  func `many pushes share few connections and one token`(_ provider: Provider) async throws {
    try await provider.run { server, outgoing in
      let sender = try await provider.sender(server, outgoing)
      func sendMany() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for _ in 0..<200 { group.addTask { try await sender.send(.ofEdit(), to: provider.device) } }
          try await group.waitForAll()
        }
      }
      try await sendMany()
      let connections = server.connections
      // At most this many are opened before the first is known to carry all requests.
      #expect((1...8).contains(connections))
      try await sendMany()
      let pushes = provider.pushes(server)
      #expect(pushes.count == 400)
      #expect(server.connections == connections)
      #expect(Set(pushes.suffix(200).map(\.connection)).count <= 2)
      #expect(Set(pushes.map { $0.header("authorization") }).count == 1)
      #expect(server.received(at: "/token").count == (provider == .google ? 1 : 0))
    }
  }

  /// A response to a token that the provider does not accept.
  struct Refusal {
    let provider: Provider
    let status: Int
    let body: String
    let word: String
  }

  private static let refusals = [
    Refusal(
      provider: .apple, status: 403, body: #"{"reason": "ExpiredProviderToken"}"#, word: "ExpiredProviderToken"),
    Refusal(
      provider: .apple, status: 403, body: #"{"reason": "InvalidProviderToken"}"#, word: "InvalidProviderToken"),
    Refusal(
      provider: .google, status: 401, body: #"{"error": {"code": 401, "status": "UNAUTHENTICATED"}}"#,
      word: "UNAUTHENTICATED"),
  ]

  @Test(arguments: refusals)
  func `a refused token is replaced at once, but not repeatedly`(_ refusal: Refusal) async throws {
    let provider = refusal.provider
    try await provider.run(responding: { number in
      [2, 3].contains(number) ? .response(200) : .response(refusal.status, refusal.body)
    }) { server, outgoing in
      let clock = StandingClock()
      let sender = try await provider.sender(server, outgoing, clock: clock)
      // The first token is refused. The second is accepted and kept.
      try await sender.send(.ofEdit(), to: provider.device)
      try await sender.send(.ofEdit(), to: provider.device)
      let tokens = try provider.pushes(server).map { request in
        provider == .apple ? try APNsTests.token(request) : try #require(request.header("authorization"))
      }
      #expect(tokens.count == 3)
      #expect(tokens[0] != tokens[1] && tokens[1] == tokens[2])
      // Providers reject clients that make many tokens.
      let refused = try await failure { try await sender.send(.ofEdit(), to: provider.device) }
      #expect(refused.remedy == .later(seconds: nil))
      #expect(refused.description == "\(provider.name) returned \(refusal.status) \(refusal.word)")
      #expect(provider.pushes(server).count == 4)
      clock.advance(minutes: provider.pause)
      _ = try await failure { try await sender.send(.ofEdit(), to: provider.device) }
      #expect(provider.pushes(server).count == 6)
      #expect(Set(provider.pushes(server).map { $0.header("authorization") }).count == 3)
    }
  }

  // MARK: Responses

  struct Outcome {
    let status: Int
    let body: String
    let word: String
    let retryAfter: String?
    let remedy: DeliveryFailure.Remedy

    fileprivate static func apple(
      _ status: Int, _ reason: String, retryAfter: String? = nil, _ remedy: DeliveryFailure.Remedy
    ) -> Outcome {
      Outcome(
        status: status, body: #"{"reason": "\#(reason)", "timestamp": 1777658400000}"#, word: reason,
        retryAfter: retryAfter, remedy: remedy)
    }

    fileprivate static func google(
      _ status: Int, _ error: String, _ word: String, retryAfter: String? = nil, _ remedy: DeliveryFailure.Remedy
    ) -> Outcome {
      Outcome(status: status, body: "{\"error\": {\(error)}}", word: word, retryAfter: retryAfter, remedy: remedy)
    }
  }

  private static let ofApple: [Outcome] = [
    .apple(410, "Unregistered", .forgettingTheDevice), .apple(410, "ExpiredToken", .forgettingTheDevice),
    .apple(400, "BadDeviceToken", .forgettingTheDevice), .apple(400, "DeviceTokenNotForTopic", .later(seconds: nil)),
    .apple(400, "BadTopic", .none), .apple(404, "BadPath", .none), .apple(413, "PayloadTooLarge", .none),
    .apple(429, "TooManyRequests", retryAfter: "7", .later(seconds: 7)),
    .apple(429, "TooManyProviderTokenUpdates", .later(seconds: 60)),
    .apple(403, "Forbidden", .later(seconds: nil)), .apple(500, "InternalServerError", .later(seconds: 10)),
    .apple(503, "Shutdown", .later(seconds: 10)),
    .apple(503, "ServiceUnavailable", retryAfter: "100000", .later(seconds: 3600)),
  ]

  private static let ofGoogle: [Outcome] = {
    func details(_ code: String) -> String {
      #""details": [{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "\#(code)"}]"#
    }
    func violation(of field: String) -> String {
      """
      "status": "INVALID_ARGUMENT", "details": [{
        "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "\(field)"}]
      }]
      """
    }
    return [
      .google(404, #""status": "NOT_FOUND", \#(details("UNREGISTERED"))"#, "UNREGISTERED", .forgettingTheDevice),
      .google(404, #""status": "NOT_FOUND""#, "NOT_FOUND", .none),
      .google(
        400,
        #""message": "The registration token is not a valid FCM registration token", "status": "INVALID_ARGUMENT""#,
        "INVALID_ARGUMENT", .forgettingTheDevice),
      .google(400, violation(of: "message.token"), "INVALID_ARGUMENT", .forgettingTheDevice),
      .google(400, violation(of: "message.data"), "INVALID_ARGUMENT", .none),
      .google(
        403, #""status": "PERMISSION_DENIED", \#(details("SENDER_ID_MISMATCH"))"#, "SENDER_ID_MISMATCH",
        .later(seconds: nil)),
      .google(
        429, #""status": "RESOURCE_EXHAUSTED", \#(details("QUOTA_EXCEEDED"))"#, "QUOTA_EXCEEDED",
        retryAfter: "90", .later(seconds: 90)),
      // What Google asks for if the response names no time.
      .google(
        429, #""status": "RESOURCE_EXHAUSTED", \#(details("QUOTA_EXCEEDED"))"#, "QUOTA_EXCEEDED", .later(seconds: 60)),
      .google(
        429, #""status": "RESOURCE_EXHAUSTED""#, "RESOURCE_EXHAUSTED", retryAfter: "soon", .later(seconds: 60)),
      .google(500, #""status": "INTERNAL""#, "INTERNAL", .later(seconds: 10)),
      .google(503, #""status": "UNAVAILABLE""#, "UNAVAILABLE", .later(seconds: 10)),
      .google(503, #""status": "UNAVAILABLE""#, "UNAVAILABLE", retryAfter: "3", .later(seconds: 3)),
    ]
  }()

  @Test(arguments: [(Provider.apple, ofApple), (.google, ofGoogle)])
  func `the provider's response decides the outcome for the push and the device`(
    _ provider: Provider, _ outcomes: [Outcome]
  ) async throws {
    try await provider.run(responding: { number in
      let outcome = outcomes[number - 1]
      let headers = outcome.retryAfter.map { [("retry-after", $0)] } ?? []
      return .response(outcome.status, outcome.body, HTTPHeaders(headers))
    }) { server, outgoing in
      let sender = try await provider.sender(server, outgoing)
      for outcome in outcomes {
        let refused = try await failure { try await sender.send(.ofEdit(), to: provider.device) }
        #expect(refused.remedy == outcome.remedy, "\(outcome)")
        #expect(refused.description == "\(provider.name) returned \(outcome.status) \(outcome.word)")
      }
      #expect(provider.pushes(server).count == outcomes.count)
    }
  }

  // MARK: Length

  @Test(arguments: Provider.allCases)
  func `a message that is too long is cut between two characters`(_ provider: Provider) async throws {
    try await provider.run { server, outgoing in
      let sender = try await provider.sender(server, outgoing)
      // Families and flags are several scalars each; quotes and line ends become longer in JSON.
      for piece in ["a", "ä", "👨‍👩‍👧‍👦", "🇩🇪", "\"\n", "\u{1}"] {
        let title = String(repeating: piece, count: 6000)
        let push = Push.ofEdit(title)
        try await sender.send(push, to: provider.device)
        let request = try #require(provider.pushes(server).last)
        #expect((4000...4096).contains(request.body.utf8.count), "\(piece)")
        let content = provider.content(of: request)
        let message = try #require(content.text)
        #expect(message.hasSuffix("…") && "“\(title)”".hasPrefix(message.dropLast()), "\(piece)")
        #expect(content.event == push.subject)
      }
      // Only ids remain then, and real ones are never as long as this.
      let id = String(repeating: "x", count: 5000)
      let hopeless = Push(
        id: UUID().uuidString.lowercased(), type: "event-cancelled", subject: id, recipient: id,
        payload: #"{"type": "event-cancelled", "message": "Cancelled.", "eventId": "\#(id)"}"#, createdAt: .now())
      let refused = try await failure { try await sender.send(hopeless, to: provider.device) }
      #expect(refused.remedy == DeliveryFailure.Remedy.none)
      #expect(provider.pushes(server).count == 6)
    }
  }
}
