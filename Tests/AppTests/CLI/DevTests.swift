import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing

@testable import App

/// `muster dev` as a real process.
@Suite(.serialized) struct DevTests {
  private func withFolder(_ body: (String) async throws -> Void) async throws {
    let folder = "/tmp/muster-dev-\(UUID().uuidString.prefix(8))"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await body(folder)
  }

  private func start(_ folder: String, port: Int, _ more: String...) async throws -> Program {
    try await start(folder, port: port, more)
  }

  private func start(_ folder: String, port: Int, _ more: [String]) async throws -> Program {
    try await Program(
      Program.path("muster"), ["dev", "--data", folder, "--port", String(port)] + more,
      environment: ["MUSTER_SCRYPT": "ln=4,r=8,p=1", "MUSTER_METRICS_LISTEN": "off"], in: "/tmp")
  }

  /// A port below the ephemeral range, so that no outgoing connection uses it.
  private static func freePort() -> Int { Int.random(in: 20_000..<30_000) }

  private func postmasterPID(_ folder: String) -> Int32? {
    let file = try? String(contentsOfFile: folder + "/data/postmaster.pid", encoding: .utf8)
    return file.flatMap { Int32($0.prefix { $0.isNumber }) }
  }

  @Test func `one command serves the demo and leaves no process behind`() async throws {
    try await withFolder { folder in
      let port = Self.freePort()
      for signal in [SIGINT, SIGTERM] {
        let dev = try await start(folder, port: port)
        try await dev.waitForOutput("Ctrl-C stops it")
        let postmaster = try #require(postmasterPID(folder))
        #expect(kill(postmaster, 0) == 0)

        // The printed line works when pasted.
        let line = try #require(dev.standardOutput.split(separator: "\n").first { $0.hasPrefix("Try: ") }?.dropFirst(5))
        let curl = try await Program("/bin/sh", ["-c", String(line)])
        #expect(try await curl.exitStatus() == 0)
        let login = try JSON(parsing: curl.standardOutput.utf8)
        let token = try #require(login["accessToken"].string)
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/api/v1/friends")
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        let friends = try JSON(parsing: try await response.body.collect(upTo: 1 << 20).readableBytesView)
        #expect(friends["items"].array.count == 5)

        // Mails are written to the log.
        var registration = HTTPClientRequest(url: "http://127.0.0.1:\(port)/api/v1/auth/register")
        registration.method = .POST
        registration.headers.add(name: "Content-Type", value: "application/json")
        let body = #"{"username": "gil-\#(signal)", "email": "gil\#(signal)@example.com", "password": "correct horse"}"#
        registration.body = .bytes(ByteBuffer(string: body))
        #expect(try await HTTPClient.shared.execute(registration, timeout: .seconds(10)).status == .created)
        try await dev.waitForOutput("mm1.")

        dev.signal(signal)
        #expect(try await dev.exitStatus(within: .seconds(15)) == 0, "\(dev.standardError)")
        try await eventually { kill(postmaster, 0) != 0 }
      }
    }
  }

  @Test func `the examples of the page at docs work when pasted`() async throws {
    try await withFolder { folder in
      let dev = try await start(folder, port: Self.freePort())
      try await dev.waitForOutput("Ctrl-C stops it")
      let address = try #require(dev.standardOutput.firstMatch(of: /(http:\/\/127\.0\.0\.1:\d+)\/docs/)?.1)
      // First what an app calls first, then the examples of all operations.
      for arguments in [[], ["--all"]] {
        let calls = try await Program(
          Program.checkout.appending(path: "Scripts/first-calls").path, arguments + [String(address)])
        #expect(try await calls.exitStatus(within: .seconds(240)) == 0, "\(calls.standardOutput)\(calls.standardError)")
        let count = calls.standardOutput.firstMatch(of: /([0-9]+) examples of/).flatMap { Int($0.1) } ?? 0
        #expect(count >= (arguments.isEmpty ? 19 : 56), "\(calls.standardOutput)")
      }
      dev.signal(SIGTERM)
      #expect(try await dev.exitStatus(within: .seconds(15)) == 0, "\(dev.standardError)")
    }
  }

