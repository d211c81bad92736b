import Foundation
import TestSupport
import Testing

@testable import App

/// A `muster serve` in its own process, on a test's database. The test's own service may run at the same time.
struct ServiceProcess: Sendable {
  let program: Program
  /// The test's database, served by this process.
  let app: TestApp

  /// - Parameters:
  ///   - environment: variables in addition to those of the test's service.
  ///   - databaseURL: the URL of the database, if it is not the test's own.
  init(of app: TestApp, _ environment: [String: String] = [:], databaseURL: String? = nil) async throws {
    let settings = Muster.environment(databaseURL ?? app.databaseURL).merging(environment) { $1 }
    program = try await Muster.serve(environment: settings)
    self.app = try await app.served(by: program)
  }

  /// Runs a process while `body` runs, then stops it gracefully.
  static func run(
    of app: TestApp, _ environment: [String: String] = [:], _ body: (TestApp) async throws -> Void
  ) async throws {
    let process = try await ServiceProcess(of: app, environment)
    defer { process.program.signal(SIGKILL) }
    try await body(process.app)
    process.program.signal(SIGTERM)
    #expect(try await process.program.exitStatus() == 0)
  }

  /// Kills the process, as a power failure would.
  func kill() async throws {
    program.signal(SIGKILL)
    #expect(try await program.exitStatus() == -SIGKILL)
  }

  func refresh(_ token: String) async throws -> APIResponse {
    try await app.send("POST", "auth/refresh", body: #"{"refreshToken": "\#(token)"}"#)
  }
}

extension TestApp {
  /// The test's database, served by a `muster serve`. Waits until it listens.
  func served(by program: Program) async throws -> TestApp {
    return TestApp(
      url: try await program.address().absoluteString, databaseURL: databaseURL, dependencies: dependencies,
      database: database)
  }
}

extension Program {
  /// The lines of its log.
  func logLines() throws -> [JSON] {
    try standardError.split(separator: "\n").map { try JSON(parsing: $0.utf8) }
  }
}
