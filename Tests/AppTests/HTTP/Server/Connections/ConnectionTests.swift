import Foundation
import HTTPServer
import Logging
import ServiceLifecycle
import Synchronization
import Testing
import TestSupport

@testable import App

/// The limits of a connection, in what it does and for how long. All waits are bounded, with generous limits for busy
/// machines.
@Suite struct ConnectionTests {
  /// - Returns: how many seconds it took.
  private func seconds(_ body: () async throws -> Void) async rethrows -> Double {
    let start = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - start) / .seconds(1)
  }

  private let live = "GET /health/live HTTP/1.1\r\nHost: test\r\n\r\n"

  private func login(_ headers: String) -> String {
    "POST /api/v1/auth/login HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n\(headers)\r\n\r\n"
  }

  private func expectAlive(_ app: TestApp, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    #expect(try await app.sendRaw("GET", "/health/ready").status == 200, sourceLocation: sourceLocation)
  }

  @Test func `every response has the current time in its Date header`() async throws {
    try await TestApp.run { app in
      let form = DateFormatter()
      form.locale = Locale(identifier: "en_US_POSIX")
      form.timeZone = TimeZone(identifier: "UTC")
      form.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
      var dates: [Date] = []
      for path in ["/health/live", "/health/live", "/nowhere"] {
        let header = try await app.sendRaw("GET", path).header("Date")
        dates.append(try #require(form.date(from: header ?? ""), "\(header ?? "none")"))
        // The header changes once per second.
        try await Task.sleep(for: .seconds(1.1))
      }
      #expect(dates[0] < dates[1] && dates[1] < dates[2])
      #expect(abs(dates[2].timeIntervalSinceNow) < 60)
    }
  }

  @Test func `a server whose listener is closed ends with an error, so that it is restarted`() async throws {
    let server = Server(host: "127.0.0.1", port: 0, gate: ConnectionGate(limit: 10), logger: .quiet) { port in
      for socket in Int32(3)..<4096 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isNamed = withUnsafeMutableBytes(of: &address) {
          getsockname(socket, $0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length) == 0
        }
        // Connections to the listener have the same port.
        var isListening: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        guard isNamed, UInt16(bigEndian: address.sin_port) == port,
          getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening != 0
        else { continue }
        shutdown(socket, Int32(SHUT_RDWR))
      }
    } responder: { _, _ in
      Response(status: .ok)
    }
    await #expect(throws: ListenError.self) { try await server.run() }
  }

  // MARK: Clients that are too slow

  @Test func `a slow head is cut off at its deadline, even if bytes keep arriving`() async throws {
    try await TestApp.run(limits: .with { $0.connections.headSeconds = 1 }) { app in
      for (start, piece) in [
        ("GET /health/live HTTP/1.1\r\nHost: test\r\n", "X-More: x\r\n"), ("GET /health/live?", "x"), ("", "\r\n"),
        ("GET /health/live HTTP/1.1\r\nX-More: ", "x"),
      ] {
        let connection = try await RawConnection(to: app)
        try await connection.send(start)
        async let sent = connection.send(piece, times: 400, pause: 0.05)
        var text = ""
        let time = try await seconds { text = try await connection.rest(within: 15) }
        #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 408 "), "\(start): \(text)")
        #expect(time > 0.8, "\(start)")
        #expect(try await sent < 400, "\(start)")
      }
      try await expectAlive(app)
    }
  }

  @Test func `an incomplete head gets 408, and a silent connection gets no response`() async throws {
    try await TestApp.run(limits: .with { $0.connections.headSeconds = 1 }) { app in
      let halted = try await RawConnection(to: app)
      try await halted.send("GET /health/li")
      let silent = try await RawConnection(to: app)
      let response = try await halted.response(within: 15)
      #expect(response.status == 408)
      #expect(response.problem == "request-timeout")
      #expect(response.header("Content-Type") == "application/problem+json")
      #expect(response.header("Connection") == "close")
      #expect(try await halted.rest().isEmpty)
      #expect(try await silent.rest(within: 15).isEmpty)
      try await expectAlive(app)
    }
  }

  @Test func `the second head of a connection has the same deadline as the first`() async throws {
    try await TestApp.run(limits: .with { $0.connections.headSeconds = 1 }) { app in
      let connection = try await RawConnection(to: app)
      try await connection.send(live)
      #expect(try await connection.response().status == 200)
      try await connection.send("GET /health/li")
      #expect(try await connection.response(within: 15).status == 408)
      #expect(try await connection.rest().isEmpty)
    }
  }

  @Test func `a body that arrives too slowly is cut off`() async throws {
    try await TestApp.run(limits: .with { $0.connections.bodyGrace = 1 }) { app in
      for (header, piece) in [
        ("Content-Length: 1000", "x"), ("Transfer-Encoding: chunked", "1\r\nx\r\n"), ("Content-Length: 1000", ""),
      ] {
        let connection = try await RawConnection(to: app)
        try await connection.send(login(header))
        // Sending into a closed connection fails.
        async let sent = connection.send(piece, times: piece.isEmpty ? 1 : 400, pause: 0.05)
        var text = ""
        let time = try await seconds { text = try await connection.rest(within: 15) }
        #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"), "\(header): \(text)")
        #expect(time > 0.8, "\(header)")
        #expect(try await sent < 400, "\(header)")
      }
      try await expectAlive(app)
    }
  }

  @Test func `a body above the minimum speed is accepted, however long it takes`() async throws {
    try await TestApp.run(limits: .with { ($0.connections.bodyGrace, $0.connections.headSeconds) = (1, 1) }) { app in
      _ = try await app.signUp("ana")
      let connection = try await RawConnection(to: app)
      let body = #"{"login": "ana", "password": "correct horse ana"}"#
      try await connection.send(login("Content-Length: \(12_000 + body.utf8.count)"))
      let time = try await seconds {
        try await connection.send(String(repeating: " ", count: 400), times: 30, pause: 0.1)
        try await connection.send(body)
      }
      let response = try await connection.response()
      #expect(response.status == 200, "\(response.body)")
      #expect(time > 2.5)
    }
  }

  @Test func `a client that does not read a large response is cut off`() async throws {
    try await TestApp.run(limits: .with { $0.connections.idleSeconds = 1 }) { app in
      let (ana, length) = try await largeList(app)
      let connection = try await RawConnection(to: app, receiveBuffer: 4096)
      try await connection.send(listRequest(ana))
      // Reading would keep the connection open.
      try await Task.sleep(for: .seconds(4))
      let text = try await connection.rest(within: 15)
      #expect(text.hasPrefix("HTTP/1.1 200 "))
      #expect(text.utf8.count < length)
      try await expectAlive(app)
    }
  }

  @Test func `a client that sends requests and reads no responses must wait`() async throws {
    try await TestApp.run(isShared: false) { app in
      let connection = try await RawConnection(to: app, receiveBuffer: 4096)
      try await connection.send(String(repeating: "GET /openapi.yaml HTTP/1.1\r\nHost: t\r\n\r\n", count: 1000))
      var (before, responses) = (-1.0, 0.0)
      while responses > before {
        try await Task.sleep(for: .milliseconds(500))
        var text = MetricsText()
        app.dependencies.metrics.write(to: &text)
        let line = text.text.split(separator: "\n").first { line in
          ["http_requests_total{", "\"GET\"", "\"/openapi.yaml\"", "\"2xx\""].allSatisfy { line.contains($0) }
        }
        (before, responses) = (responses, Double(line?.split(separator: " ").last ?? "0") ?? 0)
      }
      // The kernel keeps some megabytes.
      #expect((1..<200).contains(responses))
      try await expectAlive(app)
    }
  }

  @Test func `a client that reads a large response slowly gets all of it`() async throws {
    try await TestApp.run(limits: .with { $0.connections.idleSeconds = 1 }) { app in
      let (ana, length) = try await largeList(app)
      let connection = try await RawConnection(to: app, receiveBuffer: 4096)
      try await connection.send(listRequest(ana))
      var text = ""
      let time = try await seconds { text = try await connection.rest(within: 60, pause: 0.03) }
      #expect(text.utf8.count > length)
      #expect(time > 1.5)
    }
  }

  /// - Returns: a user, and the number of bytes in her list of events, which is more than the system's buffers hold.
  private func largeList(_ app: TestApp) async throws -> (Phone, Int) {
    let ana = try await app.signUp("ana")
    let note = String(repeating: "€", count: 2000)
    for _ in 0..<60 {
      let response = try await ana.send(
        "POST", "events", #"{"title": "x", "note": "\#(note)", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#
      )
      #expect(response.status == 201)
    }
    return (ana, try await ana.send("GET", "events?limit=100").body.utf8.count)
  }

  private func listRequest(_ phone: Phone) -> String {
    "GET /api/v1/events?limit=100 HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(phone.accessToken)\r\n\r\n"
  }

  // MARK: Kept-alive connections

  @Test func `an idle connection is closed, and a used one stays open`() async throws {
    try await TestApp.run(limits: .with { $0.connections.idleSeconds = 2 }) { app in
      let connection = try await RawConnection(to: app)
      // In total, longer than an idle connection stays open.
      for _ in 1...4 {
        try await connection.send(live, pause: 0.8)
        #expect(try await connection.response().status == 200)
      }
      #expect(try await connection.rest(within: 20).isEmpty)
    }
  }

  @Test func `pipelined requests get their responses in order`() async throws {
    try await TestApp.run { app in
      let connection = try await RawConnection(to: app)
      let ids = (1...20).map { "request-\($0)" }
      let requests = ids.map {
        "GET /\($0 == "request-7" ? "nope" : "health/ready") HTTP/1.1\r\nHost: t\r\nX-Request-Id: \($0)\r\n\r\n"
      }
      .joined()
      // In two pieces, so that one request is cut in the middle.
      try await connection.send(String(requests.prefix(500)), pause: 0.1)
      try await connection.send(String(requests.dropFirst(500)))
      for id in ids {
        let response = try await connection.response()
        #expect(response.header("X-Request-Id") == id)
        #expect(response.status == (id == "request-7" ? 404 : 200))
      }
    }
  }

  @Test func `a connection stays open after a refused request, with or without a body`() async throws {
    try await TestApp.run { app in
      let connection = try await RawConnection(to: app)
      for request in [
        "GET /nope HTTP/1.1\r\nHost: t\r\n\r\n", login("Content-Length: 4") + "nope",
        "POST /api/v1/events HTTP/1.1\r\nHost: t\r\nContent-Length: 10000\r\n\r\n"
          + String(repeating: "x", count: 10_000),
      ] {
        try await connection.send(request)
        #expect((400..<500).contains(try await connection.response().status))
        try await connection.send(live)
        #expect(try await connection.response().status == 200)
      }
    }
  }

  @Test func `a client that asks to close the connection gets its response first`() async throws {
    try await TestApp.run { app in
      for rest in ["HTTP/1.1\r\nHost: test\r\nConnection: close", "HTTP/1.0"] {
        let connection = try await RawConnection(to: app)
        try await connection.send("GET /health/live \(rest)\r\n\r\n")
        #expect(try await connection.response().status == 200)
        #expect(try await connection.rest().isEmpty)
      }
    }
  }

  @Test func `a client that expects 100 Continue gets it, unless the body is too large for every route`() async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      let body = #"{"login": "ana", "password": "correct horse ana"}"#
      let connection = try await RawConnection(to: app)
      for _ in 1...2 {
        try await connection.send(login("Expect: 100-continue\r\nContent-Length: \(body.utf8.count)"))
        #expect(try await connection.response().status == 100)
        try await connection.send(body)
        #expect(try await connection.response().status == 200)
      }
      try await connection.send(login("Expect: 100-continue\r\nContent-Length: 3000000"))
      #expect(try await connection.response().status == 413)
      #expect(try await connection.rest().isEmpty)
    }
  }

  // MARK: Invalid requests

  @Test func `a head that is too large is refused`() async throws {
    try await TestApp.run { app in
      let long = String(repeating: "a", count: 17_000)
      for (what, head) in [
        ("a long header", "GET /health/live HTTP/1.1\r\nHost: test\r\nX-Long: \(long)\r\n\r\n"),
        ("a long path", "GET /health/live?\(long) HTTP/1.1\r\nHost: test\r\n\r\n"),
        ("many headers", "GET /health/live HTTP/1.1\r\n\(String(repeating: "X-Many: a\r\n", count: 150))\r\n"),
        ("a header without end", "GET /health/live HTTP/1.1\r\nX-Endless: \(String(repeating: long, count: 10))"),
      ] {
        let connection = try await RawConnection(to: app)
        // The server may refuse it before all of it is sent.
        _ = try? await connection.send(head)
        let response = try await connection.response()
        #expect(response.status == 431, "\(what)")
        #expect(response.problem == "headers-too-large", "\(what)")
        #expect(try await connection.rest().isEmpty, "\(what)")
      }
      try await expectAlive(app)
    }
  }

  private static let garbage = [
    "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{3}\u{3}TLS\r\n\r\n", "HELLO\r\n\r\n", "GET\r\n\r\n",
    "GET / HTTP/9.9\r\nHost: t\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\nHost: t\n\n",
    "GET /health live HTTP/1.1\r\nHost: t\r\n\r\n", "GET /ü HTTP/1.1\r\nHost: t\r\n\r\n",
    "NOVERB / HTTP/1.1\r\nHost: t\r\n\r\n", "GET / HTTP/1.1\r\nX A: b\r\n\r\n", "GET / HTTP/1.1\r\nX: a\u{0}b\r\n\r\n",
    "GET / HTTP/1.1\r\n: b\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /api/v1/auth/login HTTP/1.1\r\nTransfer-Encoding: nonsense\r\n\r\n",
  ]

  @Test func `input that is not HTTP is refused, and the connection is closed`() async throws {
    try await TestApp.run { app in
      for garbage in Self.garbage {
        let connection = try await RawConnection(to: app)
        try await connection.send(garbage)
        let response = try await connection.response()
        #expect(response.status == 400, "\(garbage)")
        #expect(response.problem == "malformed-request", "\(garbage)")
        #expect(response.header("Content-Type") == "application/problem+json", "\(garbage)")
        #expect(try await connection.rest().isEmpty, "\(garbage)")
      }
      try await expectAlive(app)
    }
  }

  @Test func `random bytes get a refusal or a closed connection`() async throws {
    try await TestApp.run(limits: .with { $0.connections.headSeconds = 1 }) { app in
      for seed in 1...30 as ClosedRange<UInt64> {
        var random = SeededRandom(seed: seed)
        let bytes = (0..<Int.random(in: 1...2000, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random)
        }
        let connection = try await RawConnection(to: app)
        try await connection.send(bytes)
        let text = try await connection.rest(within: 15)
        #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"), "seed \(seed): \(text)")
      }
      try await expectAlive(app)
    }
  }

  @Test func `malformed chunks are a client error`() async throws {
    try await TestApp.run(limits: .with { $0.connections.bodyGrace = 1 }) { app in
      for chunks in ["zz\r\nx\r\n", "5\r\nabc\r\n0\r\n\r\n", "-1\r\n", "\r\n\r\n", "fffffffffffffffff\r\nabc"] {
        let connection = try await RawConnection(to: app)
        try await connection.send(login("Transfer-Encoding: chunked") + chunks)
        let text = try await connection.rest(within: 15)
        #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"), "\(chunks): \(text)")
      }
      try await expectAlive(app)
    }
  }

  @Test func `a client that disconnects in the middle of a body causes no server error`() async throws {
    try await TestApp.run { app in
      for header in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        let connection = try await RawConnection(to: app)
        try await connection.send(login(header) + "5\r\nabc")
        try await connection.finishSending()
        let text = try await connection.rest()
        #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"), "\(header): \(text)")
        for _ in 1...50 { try await RawConnection(to: app).send(login(header) + "5\r\nabc") }
      }
      try await expectAlive(app)
    }
  }

  // MARK: Stopping

  @Test func `shutdown does not wait for idle connections or incomplete heads`() async throws {
    let connections = Mutex<[RawConnection]>([])
    let stopped = Mutex(ContinuousClock.now)
    try await TestApp.run(isShared: false) { app in
      for request in [live, "", "GET /health/li", live + "GET /health/li"] {
        let connection = try await RawConnection(to: app)
        try await connection.send(request)
        if request.hasPrefix(live) { #expect(try await connection.response().status == 200) }
        connections.withLock { $0.append(connection) }
      }
      stopped.withLock { $0 = .now }
    }
    // This includes dropping the database. Connections with a request have eight seconds.
    #expect(ContinuousClock.now - stopped.withLock { $0 } < .seconds(6))
    for connection in connections.withLock({ $0 }) { #expect(try await connection.rest().isEmpty) }
  }

  @Test func `a request that is still arriving at shutdown is cut off after a while`() async throws {
    let stopped = Mutex(ContinuousClock.now)
    let connections = Mutex<[RawConnection]>([])
    try await TestApp.run(limits: .with { $0.connections.shutdownSeconds = 1 }) { app in
      let connection = try await RawConnection(to: app)
      try await connection.send(login("Content-Length: 100") + "abc", pause: 0.2)
      connections.withLock { $0.append(connection) }
      stopped.withLock { $0 = .now }
    }
    #expect(ContinuousClock.now - stopped.withLock { $0 } < .seconds(7))
    for connection in connections.withLock({ $0 }) {
      let text = try await connection.rest()
      #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"), "\(text)")
    }
  }
}
