import AsyncHTTPClient
import Crypto
import Foundation
import HTTPServer
import NIOCore
import NIOHTTP1
import Postgres
import Synchronization
import Testing
import TestSupport

@testable import App

/// Webhooks that users have registered.
@Suite struct WebhookTests {
  private struct Scene: Sendable {
    let sink: WebhookSink
    let keys: SigningKeys
    let sender: WebhookSender

    func send(_ push: Push = .ofEdit(), secrets: [String]? = nil) async throws {
      let sealed = try (secrets ?? [sink.secret]).map { try WebhookSecret.sealed($0, keys: keys) }
      try await sender.send(push, to: .webhook("http://\(sink.address)/hook?who=ana", sealedSecrets: sealed))
    }
  }

  private static func secret() -> String {
    "whsec_" + SymmetricKey(size: .bits256).withUnsafeBytes { Data($0).base64EncodedString() }
  }

  /// Runs a receiver on this machine, which is allowed here.
  private func run(
    responding respond: @escaping @Sendable (_ number: Int) async -> Response = { _ in Response(status: .noContent) },
    _ body: @escaping @Sendable (Scene) async throws -> Void
  ) async throws {
    try await WebhookSink.run(responding: respond) { sink in
      let keys = try SigningKeys(SigningKeys.generate())
      let outgoing = try Outgoing(trusting: nil)
      let sender = WebhookSender(keys: keys, clients: WebhookClients(outgoing, allowsPrivate: true))
      do {
        try await body(Scene(sink: sink, keys: keys, sender: sender))
      } catch {
        await outgoing.close()
        throw error
      }
      await outgoing.close()
    }
  }

  // MARK: Deliveries

  @Test func `a delivery is signed and says what happened and when`() async throws {
    try await run { scene in
      let push = Push.ofEdit(createdAt: Timestamp.now().adding(seconds: -1000))
      try await scene.send(push)
      let delivery = try #require(scene.sink.deliveries.first)
      #expect(scene.sink.isGenuine(delivery))
      #expect(delivery.id == push.id)
      #expect(delivery.headers["content-type"] == "application/json")
      #expect(delivery.json.keys == ["type", "timestamp", "data"])
      #expect(delivery.json["type"].string == "event-updated")
      #expect(delivery.json["timestamp"].string == push.createdAt.rfc3339())
      let payload = try JSON(parsing: push.payload.utf8)
      #expect(delivery.json["data"] == payload)
      // A repeated send has the same id and another time.
      try await scene.send(push)
      #expect(scene.sink.deliveries.map(\.id) == [push.id, push.id])
    }
  }

  @Test func `during a rotation, a delivery is signed with both secrets`() async throws {
    try await run { scene in
      let (current, previous) = (Self.secret(), Self.secret())
      try await scene.send(secrets: [current, previous])
      let delivery = try #require(scene.sink.deliveries.first)
      let signatures = try #require(delivery.headers["webhook-signature"]).split(separator: " ")
      #expect(signatures.count == 2 && signatures.allSatisfy { $0.hasPrefix("v1,") })
      #expect(scene.sink.isGenuine(delivery, with: current))
      #expect(scene.sink.isGenuine(delivery, with: previous))
      #expect(!scene.sink.isGenuine(delivery, with: Self.secret()))
    }
  }

