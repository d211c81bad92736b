import App
import ArgumentParser
import Logging
import ServiceLifecycle

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Run the REST service.")

  @Option(help: "The address to listen on.")
  var host = "127.0.0.1"

  @Option(help: "The port to listen on.")
  var port: UInt16 = 8080

  func run() async throws {
    let logger = makeLogger()
    FileLimit.raise()
    let configuration = try await configure(for: .serve)
    try await checkSchema(of: configuration.databaseURL, logger: logger)
    let dependencies = try await Dependencies(configuration, name: "muster serve", logger: logger)
    let service = makeService(dependencies, host: host, port: Int(port)) { [host] port in
      logger.info("listening", metadata: ["address": "http://\(host):\(port)"])
    }
    let check = Task { await dependencies.checkPictures() }
    defer { check.cancel() }
    // Services stop in reverse order, so metrics stay available during the shutdown.
    let metrics = makeMetricsService(dependencies, port: 9464).map { [$0] } ?? []
    try await run(metrics + [service], drainSeconds: configuration.drainSeconds, logger: logger)
    await dependencies.close()
  }
}
