import Crypto
import CryptoExtras
import Foundation
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL
import Postgres
import Synchronization
import Testing

@testable import App

/// Apple's and Google's push services on a port of this machine. Speaks only HTTP/2 over TLS, keeps all requests, and
/// sends configurable replies.
final class PushServer: Sendable {
  struct Received: Sendable {
    let path: String
    let headers: HTTPHeaders
    let body: String
    /// The number of the connection, from 0.
    let connection: Int

    var json: JSON { (try? JSON(parsing: body.utf8)) ?? .null }

    func header(_ name: String) -> String? { headers.first(name: name) }
  }

  enum Reply: Sendable {
    case response(Int, String = "", HTTPHeaders = [:])
    case silence
    /// Sends GOAWAY. Without `afterResponse`, this request gets no response.
    case goAway(afterResponse: Bool)
  }

  private struct State: Sendable {
    var port = 0
    var connections = 0
    var received: [Received] = []
  }

  private let state = Mutex(State())
  private let reply: @Sendable (_ request: Received, _ number: Int) -> Reply
  /// The certificate that a client must trust.
  private let certificateFile: String

  private init(certificateFile: String, reply: @escaping @Sendable (_ request: Received, _ number: Int) -> Reply) {
    self.certificateFile = certificateFile
    self.reply = reply
  }

  /// Runs the server while `body` runs. `body` gets a client that trusts the server.
  ///
  /// - Parameter reply: the reply to a request. `number` counts the requests to the same path, from 1.
  static func run(
    responding reply: @escaping @Sendable (_ request: Received, _ number: Int) -> Reply = { _, _ in .response(200) },
    _ body: (PushServer, Outgoing) async throws -> Void
  ) async throws {
    let material = try await IdentityServer.prepared.value
    let file = FileManager.default.temporaryDirectory.appending(path: "muster-push-\(UUID().uuidString).pem").path
    try material.certificate.write(toFile: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: file) }
    let server = PushServer(certificateFile: file, reply: reply)
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(material.certificate.utf8)).map { .certificate($0) },
      privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(material.certificateKey.utf8), format: .pem)))
    tls.applicationProtocols = ["h2"]
    let context = try NIOSSLContext(configuration: tls)
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { server.serve($0, context) }
      .bind(host: "127.0.0.1", port: 0).get()
    server.state.withLock { $0.port = channel.localAddress?.port ?? 0 }
    let outgoing = try Outgoing(trusting: file)
    do {
      try await body(server, outgoing)
    } catch {
      await outgoing.close()
      try await channel.close()
      throw error
    }
    await outgoing.close()
    try await channel.close()
  }

  // MARK: For tests

  var port: Int { state.withLock { $0.port } }
  var url: String { "https://localhost:\(port)" }
  /// The environment of a worker that sends to this server, with Apple's key of ``IdentityServer``.
  func environment() async throws -> [String: String] {
    [
      "MUSTER_APNS_TEAM_ID": "TEAM", "MUSTER_APNS_KEY_ID": "KEY", "MUSTER_APNS_TOPIC": "com.example.muster",
      "MUSTER_APNS_PRIVATE_KEY": IdentityServer.appleKey.pemRepresentation.replacing("\n", with: "\\n"),
      "MUSTER_APNS_URL": url, "MUSTER_APNS_SANDBOX_URL": "\(url)/sandbox",
      "MUSTER_FCM_SERVICE_ACCOUNT": try await serviceAccount(), "MUSTER_FCM_URL": url,
      "MUSTER_TRUSTED_CERTIFICATES": certificateFile,
    ]
  }

  /// A service account's key in Google's format. Its token URL is on this server.
  func serviceAccount() async throws -> String {
    let key = try #require(try await IdentityServer.prepared.value.keys["first"])
    let pem = key.pkcs8PEMRepresentation.replacing("\n", with: "\\n")
    return """
      {"type": "service_account", "project_id": "muster-test", "private_key_id": "0a1b2c", "private_key": "\(pem)",
       "client_email": "muster@muster-test.iam.gserviceaccount.com", "client_id": "1", "token_uri": "\(url)/token"}
      """
  }

  /// The number of connections so far.
  var connections: Int { state.withLock { $0.connections } }
  var received: [Received] { state.withLock { $0.received } }

  /// The requests to paths with this suffix.
  func received(at path: String) -> [Received] { received.filter { $0.path.hasSuffix(path) } }

  // MARK: Serving

  private func serve(_ channel: any Channel, _ context: NIOSSLContext) -> EventLoopFuture<Void> {
    let connection = state.withLock { state -> Int in
      state.connections += 1
      return state.connections - 1
    }
    return channel.eventLoop.makeCompletedFuture {
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(NIOSSLServerHandler(context: context))
      _ = try pipeline.configureHTTP2Pipeline(
        mode: .server, connectionConfiguration: NIOHTTP2Handler.ConnectionConfiguration(),
        streamConfiguration: NIOHTTP2Handler.StreamConfiguration()
      ) { stream in
        stream.eventLoop.makeCompletedFuture {
          try stream.pipeline.syncOperations.addHandler(HTTP2FramePayloadToHTTP1ServerCodec())
          try stream.pipeline.syncOperations.addHandler(Exchange(self, connection: connection))
        }
      }
    }
  }

  fileprivate func take(_ request: Received) -> Reply {
    let number = state.withLock { state -> Int in
      state.received.append(request)
      return state.received.filter { $0.path == request.path }.count
    }
    return reply(request, number)
  }
}