  @Test func `a sealed secret opens only with its own key and only unmodified`() async throws {
    let keys = try SigningKeys(SigningKeys.generate())
    let others = try SigningKeys(SigningKeys.generate())
    let sealed = try WebhookSecret.sealed(Self.secret(), keys: keys)
    #expect(throws: Never.self) { try WebhookSecret.opened(sealed, keys: keys) }
    let unknown = try await failure { _ = try WebhookSecret.opened(sealed, keys: others) }
    #expect(unknown.description.contains(keys.signing.kid))
    #expect(unknown.remedy == .later(seconds: nil))
    for index in sealed.indices {
      var tampered = sealed
      tampered[index] ^= 1
      #expect(throws: (any Error).self, "byte \(index)") { try WebhookSecret.opened(tampered, keys: keys) }
    }
    for length in 0..<sealed.count {
      #expect(throws: (any Error).self, "\(length) bytes") {
        try WebhookSecret.opened(sealed.prefix(length), keys: keys)
      }
    }
    // The key of the previous secret may be missing, but not that of the current one.
    try await run { scene in
      let current = try WebhookSecret.sealed(scene.sink.secret, keys: scene.keys)
      let url = "http://\(scene.sink.address)/"
      try await scene.sender.send(.ofEdit(), to: .webhook(url, sealedSecrets: [current, sealed]))
      let delivery = try #require(scene.sink.deliveries.first)
      #expect(scene.sink.isGenuine(delivery))
      _ = try await failure {
        try await scene.sender.send(.ofEdit(), to: .webhook(url, sealedSecrets: [sealed, current]))
      }
      let bare = try await failure { try await scene.sender.send(.ofEdit(), to: .webhook(url, sealedSecrets: [])) }
      #expect(bare.remedy == DeliveryFailure.Remedy.none)
      #expect(scene.sink.deliveries.count == 1)
    }
  }

  // MARK: Responses

  @Test func `the response decides the outcome for the delivery and the device`() async throws {
    let cases: [(status: HTTPResponse.Status, retryAfter: String?, remedy: DeliveryFailure.Remedy)] = [
      (.gone, nil, .forgettingTheDevice), (.tooManyRequests, "7", .later(seconds: 7)),
      (.serviceUnavailable, "Fri, 31 Dec 9999 23:59:59 GMT", .later(seconds: 3600)),
      (.serviceUnavailable, "soon", .later(seconds: nil)), (.badRequest, nil, .later(seconds: nil)),
      (.notFound, nil, .later(seconds: nil)), (.internalServerError, nil, .later(seconds: nil)),
    ]
    try await run(responding: { number in
      guard number <= cases.count else { return Response(status: number == cases.count + 1 ? .ok : .accepted) }
      let (status, retryAfter, _) = cases[number - 1]
      var headers = HTTPFields()
      headers[.retryAfter] = retryAfter
      return Response(status: status, headers: headers)
    }) { scene in
      for (status, _, remedy) in cases {
        let refused = try await failure { try await scene.send() }
        #expect(refused.remedy == remedy, "\(status)")
        #expect(refused.description == "the webhook returned \(status.code)")
      }
      try await scene.send()
      try await scene.send()
      #expect(scene.sink.deliveries.count == cases.count + 2)
    }
  }

  @Test func `a redirect is not followed`() async throws {
    for status in [HTTPResponse.Status.movedPermanently, .found, .temporaryRedirect, .permanentRedirect] {
      try await run(responding: { _ in Response(status: status, headers: [.location: "/elsewhere"]) }) { scene in
        let refused = try await failure { try await scene.send() }
        #expect(refused.description == "the webhook returned \(status.code)")
        #expect(refused.remedy == .later(seconds: nil))
        #expect(scene.sink.deliveries.count == 1)
      }
    }
  }

  @Test func `only the start of a long response is read, and its status counts`() async throws {
    let endless = Endless()
    try await run(responding: { _ in endless.response() }) { scene in
      try await scene.send()
      try await eventually { endless.hasEnded }
      // What fits into the buffers in between.
      #expect(endless.written < 64 << 20)
    }
  }

  /// A response that never ends.
  private final class Endless: Sendable {
    private let state = Mutex((written: 0, hasEnded: false))

    var written: Int { state.withLock { $0.written } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func response() -> Response {
      let part = ByteBuffer(repeating: 0x78, count: 64 << 10)
      return Response(
        status: .ok,
        body: ResponseBody { [self] writer in
          defer { state.withLock { $0.hasEnded = true } }
          while !Task.isCancelled {
            try await writer.write(part)
            state.withLock { $0.written += part.readableBytes }
            // As fast as a network, not as fast as memory: the test is about when it is cut off.
            try await Task.sleep(for: .milliseconds(10))
          }
        })
    }
  }

  @Test func `a response that stops halfway still counts`() async throws {
    let latch = Latch()
    try await run(responding: { _ in
      Response(
        status: .ok,
        body: ResponseBody { writer in
          try await writer.write(ByteBuffer(string: "thank y"))
          await latch.wait()
          writer.finish()
        })
    }) { scene in
      defer { latch.open() }
      try await scene.send()
      #expect(scene.sink.deliveries.count == 1)
    }
  }

  @Test func `a send to a silent receiver fails at the deadline`() async throws {
    let latch = Latch()
    try await run(responding: { _ in
      await latch.wait()
      return Response(status: .ok)
    }) { scene in
      defer { latch.open() }
      var sender = scene.sender
      sender.deadline = .milliseconds(300)
      let device = Device.webhook(
        "http://\(scene.sink.address)/", sealedSecrets: [try WebhookSecret.sealed(scene.sink.secret, keys: scene.keys)])
      let patient = sender
      await #expect(throws: HTTPClientError.deadlineExceeded) { try await patient.send(.ofEdit(), to: device) }
    }
  }

  // MARK: Addresses

  @Test func `only addresses of the public Internet are public`() {
    let isPublic = [
      "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
      "128.0.0.0",
      "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255", "198.17.255.255", "198.20.0.0",
      "223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888", "::ffff:8.8.8.8",
      "64:ff9b::808:808", "2002:808:808::1",
    ]
    let isNot = [
      "0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
      "127.255.255.255",
      "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1",
      "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1",
      "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::2", "::7f00:1", "::ffff:127.0.0.1",
      "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
      "2001::1", "2001:0:7f00:1::", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "3fff::1", "4000::1", "fc00::1",
      "fd12:3456:789a::1", "fe80::1", "fec0::1", "ff02::1",
    ]
    for text in isPublic { #expect(IPAddress(text)?.isPublic == true, "\(text)") }
    for text in isNot { #expect(IPAddress(text)?.isPublic == false, "\(text)") }
  }

  /// No registration accepts these, but a row may contain them.
  static let malformed = [
    "https://1.1.1.1:99999/", "https://1.1.1.1:0/", "https://example.com:65536", "https://[::1]:70000/", "https://[]/",
    "https://user@127.0.0.1/", "https://127.0.0.1:443@127.0.0.1/", "https://%6cocalhost/", "https://löcalhost/",
    "https://[fe80::1%25lo]/", "http://localhost/", "ftp://localhost/", "localhost", "", " ", "https://", "https:///x",
    "https://exa mple/", "https://example.com/\u{1}", "https://example.com/\r\nHost: other", "unix:/tmp/socket",
    "https+unix://%2Ftmp%2Fsocket/x", "https://example.com/#x", "https://" + String(repeating: "a", count: 254) + "/",
    "https://example.com/" + String(repeating: "a", count: 1024),
  ]

  @Test func `a malformed URL is neither registered nor parsed as an address`() {
    for url in Self.malformed {
      #expect(WebhookAddress.objection(to: url, allowsPrivate: false) != nil, "\(url)")
      if !url.hasPrefix("http://") {
        #expect(WebhookAddress(url) == nil, "\(url)")
        #expect(WebhookAddress.objection(to: url, allowsPrivate: true) != nil, "\(url)")
      }
    }
    #expect(WebhookAddress.authority(of: "HTTPS://Example.COM/x") == "example.com:443")
    #expect(WebhookAddress.authority(of: "https://[2606:4700::1111]:8443/x") == "2606:4700::1111:8443")
  }

  @Test func `a webhook in this network is not connected to, however its address is written`() async throws {
    try await PushServer.run { server, outgoing in
      let keys = try SigningKeys(SigningKeys.generate())
      let sender = WebhookSender(keys: keys, clients: WebhookClients(outgoing, allowsPrivate: false))
      func refusal(_ url: String) async throws -> DeliveryFailure {
        let device = Device.webhook(url, sealedSecrets: [try WebhookSecret.sealed(Self.secret(), keys: keys)])
        return try await failure { try await sender.send(.ofEdit(), to: device) }
      }
      for host in [
        "localhost", "LOCALHOST", "127.0.0.1", "127.1", "0x7f000001", "0x7f.1", "2130706433", "0177.0.0.1", "0",
        "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "169.254.169.254", "10.1.2.3",
        "[fe80::1]", "[fd00::1]",
      ] {
        let refused = try await refusal("https://\(host):\(server.port)/hook")
        #expect(refused.description == "the webhook's host has an address that is not public", "\(host)")
        #expect(refused.remedy == .later(seconds: nil), "\(host)")
      }
      // The HTTP client traps on some of these, and parsers might disagree about the host of others.
      for url in Self.malformed {
        let refused = try await refusal(url)
        #expect(refused.description == "the webhook's URL is malformed or not https", "\(url)")
        #expect(refused.remedy == DeliveryFailure.Remedy.none, "\(url)")
      }
      #expect(server.connections == 0)
    }
  }

  /// A name server whose results change, and clients for which only 127.0.0.1 is public.
  private final class Names: Sendable {
    private let lookups: Mutex<[[String]]>

    init(_ lookups: [[String]]) {
      self.lookups = Mutex(lookups)
    }

    var left: Int { lookups.withLock { $0.count } }

    func clients(_ outgoing: Outgoing) -> WebhookClients {
      WebhookClients(
        outgoing, allowsPrivate: false,
        resolve: { _ in
          let found = self.lookups.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
          return found.compactMap { IPAddress($0) }
        }, isAllowed: { $0.description == "127.0.0.1" })
    }
  }

  @Test func `the connection goes to the checked address, whose certificate must have the name`() async throws {
    try await PushServer.run { server, outgoing in
      let keys = try SigningKeys(SigningKeys.generate())
      let names = Names([["127.0.0.1"], ["127.0.0.1"], ["10.0.0.1"], ["127.0.0.1", "10.0.0.1"], [], ["127.0.0.1"]])
      let sender = WebhookSender(keys: keys, clients: names.clients(outgoing), deadline: .seconds(5))
      let sealed = try WebhookSecret.sealed(Self.secret(), keys: keys)
      // No other name server knows this name: a second lookup would find nothing.
      let name = "\(IdentityServer.certifiedName):\(server.port)"
      let device = Device.webhook("https://\(name)/hook?who=ana", sealedSecrets: [sealed])
      try await sender.send(.ofEdit(), to: device)
      try await sender.send(.ofEdit(), to: device)
      #expect(server.received.map(\.path) == ["/hook?who=ana", "/hook?who=ana"])
      #expect(server.received.map { $0.header("host") } == [name, name])
      #expect(server.received.map(\.connection) == [0, 0])
      // The name now resolves to another address, to one more, or to none.
      for _ in 0..<2 {
        let refused = try await failure { try await sender.send(.ofEdit(), to: device) }
        #expect(refused.description == "the webhook's host has an address that is not public")
      }
      let refused = try await failure { try await sender.send(.ofEdit(), to: device) }
      #expect(refused.description == "the webhook's host has no address")
      #expect(names.left == 1)
      // Another host's name, for the same address.
      let other = Device.webhook("https://other.example:\(server.port)/", sealedSecrets: [sealed])
      await #expect(throws: (any Error).self) { try await sender.send(.ofEdit(), to: other) }
      #expect(server.received.count == 2)
    }
  }

  @Test func `the most recently used clients are kept, and none is closed during a delivery`() async throws {
    try await PushServer.run { server, outgoing in
      let clients = Names([["127.0.0.1"]]).clients(outgoing)
      let url = "https://\(IdentityServer.certifiedName):\(server.port)/"
      let first = try await clients.outgoing(to: url)
      let again = try await clients.outgoing(to: url)
      #expect(first === again)
      for number in 0..<64 { _ = try await clients.outgoing(to: "https://host\(number).example/") }
      let afresh = try await clients.outgoing(to: url)
      #expect(first !== afresh)
      for outgoing in [first, afresh] {
        let status = try await outgoing.client.execute(HTTPClientRequest(url: url), timeout: .seconds(10)).status
        #expect(status.code == 200)
      }
    }
  }

  @Test func `name servers that do not respond delay no other lookup`() async throws {
    let isOver = Latch()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<32 {
        group.addTask {
          _ = try? await IPAddress.resolving("slow\(number).example", within: .seconds(60)) { _ in
            isOver.block()
            return []
          }
        }
      }
      // With a limit on threads, this would wait for one of the others.
      let found = try await IPAddress.resolving("fast.example", within: .seconds(120)) { _ in
        [try #require(IPAddress("192.0.2.1"))]
      }
      #expect(found.count == 1)
      isOver.open()
      try await group.waitForAll()
    }
  }

  @Test func `too many lookups are a failure of this process, not of the host`() async throws {
    let lookups = HostLookups(limit: 1)
    let (isRunning, isOver) = (Latch(), Latch())
    async let slow = IPAddress.resolving("slow.example", within: .seconds(60), lookups: lookups) { _ in
      isRunning.open()
      isOver.block()
      return []
    }
    try await eventually { isRunning.isOpen }
    let refused = try await failure { _ = try await IPAddress.resolving("fast.example", lookups: lookups) { _ in [] } }
    #expect(refused.isLocal && !refused.isTimeout)
    isOver.open()
    #expect(try await slow.isEmpty)
    #expect(try await IPAddress.resolving("fast.example", lookups: lookups) { _ in [] }.isEmpty)
  }

  @Test func `the system's resolver returns the addresses of a host`() async throws {
    let local = try await IPAddress.resolving("localhost").map(\.description)
    #expect(local.contains("127.0.0.1") || local.contains("0:0:0:0:0:0:0:1"))
    let literal = try await IPAddress.resolving("2606:4700:4700::1111").map(\.description)
    #expect(literal == ["2606:4700:4700:0:0:0:0:1111"])
    let unknown = try await failure { _ = try await IPAddress.resolving("unknown.invalid") }
    #expect(unknown.description == "the webhook's host cannot be found")
  }
}
