import App
import ArgumentParser
import EmbeddedPostgres
import Foundation
import Logging
import Postgres
import ServiceLifecycle
import UnixSignals

struct Dev: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run everything in one process, with a private PostgreSQL, for development.")

  @Option(help: "The port to listen on.")
  var port: UInt16 = 8080

  @Option(help: "The folder for the data, which is kept for the next run.")
  var data = ".muster"

  @Flag(help: "Delete the data first.")
  var reset = false

  func run() async throws {
    let service = DevelopmentService(port: Int(port), folder: data, resets: reset, logger: makeLogger())
    // Closing the terminal sends SIGHUP. PostgreSQL must not keep running then.
    try await run([service], until: [.sigterm, .sigint, .sighup], logger: service.logger)
  }
}

/// Runs a cluster with the migrations and the demo data, the service and the worker. All of them end together.
private struct DevelopmentService: Service {
  let port: Int
  let folder: String
  let resets: Bool
  let logger: Logger

  func run() async throws {
    // If a stop is requested while the cluster starts, the start completes first, and the cluster then stops in order.
    if resets { try await EmbeddedPostgres.erase(folder) }
    let cluster = try await EmbeddedPostgres.start(in: folder) { say($0) }
    do {
      if !Task.isShuttingDownGracefully { try await serve(on: cluster) }
    } catch {
      try await cluster.stop()
      throw error
    }
    try await cluster.stop()
  }

  private func serve(on cluster: EmbeddedPostgres) async throws {
    let url = cluster.uri(database: "muster")
    try await ScriptConnection.run(cluster.uri(database: "postgres")) { connection in
      guard try connection.rows("SELECT 1 FROM pg_database WHERE datname = 'muster'").isEmpty else { return }
      try connection.script("CREATE DATABASE muster")
    }
    try await Migrator(url: url, migrations: Resources.migrations).up()

    FileLimit.raise()
    var configuration = try await configure(for: .dev, overrides: ["DATABASE_URL": url])
    // There is no load balancer to wait for.
    configuration.drainSeconds = 0
    let dependencies = try await Dependencies(configuration, name: "muster dev", logger: logger)
    do {
      try await serve(with: dependencies)
    } catch {
      await dependencies.close()
      throw error
    }
    await dependencies.close()
  }

  private func serve(with dependencies: Dependencies) async throws {
    let check = Task { await dependencies.checkPictures() }
    defer { check.cancel() }
    let logins = try await DemoSeed().plant(in: dependencies)
    let service = makeService(dependencies, host: "127.0.0.1", port: port) { greet(port: $0, logins) }
    let worker = NotificationWorker(
      dependencies, sender: Channels(dependencies, printsPayloads: true),
      mailer: dependencies.webhookMailer ?? LogMailer(logger: logger), concurrency: 4)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await service.run() }
      group.addTask { try await worker.run() }
      if let metrics = makeMetricsService(dependencies, port: 9464) { group.addTask { try await metrics.run() } }
      // The first one that ends, regularly or with an error, stops the others.
      do {
        try await group.next()
      } catch {
        group.cancelAll()
        throw error
      }
      if !Task.isShuttingDownGracefully { group.cancelAll() }
      try await group.waitForAll()
    }
  }

  /// Prints plain text to stdout, even if it is not a terminal.
  private func greet(port: Int, _ logins: DemoSeed.Logins) {
    let base = "http://127.0.0.1:\(port)"
    var lines = ["", "Muster is up at \(base)"]
    lines += logins.changed.map { "\($0) `muster dev --reset` deletes all data and starts over." }
    if let login = logins.working {
      let body = #"{"login": "\#(login)", "password": "\#(DemoSeed.password)"}"#
      lines += [
        "Demo login: \(login) with the password \(DemoSeed.password)",
        "Try: curl -s \(base)/api/v1/auth/login -H 'Content-Type: application/json' -d '\(body)'",
      ]
    }
    lines.append("Ctrl-C stops it. The data stays in \(folder)")
    say(lines.joined(separator: "\n"))
  }

  private func say(_ line: String) {
    print(line)
    // A pipe is buffered, but its reader may wait for the address.
    fflush(nil)
  }
}
