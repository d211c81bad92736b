import Foundation
import HTTPServer
import NIOCore
import Synchronization
import Testing
import TestSupport

@testable import App

/// HTTP/2, which exists over TLS only, and has the limits of HTTP/1.
@Suite struct HTTP2Tests {
  private func run(
    _ limits: ServiceLimits = ServiceLimits(),
    _ body: @escaping @Sendable (TestApp, TestCertificate) async throws -> Void
  ) async throws {
    let certificate = try await TestCertificate()
    try await TestApp.run(certificate.environment, limits: limits) { app in try await body(app, certificate) }
  }

  private func expectAlive(_ connection: HTTP2Connection) async throws {
    #expect(try await connection.send("GET", "/health/live").status == 200)
  }

  // MARK: Requests

  @Test func `the API works over HTTP/2`() async throws {
    try await run { app, certificate in
      try await certificate.trusted {
        let (ana, ben) = try await app.friends("ana", "ben")
        let event = try #require(try await ana.createEvent(inviting: [ben])["id"].string)
        try await ben.answer("going", to: event)
        let response = try await ana.send("GET", "events")
        #expect(response.status == 200)
        let tag = try #require(response.header("ETag"))
        let unchanged = try await ana.send("GET", "events", headers: [("If-None-Match", tag)])
        #expect(unchanged.status == 304 && unchanged.header("Content-Length") == nil)
        #expect(try await ana.send("HEAD", "events").body.isEmpty)
        #expect(try await ana.send("GET", "nowhere").problem == "route-not-found")
        #expect(try await ana.send("POST", "users/me").problem == "method-not-allowed")
        #expect(try await app.send("GET", "users/me").problem == "no-token")
        #expect(try await ana.send("POST", "events", "nope").problem == "malformed-body")
        #expect(try await ana.send("GET", "notifications/stream").status == 200)
        let empty = try await ana.send("POST", "auth/logout")
        #expect(empty.status == 204 && empty.header("Content-Length") == nil)
        try await app.takeNotifications()
      }
    }
  }

