import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Commands that destroy or publish something, as an operator types them by mistake.
@Suite struct SafetyTests {
  /// A database with all migrations and one user.
  private func withDatabase(_ body: @escaping @Sendable (_ url: String) async throws -> Void) async throws {
    try await TestApp.run { app in
      _ = try await app.signUp("ana")
      try await app.takeMails()
      try await body(app.databaseURL)
    }
  }

  private func muster(_ arguments: [String], _ url: String) async throws -> Program {
    let program = try await Program(
      Program.path("muster"), arguments, environment: Muster.ownersEnvironment(url), in: "/tmp")
    _ = try await program.exitStatus()
    return program
  }

  /// At a terminal, with one line typed.
  private func muster(_ arguments: [String], _ url: String, typing line: String) async throws -> Program {
    let command = ([Program.path("muster")] + arguments).joined(separator: " ")
    let program = try await Program(
      "/bin/sh", ["-c", "echo \(line) | \(Self.terminal(command))"],
      environment: Muster.ownersEnvironment(url), in: "/tmp")
    _ = try await program.exitStatus()
    return program
  }

  /// A shell command that runs another one at a terminal of its own.
  private static func terminal(_ command: String) -> String {
    #if os(Linux)
      "script --quiet --return --command '\(command)' /dev/null"
    #else
      "script -q /dev/null \(command)"
    #endif
  }

  private func countUsers(_ url: String) async throws -> Int {
    try await ScriptConnection.run(url) { try $0.rows("SELECT count(*) FROM users")[0][0] }
  }

  // MARK: Migrations

  @Test func `undoing migrations counts the rows it deletes, and asks first`() async throws {
    try await TestCluster.withDatabase { url in
      _ = try await muster(["migrate"], url)
      try await ScriptConnection.run(url) {
        try $0.script("INSERT INTO users (id, username, display_name) VALUES (uuid_v7(), 'ana', 'Ana')")
      }
      let down = ["migrate", "down", "--to", "0000"]
      let silent = try await muster(down, url)
      #expect(try await silent.exitStatus() != 0)
      #expect(silent.standardOutput.contains("deletes 1 row of users"), "\(silent.standardOutput)")
      #expect(silent.standardError.contains("--yes"))
      #expect(try await countUsers(url) == 1)
      let refused = try await muster(down, url, typing: "no")
      #expect(refused.standardOutput.contains("Type yes to continue"), "\(refused.standardOutput)")
      #expect(refused.standardOutput.contains("nothing was changed"))
      #expect(try await countUsers(url) == 1)
      let agreed = try await muster(down, url, typing: "yes")
      #expect(agreed.standardOutput.contains("undone 0001_users"), "\(agreed.standardOutput)")
      let again = try await muster(down, url)
      #expect(again.standardOutput == "nothing to undo\n" && again.standardError == "")
    }
  }

  @Test func `migrations are not undone below connected programs, unless the operator insists`() async throws {
    try await withDatabase { url in
      let server = try await Muster.serve(environment: Muster.environment(url))
      defer { server.signal(SIGKILL) }
      _ = try await server.address()
      let down = ["migrate", "down", "--to", "0011", "--yes"]
      let refused = try await muster(down, url)
      #expect(try await refused.exitStatus() != 0)
      #expect(refused.standardError.contains("muster serve"), "\(refused.standardError)")
      #expect(try await muster(["migrate", "verify"], url).standardOutput == "verified\n")
      let forced = try await muster(down + ["--while-connected"], url)
      #expect(forced.standardOutput.contains("undone 0012_visitors"), "\(forced.standardError)")
      let up = try await muster(["migrate"], url)
      #expect(up.standardOutput.contains("applied 0012_visitors"))
    }
  }

  @Test func `a dry run prints the pending statements and applies none`() async throws {
    try await TestCluster.withDatabase { url in
      let dry = try await muster(["migrate", "up", "--dry-run"], url)
      #expect(dry.standardOutput.contains("-- 0001_users\n") && dry.standardOutput.contains("CREATE TABLE users"))
      #expect(!dry.standardOutput.contains("DROP TABLE users"))
      let status = try await muster(["migrate", "status"], url).standardOutput
      #expect(!status.contains("applied"))
      _ = try await muster(["migrate"], url)
      #expect(try await muster(["migrate", "up", "--dry-run"], url).standardOutput == "up to date\n")
    }
  }