  @Test func `a cluster left by a killed process is taken over with its data`() async throws {
    try await withFolder { folder in
      let first = try await start(folder, port: Self.freePort())
      try await first.waitForOutput("Ctrl-C stops it")
      let postmaster = try #require(postmasterPID(folder))
      first.signal(SIGKILL)
      _ = try await first.exitStatus()
      #expect(kill(postmaster, 0) == 0)

      let second = try await start(folder, port: Self.freePort())
      try await second.waitForOutput("Ctrl-C stops it")
      #expect(postmasterPID(folder) == postmaster)
      second.signal(SIGTERM)
      #expect(try await second.exitStatus(within: .seconds(15)) == 0)
      try await eventually { kill(postmaster, 0) != 0 }
    }
  }

  @Test func `a signal during startup leaves no process behind`() async throws {
    try await withFolder { folder in
      for delay in [50, 400, 900] {
        let dev = try await start(folder, port: Self.freePort())
        try await Task.sleep(for: .milliseconds(delay))
        let postmaster = postmasterPID(folder)
        dev.signal(SIGTERM)
        _ = try await dev.exitStatus(within: .seconds(20))
        if let pid = postmaster ?? postmasterPID(folder) { try await eventually { kill(pid, 0) != 0 } }
      }
    }
  }