/// One request and its response on one stream.
private final class Exchange: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let server: PushServer
  private let connection: Int
  private var head: HTTPRequestHead?
  private var body = ByteBuffer()

  init(_ server: PushServer, connection: Int) {
    self.server = server
    self.connection = connection
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body(let part): body.writeImmutableBuffer(part)
    case .end:
      guard let head else { return }
      let request = PushServer.Received(
        path: head.uri, headers: head.headers, body: String(buffer: body), connection: connection)
      switch server.take(request) {
      case .silence: break
      case .response(let status, let text, let headers): respond(status, text, headers, context)
      case .goAway(let isAfterwards):
        let parent = context.channel.parent
        let last: HTTP2StreamID = isAfterwards ? .maxID : .rootStream
        let frame = HTTP2Frame(
          streamID: .rootStream, payload: .goAway(lastStreamID: last, errorCode: .noError, opaqueData: nil))
        parent?.writeAndFlush(frame, promise: nil)
        if isAfterwards { respond(200, "", [:], context) } else { parent?.close(promise: nil) }
      }
    }
  }

  private func respond(_ status: Int, _ text: String, _ headers: HTTPHeaders, _ context: ChannelHandlerContext) {
    let head = HTTPResponseHead(version: .http2, status: HTTPResponseStatus(statusCode: status), headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if !text.isEmpty { context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil) }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }
}

// MARK: Test data

extension Push {
  /// A push about the edit of an event.
  static func ofEdit(
    _ title: String = "Picnic",
    changes: [Notice.FieldChange] = [
      Notice.FieldChange(field: "startTime", old: "2030-05-01T18:00:00Z", new: "2030-05-01T19:00:00Z"),
      Notice.FieldChange(field: "note", old: "Old", new: "New"),
    ],
    createdAt: Timestamp = .now()
  ) -> Push {
    Push(.eventUpdated(.new(), title, changes, by: .new()), createdAt: createdAt)
  }

  init(_ notice: Notice, createdAt: Timestamp = .now()) {
    let notice = notice.stored
    self.init(
      id: UUID().uuidString.lowercased(), type: notice.kind.rawValue, subject: notice.subject.uuidString.lowercased(),
      recipient: User.ID.new().description, payload: Notice.rendered(notice.payload, at: createdAt).text,
      createdAt: createdAt)
  }
}

extension Device {
  static func iOS(
    _ token: String = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0",
    _ environment: Environment = .production, topic: String? = nil, localizes: Bool = false,
    registeredAt: Timestamp = .now()
  ) -> Device {
    Device(
      id: .new(), platform: .ios, token: token, environment: environment, topic: topic, localizes: localizes,
      registeredAt: registeredAt, sealedSecrets: [])
  }

  static func android(
    _ token: String = "bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1", localizes: Bool = false
  ) -> Device {
    Device(
      id: .new(), platform: .android, token: token, environment: nil, topic: nil, localizes: localizes,
      registeredAt: .now(), sealedSecrets: [])
  }

  static func webhook(_ url: String, sealedSecrets: [Data]) -> Device {
    Device(
      id: .new(), platform: .webhook, token: url, environment: nil, topic: nil, registeredAt: .now(),
      sealedSecrets: sealedSecrets)
  }
}

/// The failure that a delivery must end with.
func failure(
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async throws -> DeliveryFailure {
  try await #require(throws: DeliveryFailure.self, sourceLocation: sourceLocation) { try await body() }
}