  // MARK: The demo

  @Test func `the demo's published passwords come into a database with other users only if the operator agrees`()
    async throws
  {
    try await withDatabase { url in
      let refused = try await muster(["seed", "demo"], url)
      #expect(try await refused.exitStatus() != 0)
      #expect(refused.standardError.contains("passwords"), "\(refused.standardError)")
      #expect(try await countUsers(url) == 1)
      let agreed = try await muster(["seed", "demo", "--yes"], url)
      #expect(try await agreed.exitStatus() == 0, "\(agreed.standardError)")
      #expect(try await countUsers(url) > 1)
    }
  }

  // MARK: Starting without the database

  @Test func `processes that start while the database is away wait for it`() async throws {
    try await withDatabase { url in
      let proxy = try FaultProxy(inFrontOf: url)
      defer { proxy.close() }
      proxy.mode = .refuse
      let environment = Muster.environment(url).merging(
        ["DATABASE_URL": proxy.url(for: TestCluster.limited(url))]) { $1 }
      let server = try await Muster.serve(environment: environment)
      defer { server.signal(SIGKILL) }
      let worker = try await Program(Program.path("muster"), ["worker"], environment: environment, in: "/tmp")
      defer { worker.signal(SIGKILL) }
      let address = try await server.address()
      func status(_ path: String) async throws -> String {
        let curl = try await Program(
          "/usr/bin/env", ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "\(address)\(path)"])
        _ = try await curl.exitStatus()
        return curl.standardOutput
      }
      #expect(try await status("/health/live") == "200")
      #expect(try await status("/health/ready") == "503")
      // With other keys than the sessions', it would log everyone out.
      #expect(try await status("/api/v1/users/me") == "503")
      try await worker.waitForOutput("the database is unavailable")
      proxy.mode = .forward
      var ready = ""
      for _ in 0..<100 where ready != "200" {
        ready = try await status("/health/ready")
        try await Task.sleep(for: .milliseconds(100))
      }
      #expect(ready == "200")
      try await worker.waitForOutput(#""message":"started""#)
      for program in [server, worker] {
        program.signal(SIGTERM)
        #expect(try await program.exitStatus() == 0)
      }
    }
  }

  @Test func `a server that refuses the login ends the process with one line`() async throws {
    try await withDatabase { url in
      let wrong = url.replacing(/\/test_[a-z0-9]+/, with: "/no_such_database")
      for command in ["serve", "worker"] {
        let program = try await Program(
          Program.path("muster"), [command],
          environment: Muster.environment(url).merging(["DATABASE_URL": wrong]) { $1 }, in: "/tmp")
        #expect(try await program.exitStatus() != 0)
        #expect(program.standardError.split(separator: "\n").count == 1, "\(program.standardError)")
        #expect(program.standardError.contains("no_such_database"))
      }
    }
  }

  // MARK: Logs

  @Test func `a failure that repeats is logged once in ten seconds, with the number of lines it stands for`()
    async throws
  {
    try await TestApp.run { app in
      try await app.gatherReaders(40)
      try await app.enqueue(rounds: 0..<1, to: 40)
      // No phone can be reached: Apple's key is not configured.
      try await app.database.execute("UPDATE devices SET platform = 'ios', environment = 'production'")
      let program = try await Program(
        Program.path("muster"), ["worker", "--once"], environment: Muster.environment(app.databaseURL), in: "/tmp")
      #expect(try await program.exitStatus() == 0)
      let lines = try program.logLines().filter { $0["message"].string == "not delivered" }
      #expect(lines.count == 1, "\(lines.count)")
      #expect(lines.first?["type"].string == "test" && lines.first?["user"].string != nil)
      try await app.forgetDeliveries()
    }
  }
}
