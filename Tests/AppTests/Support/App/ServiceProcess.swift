import Foundation
import Postgres
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
  /// Migrates the database of a server that the test may stop and crash. No service runs.
  static func onOwnCluster(
    _ environment: [String: String], _ body: (OwnCluster, TestApp) async throws -> Void
  ) async throws {
    try await OwnCluster.run { cluster in
      try await Resources.migrator(url: cluster.url, role: TestCluster.programRole).up()
      let configuration = try await MusterConfiguration.load(
        environment: Muster.environment(cluster.url).merging(environment) { $1 }, file: nil)
      let dependencies = try await Dependencies(
        configuration, name: "test", logger: .quiet, endedSessionsAge: .seconds(5))
      let owner = try Database(Database.Configuration(url: cluster.url))
      defer { owner.close() }
      do {
        try await body(
          cluster, TestApp(url: "", databaseURL: cluster.url, dependencies: dependencies, database: owner))
      } catch {
        await dependencies.close()
        throw error
      }
      await dependencies.close()
    }
  }

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