  @Test func `each reason for a failed start is reported in one line`() async throws {
    try await withFolder { folder in
      let first = try await start(folder, port: Self.freePort())
      try await first.waitForOutput("Ctrl-C stops it")
      let port = try #require(first.standardOutput.firstMatch(of: /127\.0\.0\.1:(\d+)/)?.1)

      /// The error line of a start that fails.
      func refusal(_ program: Program) async throws -> String {
        #expect(try await program.exitStatus(within: .seconds(120)) != 0)
        let lines = program.standardError.split(separator: "\n").filter { $0.contains(#""level":"critical""#) }
        #expect(lines.count == 1, "\(program.standardError)")
        return String(lines.first ?? "")
      }
      #expect(try await refusal(try await start(folder, port: Self.freePort())).contains(String(first.pid)))
      try await withFolder { other in
        let said = try await refusal(try await start(other, port: Int(port) ?? 0))
        #expect(said.contains("port \(port) is in use"))
        // And its own cluster has stopped.
        #expect(postmasterPID(other).map { kill($0, 0) } != 0)
      }
      try await withFolder { foreign in
        try FileManager.default.createDirectory(atPath: foreign, withIntermediateDirectories: true)
        try "precious".write(toFile: foreign + "/notes.txt", atomically: true, encoding: .utf8)
        #expect(try await refusal(try await start(foreign, port: Self.freePort())).contains(foreign))
        #expect(try await refusal(try await start(foreign, port: Self.freePort(), "--reset")).contains(foreign))
        #expect(try String(contentsOfFile: foreign + "/notes.txt", encoding: .utf8) == "precious")
      }
      try await withFolder { other in
        let missing = try await Program(
          Program.path("muster"), ["dev", "--data", other], environment: ["MUSTER_PG_BIN": "/nonexistent"])
        let said = try await refusal(missing)
        #expect(said.contains("/nonexistent"))
      }
      first.signal(SIGTERM)
      #expect(try await first.exitStatus(within: .seconds(15)) == 0, "\(first.standardError)")
    }
  }

  /// Starts it, runs `body` when it is up, and stops it.
  private func run(
    _ folder: String, port: Int, _ more: [String], _ body: (Program) async throws -> Void
  ) async throws {
    let dev = try await start(folder, port: port, more)
    try await dev.waitForOutput("Ctrl-C stops it")
    try await body(dev)
    dev.signal(SIGTERM)
    #expect(try await dev.exitStatus(within: .seconds(15)) == 0, "\(dev.standardError)")
  }

  @Test func `for phones in the network, it has keys of its own, and moves the stamps when its URL changes`()
    async throws
  {
    try await withFolder { folder in
      let port = Self.freePort()
      let address = "http://192.0.2.7:\(port)"
      func send(_ path: String, token: String? = nil, body: String? = nil) async throws -> (status: UInt, json: JSON) {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/api/v1/\(path)")
        if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
        if let body {
          request.method = .POST
          request.headers.add(name: "Content-Type", value: "application/json")
          request.body = .bytes(ByteBuffer(string: body))
        }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        let json = try JSON(parsing: try await response.body.collect(upTo: 1 << 20).readableBytesView)
        return (response.status.code, json)
      }

      var (token, stamp) = ("", JSON.null)
      try await run(folder, port: port, ["--host", "0.0.0.0", "--public-url", address + "/"]) { dev in
        for line in [
          "Muster is up at \(address)\n", "The server for your app: \(address)\n", "NSAllowsLocalNetworking",
          "Anyone in this network can log in as a demo user", "Demo login: ana",
        ] {
          #expect(dev.standardOutput.contains(line), "\(dev.standardOutput)")
        }
        let file = folder + "/settings.json"
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
        let settings = try JSON(parsing: try Data(contentsOf: URL(filePath: file)))
        for name in ["access", "refresh"] {
          #expect(try !SigningKeys(settings["keys"][name].string ?? "").arePublished)
        }
        let body = #"{"username": "gil", "email": "gil@example.com", "password": "correct horse"}"#
        token = try #require(try await send("auth/register", body: body).json["accessToken"].string)
        stamp = try await send("friends", token: token).json["timestamp"]
        #expect(stamp != .null)
      }
      // Later runs keep the keys, even without other machines.
      try await run(folder, port: port, ["--public-url", address]) { dev in
        #expect(dev.standardOutput.contains("Muster is up at http://127.0.0.1:\(port)\n"))
        #expect(!dev.standardOutput.contains("NSAllowsLocalNetworking"))
        let friends = try await send("friends", token: token)
        #expect(friends.json["timestamp"] == stamp)
      }
      try await run(folder, port: port, []) { _ in
        let friends = try await send("friends", token: token)
        #expect(friends.status == 200 && friends.json["timestamp"] != stamp)
      }
      try await run(folder, port: port, ["--reset"]) { _ in
        let friends = try await send("friends", token: token)
        #expect(friends.status == 401)
      }
      let refused = try await start(folder, port: 0, "--host", "0.0.0.0")
      #expect(try await refused.exitStatus() != 0 && refused.standardError.contains("--port"))
    }
  }

  @Test func `behind a tunnel, it does not use the published keys either`() async throws {
    try await withFolder { folder in
      let port = Self.freePort()
      let url = "http://127.0.0.1:\(port)/api/v1/"
      func log(in dev: Program) async throws -> String {
        var login = HTTPClientRequest(url: url + "auth/login")
        login.method = .POST
        login.headers.add(name: "Content-Type", value: "application/json")
        login.body = .bytes(ByteBuffer(string: #"{"login": "ana", "password": "\#(DemoSeed.password)"}"#))
        let body = try await HTTPClient.shared.execute(login, timeout: .seconds(10)).body.collect(upTo: 1 << 20)
        return try #require(try JSON(parsing: body.readableBytesView)["accessToken"].string)
      }
      func devices(_ token: String, registering body: String? = nil) async throws -> (status: UInt, count: Int) {
        var request = HTTPClientRequest(url: url + "devices")
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        if let body {
          request.method = .PUT
          request.headers.add(name: "Content-Type", value: "application/json")
          request.body = .bytes(ByteBuffer(string: body))
        }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        let json = try JSON(parsing: try await response.body.collect(upTo: 1 << 20).readableBytesView)
        return (response.status.code, json["items"].array.count)
      }

      var old = ""
      try await run(folder, port: port, []) { dev in
        #expect(!dev.standardOutput.contains("its own keys"))
        old = try await log(in: dev)
        let webhook = #"{"platform": "webhook", "token": "https://hooks.example.com/muster"}"#
        #expect(try await devices(old, registering: webhook).status == 201)
        #expect(try await devices(old).count == 1)
      }
      for isFirst in [true, false] {
        try await run(folder, port: port, ["--public-url", "https://tunnel.example"]) { dev in
          #expect(dev.standardOutput.contains("its own keys") == isFirst)
          // Anyone could have signed it.
          #expect(try await devices(old).status == 401)
          // Its secret could no longer be opened.
          let new = try await log(in: dev)
          #expect(try await devices(new).count == 0)
        }
      }
    }
  }

  @Test func `reset starts over`() async throws {
    try await withFolder { folder in
      for more in [[], ["--reset"]] {
        let dev = try await Program(
          Program.path("muster"), ["dev", "--data", folder, "--port", String(Self.freePort())] + more,
          environment: ["MUSTER_SCRYPT": "ln=4,r=8,p=1"])
        try await dev.waitForOutput("Ctrl-C stops it")
        dev.signal(SIGTERM)
        #expect(try await dev.exitStatus(within: .seconds(15)) == 0, "\(dev.standardError)")
      }
    }
  }
}