  @Test func `many requests share one connection`() async throws {
    try await run { app, certificate in
      let ana = try await certificate.trusted { try await app.signUp("ana") }
      let connection = try await HTTP2Connection(to: app)
      let headers = [("authorization", "Bearer \(ana.accessToken)")]
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for _ in 0..<300 { group.addTask { try await connection.send("GET", "/api/v1/users/me", headers).status } }
        return try await group.reduce(into: Set<Int>()) { $0.insert($1) }
      }
      #expect(statuses == [200])
    }
  }

  @Test func `a body needs no length, and may announce itself with Expect`() async throws {
    try await run { app, certificate in
      _ = try await certificate.trusted { try await app.signUp("ana") }
      let connection = try await HTTP2Connection(to: app)
      for more in [[], [("expect", "100-continue")]] {
        let headers = [("content-type", "application/json")] + more
        let login = try await connection.begin("POST", "/api/v1/auth/login", headers, isLast: false)
        try await login.send(#"{"login": "ana", "#)
        try await login.send(#""password": "correct horse ana"}"#, isLast: true)
        let response = try await login.response.get()
        #expect(response.status == 200, "\(response.body)")
      }
    }
  }

  @Test func `a request without one authority is refused, and the connection stays open`() async throws {
    try await run { app, _ in
      let connection = try await HTTP2Connection(to: app)
      for (authority, hosts) in [
        (nil, []), (nil, ["localhost"]), ("localhost", ["elsewhere"]), ("localhost", ["localhost", "localhost"]),
      ] as [(String?, [String])] {
        let headers = hosts.map { ("host", $0) }
        let response = try await connection.begin("GET", "/health/live", headers, authority: authority).response.get()
        #expect(response.status == 400 && response.problem == "malformed-request", "\(authority ?? "none") \(hosts)")
        #expect(response.header("X-Content-Type-Options") == "nosniff")
      }
      let same = try await connection.begin("GET", "/health/live", [("host", "localhost")]).response.get()
      #expect(same.status == 200)
      let many = (1...120).map { ("x-many-\($0)", "a") }
      #expect(try await connection.send("GET", "/health/live", many).problem == "headers-too-large")
      try await expectAlive(connection)
    }
  }

  @Test func `a path begins with a slash`() async throws {
    try await run { app, _ in
      let connection = try await HTTP2Connection(to: app)
      for path in ["health/live", "https://localhost/health/live", "*", "?x=/health/live"] {
        #expect(try await connection.send("GET", path).problem == "malformed-request", "\(path)")
      }
      #expect(try await connection.send("OPTIONS", "*").problem == "route-not-found")
      try await expectAlive(connection)
    }
  }

  @Test func `a header that is not ASCII matches nothing`() async throws {
    try await run { app, _ in
      let connection = try await HTTP2Connection(to: app)
      let path = "/api/v1/users/me"
      #expect(try await connection.send("GET", path, [("authorization", "Bearer é")]).problem == "no-token")
      #expect(try await connection.send("GET", path, [("authorization", "Bearer xéx")]).problem == "invalid-token")
      #expect(try await connection.send("GET", "/health/live?é").problem == "malformed-request")
    }
  }

  @Test func `a refused upload gets its response before the body has arrived`() async throws {
    try await run { app, _ in
      let connection = try await HTTP2Connection(to: app)
      let headers = [("content-type", "application/json"), ("content-length", "3000000")]
      let login = try await connection.begin("POST", "/api/v1/auth/login", headers, isLast: false)
      let response = try await login.response.get()
      #expect(response.problem == "body-too-large")
      // The server wants no more of it.
      try await login.stream.closeFuture.get()
      try await expectAlive(connection)
    }
  }

  // MARK: Clients that are too slow

  @Test func `a body that arrives too slowly ends its request, and the connection stays open`() async throws {
    try await run(.with { $0.connections.bodyGrace = 1 }) { app, _ in
      let connection = try await HTTP2Connection(to: app)
      for headers in [[("content-length", "1000")], []] {
        let login = try await connection.begin("POST", "/api/v1/auth/login", headers, isLast: false)
        try await login.send("x")
        await #expect(throws: (any Error).self) { try await login.response.get() }
        try await expectAlive(connection)
      }
    }
  }

  @Test func `a response that is not read ends its request, and the connection stays open`() async throws {
    try await run(.with { $0.connections.idleSeconds = 1 }) { app, certificate in
      // More than a client that does not read allows the server to send.
      let note = String(repeating: "€", count: 2000)
      let event = #"{"title": "x", "note": "\#(note)", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#
      let ana = try await certificate.trusted {
        let ana = try await app.signUp("ana")
        for _ in 0..<60 { #expect(try await ana.send("POST", "events", event).status == 201) }
        return ana
      }
      let connection = try await HTTP2Connection(to: app)
      let headers = [("authorization", "Bearer \(ana.accessToken)")]
      let path = "/api/v1/events?limit=100"
      let read = try await connection.begin("GET", path, headers).response.get()
      #expect(read.body.utf8.count > 200_000)
      let unread = try await connection.begin("GET", path, headers, reads: false)
      // Other requests keep the connection in use.
      let waiting = Task {
        while !Task.isCancelled { try await expectAlive(connection) }
      }
      try await unread.stream.closeFuture.get()
      waiting.cancel()
      _ = await waiting.result
      await #expect(throws: (any Error).self) { try await unread.response.get() }
      try await expectAlive(connection)
    }
  }

  @Test func `a connection is closed if it begins no request, or stays idle after one`() async throws {
    try await run(.with { $0.connections.headSeconds = 1 }) { app, _ in
      try await HTTP2Connection(to: app).channel.closeFuture.get()
    }
    try await run(.with { ($0.connections.idleSeconds, $0.connections.lingerSeconds) = (1, 1) }) { app, _ in
      let idle = try await HTTP2Connection(to: app)
      try await expectAlive(idle)
      try await idle.channel.closeFuture.get()
    }
  }

  @Test func `a client that floods a connection with resets loses it`() async throws {
    try await run { app, _ in
      let connection = try await HTTP2Connection(to: app)
      let resets = Mutex(0)
      let flood = Task {
        for _ in 1...100_000 {
          let login = try await connection.begin("POST", "/api/v1/auth/login", isLast: false)
          // Closing resets the stream, which reports that as an error.
          try? await login.stream.close()
          resets.withLock { $0 += 1 }
        }
      }
      try await connection.channel.closeFuture.get()
      flood.cancel()
      _ = await flood.result
      // Otherwise the idle limit may have closed it.
      #expect((200..<100_000).contains(resets.withLock { $0 }))
      try await expectAlive(try await HTTP2Connection(to: app))
    }
  }
}
