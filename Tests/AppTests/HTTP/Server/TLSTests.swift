import AsyncHTTPClient
import Foundation
import HTTPServer
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOTLS
import Synchronization
import Testing
import TestSupport

@testable import App

/// HTTPS, and the files of the certificate.
@Suite struct TLSTests {
  // MARK: Connections

  @Test func `one port speaks HTTP/2 and HTTP/1.1, and nothing older than TLS 1.2`() async throws {
    let certificate = try await TestCertificate()
    try await TestApp.run(certificate.environment) { app in
      #expect(await certificate.version(of: app.url) == .http2)
      #expect(await certificate.version(of: app.url) { $0.httpVersion = .http1Only } == .http1_1)
      for (version, isAccepted) in [(TLSVersion.tlsv11, false), (.tlsv12, true), (.tlsv13, true)] {
        let negotiated = await certificate.version(of: app.url) { $0.tlsConfiguration?.maximumTLSVersion = version }
        #expect((negotiated != nil) == isAccepted, "\(version)")
      }
    }
  }

  @Test func `a client that offers no forward secrecy is refused`() async throws {
    let certificate = try await TestCertificate()
    try await TestApp.run(certificate.environment) { app in
      let cases: [([NIOTLSCipher], Bool)] = [
        // The keys of the session would depend on the certificate's key alone.
        ([.TLS_RSA_WITH_AES_128_GCM_SHA256, .TLS_RSA_WITH_AES_256_GCM_SHA384], false),
        ([.TLS_RSA_WITH_AES_128_CBC_SHA, .TLS_RSA_WITH_AES_256_CBC_SHA], false),
        // Without authenticated encryption.
        ([.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, .TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA], false),
        ([.TLS_RSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256], true),
        ([.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384], true), ([.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256], true),
      ]
      for (suites, isAccepted) in cases {
        let negotiated = await certificate.version(of: app.url) {
          $0.tlsConfiguration?.maximumTLSVersion = .tlsv12
          $0.tlsConfiguration?.cipherSuiteValues = suites
        }
        #expect((negotiated != nil) == isAccepted, "\(suites.map(\.rawValue))")
      }
    }
  }

  @Test func `HTTP/1.1 over TLS has the limits of a connection without it`() async throws {
    let certificate = try await TestCertificate()
    try await TestApp.run(
      certificate.environment, limits: .with { ($0.connections.bodyGrace, $0.connections.idleSeconds) = (1, 1) }
    ) { app in
      let port = URL(string: app.url)?.port ?? 0
      let idle = try await exchange("GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n", with: port)
      #expect(idle.hasPrefix("HTTP/1.1 200 "))
      let hostless = try await exchange("GET /health/live HTTP/1.1\r\n\r\n", with: port)
      #expect(hostless.hasPrefix("HTTP/1.1 400 "))
      let head = "POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
      let slow = try await exchange(head + "abc", with: port)
      #expect(slow.isEmpty || slow.hasPrefix("HTTP/1.1 4"), "\(slow)")
      #expect(await certificate.version(of: app.url) == .http2)
    }
  }

  @Test func `a client that has finished sending gets all of a large response, even if it reads late`() async throws {
    let files = try await TestCertificate()
    let certificate = try ServerCertificate(
      certificateFile: files.certificateFile, keyFile: files.keyFile, names: .init(certificate: "c", key: "k"))
    // More than the system's buffers hold for a client with a small one.
    let body = ByteBuffer(repeating: UInt8(ascii: "x"), count: 4 << 20)
    try await serving(certificate: certificate, { _, _ in Response(status: .ok, body: ResponseBody(body)) }) { port in
      let text = try await exchange("GET / HTTP/1.1\r\nHost: t\r\n\r\n", with: port, finishesSending: true)
      #expect(text.hasPrefix("HTTP/1.1 200 ") && text.utf8.count > body.readableBytes, "\(text.utf8.count)")
    }
  }

