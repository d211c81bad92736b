import Foundation
import TestSupport
import Testing

@testable import App

/// The logs that operators read.
@Suite struct LogTests {
  private func muster(_ arguments: String..., environment: [String: String] = [:]) async throws -> Program {
    let program = try await Program(Program.path("muster"), arguments, environment: environment, in: "/tmp")
    _ = try await program.exitStatus()
    return program
  }

  /// Whether a member is a JSON number, not text that looks like one.
  private func isNumber(_ json: JSON) -> Bool {
    if case .number = json { true } else { false }
  }

  // MARK: Requests

  @Test func `a request's line names the user and the session, and its numbers are JSON numbers`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      for (addresses, address) in [("off", nil), ("on", "127.0.0.1")] as [(String, String?)] {
        let more = ["MUSTER_LOG_REQUESTS": "all", "MUSTER_LOG_ADDRESSES": addresses]
        let process = try await ServiceProcess(of: app, more)
        defer { process.program.signal(SIGKILL) }
        let unknown = User.ID.new().description
        let refused = try await process.app.send("GET", "events/\(unknown)", token: ana.accessToken)
        #expect(refused.problem == "event-not-found")
        #expect(try await process.app.send("GET", "users/me").status == 401)
        try await process.program.waitForOutput("no-token")

        let lines = try process.program.logLines().filter { $0["message"].string == "request" }
        let line = try #require(lines.first { $0["problem"].string == "event-not-found" })
        #expect(line["status"] == .number("404"))
        #expect(isNumber(line["duration_ms"]))
        #expect(line["process"].string == "serve")
        #expect(line["method"].string == "GET")
        #expect(line["route"].string == "/api/v1/events/{id}")
        #expect(line["user"].string == ana.id)
        #expect(line["session"].string == (try ana.session.description))
        #expect(line["request"].string == refused.header("X-Request-Id"))
        #expect(line["address"].string == address)
        #expect(line["error"] == .null)
        let open = try #require(lines.first { $0["problem"].string == "no-token" })
        #expect(open["user"] == .null && open["session"] == .null)
      }
    }
  }

  @Test func `the lines of logins and refreshes name the user and the session, also of failed ones`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      let process = try await ServiceProcess(of: app, ["MUSTER_LOG_REQUESTS": "all"])
      defer { process.program.signal(SIGKILL) }
      func line(of response: APIResponse) async throws -> JSON {
        let id = try #require(response.header("X-Request-Id"))
        try await process.program.waitForOutput(id)
        return try #require(try process.program.logLines().first { $0["request"].string == id })
      }
      let wrong = try await line(
        of: try await process.app.send("POST", "auth/login", body: #"{"login": "ana", "password": "not-hers-at-all"}"#))
      #expect(wrong["problem"].string == "wrong-credentials")
      #expect(wrong["user"].string == ana.id && wrong["session"] == .null)
      let unknown = try await line(
        of: try await process.app.send("POST", "auth/login", body: #"{"login": "zoe", "password": "not-hers-at-all"}"#))
      #expect(unknown["user"] == .null)
      let refreshed = try await process.app.send(
        "POST", "auth/refresh", body: #"{"refreshToken": "\#(ana.refreshToken)"}"#)
      let good = try await line(of: refreshed)
      #expect(good["status"] == .number("200") && good["user"].string == ana.id)
      #expect(good["session"].string == (try ana.session.description))
    }
  }

  @Test func `an untrusted proxy is counted, and warned of once`() async throws {
    try await TestApp.run { app in
      for (trusted, count) in [("", 1), ("127.0.0.1", 0)] {
        let process = try await ServiceProcess(of: app, ["MUSTER_TRUSTED_PROXIES": trusted])
        defer { process.program.signal(SIGKILL) }
        for _ in 1...3 {
          let response = try await process.app.send(
            "GET", "/health/live", headers: [("X-Forwarded-For", "203.0.113.7")])
          #expect(response.status == 200)
        }
        process.program.signal(SIGTERM)
        _ = try await process.program.exitStatus()
        let warnings = try process.program.logLines().filter {
          $0["message"].string?.contains("MUSTER_TRUSTED_PROXIES") == true
        }
        #expect(warnings.count == count, "\(trusted)")
      }
    }
  }

  @Test func `during a database outage a few lines stand for many requests, and one reports the end`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.takeMails()
      let proxy = try FaultProxy(inFrontOf: app.databaseURL)
      defer { proxy.close() }
      let process = try await ServiceProcess(of: app, databaseURL: proxy.url(for: app.databaseURL))
      defer { process.program.signal(SIGKILL) }
      #expect(try await process.app.send("GET", "users/me", token: ana.accessToken).status == 200)

      proxy.mode = .refuse
      proxy.hangUp()
      for _ in 1...40 {
        #expect(try await process.app.send("GET", "users/me", token: ana.accessToken).status == 503)
      }
      proxy.mode = .forward
      try await eventually {
        _ = try await process.app.send("GET", "/health/ready")
        return process.program.standardError.contains(#""message":"recovered""#)
      }
      let lines = try process.program.logLines()
      let failures = lines.filter { $0["message"].string == "request" }
      #expect(failures.first?["problem"].string == "database-unavailable")
      #expect(failures.first?["status"] == .number("503"))
      // One line every ten seconds for each problem.
      #expect((1...10).contains(failures.count), "\(failures.count)")
      let recovery = try #require(lines.first { $0["message"].string == "recovered" })
      #expect(recovery["problem"].string == "database-unavailable")
      #expect(recovery["failures"].int ?? 0 >= 40)
      #expect(!process.program.standardError.contains("AppError("))
    }
  }

  @Test func `repeated failures log one line at first, then one in ten seconds with a count, and their end`() {
    var outages = Outages()
    let start = ContinuousClock.now
    func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }
    #expect(outages.succeeded(at: at(0)).isEmpty)
    #expect(outages.failed("busy", at: at(0)) == 1)
    for second in 1...9 { #expect(outages.failed("busy", at: at(Double(second))) == nil) }
    #expect(outages.failed("database-unavailable", at: at(9.5)) == 1)
    #expect(outages.failed("busy", at: at(10)) == 10)
    #expect(outages.failed("busy", at: at(10.5)) == nil)
    // A success right after a failure is not the end.
    #expect(outages.succeeded(at: at(10.4)).map(\.problem) == [])
    #expect(outages.succeeded(at: at(10.6)).map(\.problem) == ["database-unavailable"])
    #expect(outages.succeeded(at: at(20)) == [Outages.Ended(problem: "busy", failures: 12, duration: .seconds(10.5))])
    #expect(outages.isEmpty)
    #expect(outages.failed("busy", at: at(21)) == 1)
  }

  // MARK: Programs

  @Test func `starts and stops are logged with the version`() async throws {
    try await TestApp.run { app in
      for command in [["serve", "--port", "0"], ["worker"]] {
        let program = try await Program(
          Program.path("muster"), command, environment: Muster.environment(app.databaseURL), in: "/tmp")
        defer { program.signal(SIGKILL) }
        try await program.waitForOutput(#""message":"started""#)
        program.signal(SIGTERM)
        #expect(try await program.exitStatus() == 0)
        let lines = try program.logLines()
        for message in ["started", "stopped"] {
          let line = try #require(lines.first { $0["message"].string == message }, "\(message)")
          #expect(line["version"].string == Release.version)
          #expect(line["process"].string == command[0])
        }
      }
    }
  }

  @Test func `the version is the release's`() async throws {
    let program = try await muster("--version")
    #expect(try await program.exitStatus() == 0)
    #expect(program.standardOutput == Release.version + "\n")
  }

  @Test func `a failing program logs the reason in JSON, unless it runs in a terminal`() async throws {
    for (arguments, process, part, status) in [
      (["serve"], "serve", "DATABASE_URL", 1), (["worker", "--concurrency", "0"], "worker", "--concurrency", 64),
      (["migrate", "status"], "migrate", "DATABASE_URL", 1), (["stamps", "move"], "stamps", "DATABASE_URL", 1),
      (["nonsense"], "muster", "nonsense", 64),
    ] as [([String], String, String, Int32)] {
      let program = try await Program(Program.path("muster"), arguments, in: "/tmp")
      #expect(try await program.exitStatus() == status, "\(arguments)")
      let lines = try program.logLines()
      #expect(lines.count == 1)
      let line = try #require(lines.first)
      #expect(line["level"].string == "critical")
      #expect(line["process"].string == process)
      #expect(line["message"].string?.contains(part) == true, "\(line)")
      #expect(line["time"].string?.isEmpty == false)
    }
  }
}
