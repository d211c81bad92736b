import Foundation
import Logging
import Postgres
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import App

/// The view of load balancers while a process runs and stops.
@Suite struct ShutdownTests {
  @Test func `the readiness check responds even if the database does not`() async throws {
    try await TestApp.run { app in
      #expect(try await app.send("GET", "/health/ready").status == 200)
      try await app.database.transaction { transaction in
        try await transaction.rows("LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE")
        let start = ContinuousClock.now
        let response = try await app.send("GET", "/health/ready")
        #expect(response.status == 503)
        #expect(response.problem == "database-unavailable")
        // The check's limit is under a second. A statement's own limit is ten.
        #expect(ContinuousClock.now - start < .seconds(6))
      }
      #expect(try await app.send("GET", "/health/ready").status == 200)
    }
  }

  @Test func `a process turns unready while the database has a breaking migration that it does not know`() async throws
  {
    try await TestApp.run { app in
      func readiness() async throws -> String? {
        let response = try await app.send("GET", "/health/ready")
        return response.status == 200 ? nil : response.problem
      }
      try await app.database.execute(
        "INSERT INTO schema_migrations (version, name, checksum, breaking) VALUES ('9998', '9998_wide', '', false)")
      try await app.dependencies.schemaWatch.read()
      #expect(try await readiness() == nil)
      try await app.database.execute(
        "INSERT INTO schema_migrations (version, name, checksum, breaking) VALUES ('9999', '9999_new', '', true)")
      // The service checks by itself.
      try await eventually { try await readiness() == "migrations-ahead" }
      #expect(app.dependencies.schemaWatch.breaking == ["9999_new"])
      // The migration is undone.
      try await app.database.execute("DELETE FROM schema_migrations WHERE version = '9999'")
      try await app.dependencies.schemaWatch.read()
      #expect(try await readiness() == nil)
    }
  }

  @Test func `a process that stops becomes unready first, and keeps serving while it drains`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      let process = try await ServiceProcess(of: app, ["MUSTER_DRAIN_SECONDS": "300"])
      defer { process.program.signal(SIGKILL) }
      #expect(try await process.app.sendRaw("GET", "/health/ready").status == 200)
      process.program.signal(SIGTERM)
      try await process.program.waitForOutput(#""message":"stopping""#)
      let unready = try await process.app.sendRaw("GET", "/health/ready")
      #expect(unready.status == 503)
      #expect(unready.problem == "stopping")
      // On new connections.
      #expect(try await process.app.sendRaw("GET", "/health/live").status == 200)
      #expect(try await process.app.sendRaw("GET", "/api/v1/users/me", token: ana.accessToken).status == 200)
    }
  }

  @Test func `a process exits cleanly after it has drained`() async throws {
    try await TestApp.run { app in
      try await ServiceProcess.run(of: app, ["MUSTER_DRAIN_SECONDS": "1"]) { service in
        let response = try await service.send("GET", "/health/ready")
        #expect(response.status == 200)
      }
    }
  }

  @Test func `a request that is cut off when the process stops is not logged as an error`() async throws {
    let log = CapturedLog()
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      let configuration = try await MusterConfiguration.load(
        environment: Muster.environment(app.databaseURL), file: nil)
      let dependencies = try await Dependencies(
        configuration, name: "stopped", logger: log.logger(), endedSessionsAge: .seconds(5))
      let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
      let service = makeService(dependencies, host: "127.0.0.1", port: 0) { port in _ = continuation.yield(port) }
      let running = Task { try await service.run() }
      var iterator = ports.makeAsyncIterator()
      let port = try #require(await iterator.next())
      let stopped = TestApp(
        url: "http://127.0.0.1:\(port)", databaseURL: app.databaseURL, dependencies: dependencies)
      try await app.database.transaction { transaction in
        try await transaction.rows("SELECT FROM users FOR UPDATE")
        let request = Task {
          try? await stopped.sendRaw(
            "PATCH", "/api/v1/users/me", body: Array(#"{"displayName": "Ana"}"#.utf8), token: ana.accessToken)
        }
        try await app.waitForLocks(1)
        // A service group does the same to services that run past its time limit.
        running.cancel()
        _ = await running.result
        _ = await request.value
      }
      await dependencies.close()
      let lines = log.lines.filter { $0.message == "request" }
      #expect(lines.map { "\($0.metadata["status"] ?? "")" } == ["503"])
      #expect(lines.map { "\($0.metadata["problem"] ?? "")" } == ["stopping"])
      #expect(lines.allSatisfy { $0.level < .error }, "\(log.text)")
    }
  }
}
