import Foundation
import TestSupport
import Testing

@testable import App

/// A `muster serve` in a process of its own, on the database of a test whose own service may go on beside it.
struct ServiceProcess: Sendable {
  let program: Program
  /// The test's database behind this process.
  let app: TestApp

  /// - Parameters:
  ///   - environment: beside what the test's service has by default.
  ///   - databaseURL: how it reaches the database, if not directly.
  init(of app: TestApp, _ environment: [String: String] = [:], databaseURL: String? = nil) async throws {
    let settings = TestApp.environment(databaseURL ?? app.databaseURL).merging(environment) { $1 }
    program = try await Program(Program.path("muster"), ["serve", "--port", "0"], environment: settings)
    self.app = try await app.served(by: program)
  }

  /// Runs one, and stops it in order.
  static func run(
    of app: TestApp, _ environment: [String: String] = [:], _ body: (TestApp) async throws -> Void
  ) async throws {
    let process = try await ServiceProcess(of: app, environment)
    defer { process.program.signal(SIGKILL) }
    try await body(process.app)
    process.program.signal(SIGTERM)
    #expect(try await process.program.exitStatus() == 0)
  }

  /// As if the power went.
  func kill() async throws {
    program.signal(SIGKILL)
    #expect(try await program.exitStatus() == -SIGKILL)
  }

  func refresh(_ token: String) async throws -> Answer {
    try await app.send("POST", "auth/refresh", body: #"{"refreshToken": "\#(token)"}"#)
  }
}

extension TestApp {
  /// The test's database behind a `muster serve`, once that listens.
  func served(by program: Program) async throws -> TestApp {
    try await program.waitForOutput("listening")
    let pattern = /"address":"(http:\/\/127\.0\.0\.1:\d+)","level":"info","message":"listening"/
    let address = try #require(program.standardError.firstMatch(of: pattern)?.1)
    return TestApp(url: String(address), databaseURL: databaseURL, dependencies: dependencies)
  }
}

extension Program {
  /// What it has logged.
  func logLines() throws -> [JSON] {
    try standardError.split(separator: "\n").map { try JSON(parsing: $0.utf8) }
  }
}