  /// Sends text over TLS.
  ///
  /// - Parameter finishesSending: whether to close the sending side then, and to read late.
  /// - Returns: everything until the server closes the connection.
  private func exchange(_ text: String, with port: Int, finishesSending: Bool = false) async throws -> String {
    var tls = TLSConfiguration.makeClientConfiguration()
    tls.certificateVerification = .none
    let context = try NIOSSLContext(configuration: tls)
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.socketOption(.so_rcvbuf), value: finishesSending ? 4096 : 1 << 20)
    let response: EventLoopFuture<String> = try await bootstrap.connect(host: "127.0.0.1", port: port) { channel in
      channel.eventLoop.makeCompletedFuture {
        let response = channel.eventLoop.makePromise(of: String.self)
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(try NIOSSLClientHandler(context: context, serverHostname: nil))
        try pipeline.addHandler(TextExchange(sending: text, finishesSending: finishesSending, response))
        return response.futureResult
      }
    }
    return try await response.get()
  }

  @Test func `a connection without a TLS handshake is closed at its deadline, and without a response`() async throws {
    let certificate = try await TestCertificate()
    try await TestApp.run(certificate.environment, limits: .with { $0.connections.headSeconds = 1 }) { app in
      let silent = try await RawConnection(to: app)
      #expect(try await silent.rest(within: 15).isEmpty)
      let plain = try await RawConnection(to: app)
      try await plain.send("GET /health/live HTTP/1.1\r\nHost: test\r\n\r\n")
      #expect(try await !plain.rest(within: 15).hasPrefix("HTTP"))
      #expect(await certificate.version(of: app.url) == .http2)
    }
  }

  @Test func `shutdown does not wait for idle connections or unfinished handshakes`() async throws {
    let certificate = try await TestCertificate()
    let kept = Mutex<(raw: RawConnection, http2: HTTP2Connection)?>(nil)
    let stopped = Mutex(ContinuousClock.now)
    try await TestApp.run(certificate.environment) { app in
      let (raw, http2) = (try await RawConnection(to: app), try await HTTP2Connection(to: app))
      #expect(try await http2.send("GET", "/health/live").status == 200)
      kept.withLock { $0 = (raw, http2) }
      stopped.withLock { $0 = .now }
    }
    // Requests that are still running would have eight seconds.
    #expect(ContinuousClock.now - stopped.withLock { $0 } < .seconds(6))
    let (raw, http2) = try #require(kept.withLock { $0 })
    #expect(try await raw.rest().isEmpty)
    try await http2.channel.closeFuture.get()
  }

  @Test func `shutdown does not wait for a client that has vanished`() async throws {
    let certificate = try await TestCertificate()
    let kept = Mutex<HTTP2Connection?>(nil)
    let stopped = Mutex(ContinuousClock.now)
    try await TestApp.run(certificate.environment) { app in
      let connection = try await HTTP2Connection(to: app)
      #expect(try await connection.send("GET", "/health/live").status == 200)
      // From now on, it confirms neither GOAWAY nor the end of TLS.
      try await connection.channel.setOption(.autoRead, value: false).get()
      kept.withLock { $0 = connection }
      stopped.withLock { $0 = .now }
    }
    // A running request would have eight seconds, and the end of TLS its own time.
    #expect(ContinuousClock.now - stopped.withLock { $0 } < .seconds(6))
    kept.withLock { $0 }?.channel.close(promise: nil)
  }

  // MARK: Files

  @Test func `a replaced certificate is used for new connections`() async throws {
    let (first, second) = (try await TestCertificate(), try await TestCertificate())
    try await TestApp.run(first.environment, limits: .with { $0.certificateSeconds = 0.02 }) { app in
      #expect(await first.version(of: app.url) == .http2)
      #expect(await second.version(of: app.url) == nil)
      try first.replace(key: try second.key)
      try first.replace(certificate: try second.certificate)
      try await eventually { await second.version(of: app.url) == .http2 }
    }
  }

  @Test func `files that cannot be used are reported once, and the previous certificate stays`() async throws {
    let (first, second) = (try await TestCertificate(), try await TestCertificate())
    let log = CapturedLog()
    // The test itself checks the files.
    try await TestApp.run(first.environment, limits: .with { $0.certificateSeconds = 1000 }) { app in
      let certificate = try #require(app.dependencies.certificate)
      func reload() -> [String] {
        let before = log.lines.count
        for _ in 1...3 { certificate.reload(logger: log.logger()) }
        return log.lines.dropFirst(before).map { "\($0.level) \($0.metadata["error"] ?? "")" }
      }
      let old = try first.certificate
      #expect(reload() == [])
      // Halfway through a replacement.
      try first.replace(key: try second.key)
      #expect(reload() == ["error MUSTER_TLS_KEY is not the key of the first certificate in MUSTER_TLS_CERTIFICATE"])
      #expect(await first.version(of: app.url) == .http2)
      try FileManager.default.removeItem(atPath: first.certificateFile)
      #expect(reload() == ["error MUSTER_TLS_CERTIFICATE must be the path of a PEM file of certificates"])
      try first.replace(certificate: try second.certificate)
      #expect(reload() == ["notice "])
      #expect(await second.version(of: app.url) == .http2)
      try first.replace(certificate: old)
      #expect(reload().count == 1)
      #expect(await second.version(of: app.url) == .http2)
      #expect(!log.text.contains("PRIVATE KEY"))
    }
  }

  @Test func `SIGHUP reloads the certificate of a running service`() async throws {
    let (first, second) = (try await TestCertificate(), try await TestCertificate())
    try await TestApp.run { app in
      let settings = Muster.environment(app.databaseURL).merging(first.environment) { $1 }
      let program = try await Program(Program.path("muster"), ["serve", "--port", "0"], environment: settings)
      defer { program.signal(SIGKILL) }
      try await program.waitForOutput("listening")
      let port = try #require(program.standardError.firstMatch(of: /https:\/\/127\.0\.0\.1:(\d+)/)?.1)
      let url = "https://localhost:\(port)"
      #expect(await first.version(of: url) == .http2)
      #expect(await second.version(of: url) == nil)
      try first.replace(key: try second.key)
      try first.replace(certificate: try second.certificate)
      program.signal(SIGHUP)
      try await program.waitForOutput("the certificate was reloaded")
      #expect(await second.version(of: url) == .http2)
      program.signal(SIGTERM)
      #expect(try await program.exitStatus() == 0)
    }
  }

  @Test func `files that do not fit stop the program, and only one that serves reads them`() async throws {
    let (first, second) = (try await TestCertificate(), try await TestCertificate())
    let good = Muster.environment("postgresql://localhost/muster")
    func problem(
      _ certificate: String?, _ key: String?, for program: MusterConfiguration.Program = .serve
    ) async throws -> String? {
      var environment = good
      environment["MUSTER_TLS_CERTIFICATE"] = certificate
      environment["MUSTER_TLS_KEY"] = key
      do {
        _ = try await MusterConfiguration.load(for: program, environment: environment, file: nil)
        return nil
      } catch let problem as MusterConfiguration.Problem {
        return problem.description
      }
    }
    let (certificate, key) = (first.certificateFile, first.keyFile)
    #expect(try await problem(certificate, key) == nil)
    #expect(try await problem(nil, key) == "MUSTER_TLS_CERTIFICATE is not set: MUSTER_TLS_KEY requires it")
    #expect(try await problem(certificate, nil) == "MUSTER_TLS_KEY is not set: MUSTER_TLS_CERTIFICATE requires it")
    for wrong in ["/nonexistent", key] {
      #expect(try await problem(wrong, key)?.hasPrefix("MUSTER_TLS_CERTIFICATE must be the path") == true)
    }
    for wrong in ["/nonexistent", certificate] {
      #expect(try await problem(certificate, wrong)?.hasPrefix("MUSTER_TLS_KEY must be the path") == true)
    }
    #expect(
      try await problem(certificate, second.keyFile)
        == "MUSTER_TLS_KEY is not the key of the first certificate in MUSTER_TLS_CERTIFICATE")
    for program in [MusterConfiguration.Program.worker, .tool] {
      #expect(try await problem("/nonexistent", "/nonexistent", for: program) == nil)
    }
  }
}

/// Sends text, and keeps what comes back.
private final class TextExchange: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let text: String
  private let finishesSending: Bool
  private let response: EventLoopPromise<String>
  private var received = ByteBuffer()

  init(sending text: String, finishesSending: Bool, _ response: EventLoopPromise<String>) {
    (self.text, self.finishesSending, self.response) = (text, finishesSending, response)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard case .handshakeCompleted? = event as? TLSUserEvent else { return }
    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    if finishesSending { context.close(mode: .output, promise: nil) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if finishesSending, received.readableBytes == 0 { pause(context.channel) }
    var bytes = unwrapInboundIn(data)
    received.writeBuffer(&bytes)
  }

  private func pause(_ channel: any Channel) {
    channel.setOption(.autoRead, value: false).whenComplete { _ in
      channel.eventLoop.scheduleTask(in: .milliseconds(300)) { channel.setOption(.autoRead, value: true) }
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    response.succeed(String(buffer: received))
  }
}
