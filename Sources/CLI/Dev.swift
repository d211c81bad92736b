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
    abstract: "Everything in one process, on a private PostgreSQL: for developing against.")

  @Option(help: "The port to listen on.")
  var port: UInt16 = 8080

  @Option(help: "The folder for the data, which stay for the next run.")
  var data = ".muster"

  @Flag(help: "Delete the data first.")
  var reset = false

  func run() async throws {
    let service = DevelopmentService(port: Int(port), folder: data, resets: reset, logger: makeLogger())
    // A terminal that is closed hangs up; PostgreSQL must not stay behind.
    try await run([service], until: [.sigterm, .sigint, .sighup], logger: service.logger)
  }
}

/// A cluster, and on it the migrations, the demo, the service and the worker; all of it ends together.
private struct DevelopmentService: Service {
  let port: Int
  let folder: String
  let resets: Bool
  let logger: Logger

  func run() async throws {
    // Asked to stop while the cluster starts, it is still stopped in order: nothing here ends halfway.
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
    // No load balancer is to be waited for.
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
    let logins = try await DemoSeed().plant(in: dependencies)
    let service = makeService(dependencies, host: "127.0.0.1", port: port) { greet(port: $0, logins) }
    let worker = NotificationWorker(
      dependencies, sender: Channels(dependencies, printsPayloads: true),
      mailer: dependencies.webhookMailer ?? LogMailer(logger: logger), concurrency: 4)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await service.run() }
      group.addTask { try await worker.run() }
      if let metrics = makeMetricsService(dependencies, port: 9464) { group.addTask { try await metrics.run() } }
      // Whichever ends first, by order or by a failure, takes the other along.
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

  /// Plain text on stdout, whatever stdout is.
  private func greet(port: Int, _ logins: DemoSeed.Logins) {
    let base = "http://127.0.0.1:\(port)"
    var lines = ["", "Muster is up at \(base)"]
    lines += logins.changed.map { "\($0) `muster dev --reset` deletes all data and starts anew." }
    if let login = logins.working {
      let body = #"{"login": "\#(login)", "password": "\#(DemoSeed.password)"}"#
      lines += [
        "Demo login: \(login) with the password \(DemoSeed.password)",
        "Try: curl -s \(base)/api/v1/auth/login -H 'Content-Type: application/json' -d '\(body)'",
      ]
    }
    lines.append("Ctrl-C stops it; the data stay in \(folder)")
    say(lines.joined(separator: "\n"))
  }

  private func say(_ line: String) {
    print(line)
    // A pipe is buffered; whoever waits for the address must see it now.
    fflush(nil)
  }
}
