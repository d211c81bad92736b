import Foundation
import Postgres
import Testing
import TestSupport

@testable import App
@testable import HTTPServer

/// How many connections may be open, and what happens to the next one.
@Suite struct ConnectionLimitTests {
  private let live = "GET /health/live HTTP/1.1\r\nHost: test\r\n\r\n"

  /// Opens a connection that gets a response and stays open.
  private func open(_ app: TestApp) async throws -> RawConnection {
    let connection = try await RawConnection(to: app)
    try await connection.send(live)
    #expect(try await connection.response().status == 200)
    return connection
  }

  /// Expects that a connection beyond a limit is closed without a response.
  private func expectRefusal(_ app: TestApp, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let connection = try await RawConnection(to: app)
    // It may be closed before this is sent.
    _ = try? await connection.send(live)
    #expect(try await connection.rest().isEmpty, sourceLocation: sourceLocation)
  }

  private func metrics(_ app: TestApp) -> String {
    var text = MetricsText()
    app.dependencies.metrics.write(to: &text)
    return text.text
  }

  @Test(arguments: [("MUSTER_MAX_CONNECTIONS", "total"), ("MUSTER_CONNECTIONS_PER_ADDRESS", "address")])
  func `a connection beyond a limit is closed at once, and the others stay open`(
    variable: String, label: String
  ) async throws {
    try await TestApp.run([variable: "3"]) { app in
      let connections = [try await open(app), try await open(app), try await open(app)]
      try await expectRefusal(app)
      try await expectRefusal(app)
      #expect(metrics(app).contains("muster_connections_refused_total{limit=\"\(label)\"} 2\n"))
      #expect(metrics(app).contains("muster_connections 3\n"))
      for connection in connections {
        try await connection.send(live)
        #expect(try await connection.response().status == 200)
      }
      // A connection that ends makes room.
      try await connections[0].finishSending()
      #expect(try await connections[0].rest().isEmpty)
      try await eventually { metrics(app).contains("muster_connections 2\n") }
      _ = try await open(app)
    }
  }

  @Test func `the limit per address does not apply to trusted proxies, and can be switched off`()
    async throws
  {
    for environment in [
      ["MUSTER_CONNECTIONS_PER_ADDRESS": "1", "MUSTER_TRUSTED_PROXIES": "127.0.0.1"],
      ["MUSTER_CONNECTIONS_PER_ADDRESS": "0"],
    ] {
      try await TestApp.run(environment) { app in
        let connections = [try await open(app), try await open(app)]
        #expect(connections.count == 2)
      }
    }
  }

  @Test func `an IPv6 network counts as one address, for new and for closed connections`() throws {
    let gate = ConnectionGate(limit: 100, limitPerAddress: 2, metrics: MetricsRegistry())
    let addresses = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"].map { IPAddress($0) }
    #expect(addresses.map { gate.enter($0) } == [nil, nil, .address, nil])
    gate.leave(addresses[1])
    #expect(gate.enter(addresses[2]) == nil)
    #expect(gate.open == 3)
    // Without an address, such as on a Unix socket, only the total counts.
    for _ in 1...5 { #expect(gate.enter(nil) == nil) }
  }

  @Test func `the limit leaves files for the database, however low it is`() {
    for files in [64, 256, 1024, 65_536] {
      let limit = ConnectionGate.limit(files: files, pool: 16)
      #expect(limit >= files / 4 && limit < files)
      if files >= 1024 { #expect(files - limit > 2 * 16 + 16) }
    }
  }

  @Test func `a service whose connections could use up its files does not start`() async throws {
    try await TestApp.run { app in
      let command = "ulimit -n 200 && exec '\(Program.path("muster"))' serve --port 0"
      let program = try await Program(
        "/bin/sh", ["-c", command],
        environment: Muster.environment(app.databaseURL).merging(["MUSTER_MAX_CONNECTIONS": "100"]) { $1 })
      #expect(try await program.exitStatus() != 0)
      #expect(
        program.standardError.contains(
          "MUSTER_MAX_CONNECTIONS is 100, but a limit of 200 open files leaves room for 72 connections"))
    }
  }

  #if os(Linux)
    /// Leaves a running process room for some more files.
    ///
    /// - Returns: the limit.
    private func limitFiles(of program: Program, toMore count: Int) async throws -> Int {
      // The list of its files is hidden from other accounts than root. The size of its table is at least their number.
      let status = try String(contentsOfFile: "/proc/\(program.pid)/status", encoding: .utf8)
      let size = try #require(status.firstMatch(of: /FDSize:\s*(\d+)/).flatMap { Int($0.1) })
      let limit = size + count
      let prlimit = try await Program("/usr/bin/prlimit", ["--pid", "\(program.pid)", "--nofile=\(limit)"])
      #expect(try await prlimit.exitStatus() == 0)
      return limit
    }

    @Test func `a process that runs out of open files waits, and then accepts again`() async throws {
      try await TestApp.run { app in
        let ana = try await app.signUp("ana")
        let program = try await Program(
          Program.path("muster"), ["serve", "--port", "0"],
          environment: Muster.environment(app.databaseURL).merging([
            "MUSTER_METRICS_LISTEN": "127.0.0.1:0", "MUSTER_CONNECTIONS_PER_ADDRESS": "0",
          ]) { $1 })
        defer { program.signal(SIGKILL) }
        let service = try await app.served(by: program)
        try await program.waitForOutput("/metrics")
        let metrics = try #require(program.standardError.firstMatch(of: /(http:\/\/127\.0\.0\.1:\d+)\/metrics/)?.1)
        let first = try await RawConnection(to: service)
        try await first.send(live)
        #expect(try await first.response().status == 200)
        let limit = try await limitFiles(of: program, toMore: 40)
        let start = ContinuousClock.now
        var connections: [RawConnection] = []
        for _ in 1...limit { connections.append(try await RawConnection(to: service)) }
        try await program.waitForOutput("connections cannot be accepted")
        // A program cannot be started now. This must not end the process.
        try await first.send(
          "PUT /api/v1/users/me/picture HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(ana.accessToken)\r\n"
            + "Content-Type: image/webp\r\nContent-Length: \(Sample.webpText.utf8.count)\r\n\r\n\(Sample.webpText)")
        #expect(try await first.response().status == 503)
        // It cannot replace connections to the database that it loses meanwhile.
        try await app.database.execute(
          """
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND application_name = 'muster serve'
          """)
        connections = []
        do {
          try await eventually(within: .seconds(120)) {
            guard program.isRunning else { throw Unexpected("the service has ended") }
            return (try? await service.sendRaw("GET", "/health/ready").status) == 200
          }
        } catch {
          throw Unexpected("\(error). The service wrote: \(program.standardError.suffix(3000))")
        }
        #expect(program.standardError.contains("connections are accepted again"))
        // Without a pause, it would have tried about a hundred thousand times per second.
        let other = TestApp(url: String(metrics), databaseURL: app.databaseURL, dependencies: app.dependencies)
        let scraped = try await other.send("GET", "/metrics").body
        let failures = try #require(scraped.firstMatch(of: /\nmuster_accept_failures_total (\d+)\n/)?.1)
        let seconds = max(1, (ContinuousClock.now - start) / .seconds(1))
        #expect((1.0..<100 * seconds).contains(try #require(Double(failures))))
        program.signal(SIGTERM)
        #expect(try await program.exitStatus() == 0)
      }
    }
  #endif
}
