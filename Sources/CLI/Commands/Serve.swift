import App
import ArgumentParser
import Foundation
import HTTPServer
import Logging
import Postgres
import ServiceLifecycle
import UnixSignals

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(abstract: "Run the REST service.")

  @Option(help: "The address to listen on.")
  var host = "127.0.0.1"

  @Option(help: "The port to listen on.")
  var port: UInt16 = 8080

  func run() async throws {
    let logger = makeLogger()
    FileLimit.raise()
    let configuration = try await MusterConfiguration.loadWithWarnings(for: .serve)
    try configuration.refuseMoreConnectionsThanFiles()
    // Without the database, the process listens, is unready, and refuses requests. A wrong schema, or wrong keys, end it
    // before it listens.
    let check: @Sendable () async throws -> Void = {
      try await SchemaCheck.run(of: configuration.databaseURL, logger: logger)
      try await KeyCheck.run(configuration, logger: logger)
    }
    var isLate = false
    do { try await check() } catch let error as PostgresError where error.isOutage { isLate = true }
    let dependencies = try await Dependencies(configuration, name: "muster serve", logger: logger)
    var late: [any Service] = []
    if isLate {
      dependencies.holdRequests()
      late = [
        LateCheck(logger: logger) {
          try await check()
          dependencies.admitRequests()
        }
      ]
    }
    let scheme = dependencies.certificate == nil ? "http" : "https"
    let service = makeService(dependencies, host: host, port: Int(port)) { [host] port in
      logger.info("listening", metadata: ["address": "\(scheme)://\(host):\(port)"])
    }
    let pictures = Task { await dependencies.checkPictures() }
    defer { pictures.cancel() }
    // Services stop in reverse order, so metrics stay available during the shutdown.
    let metrics = makeMetricsService(dependencies, port: 9464).map { [$0] } ?? []
    let reloading: [any Service] =
      dependencies.certificate.map { [CertificateReloading(certificate: $0, logger: logger)] } ?? []
    try await run(
      metrics + reloading + late + [service], drainSeconds: configuration.drainSeconds, zones: dependencies.zones,
      logger: logger)
    await dependencies.close()
    endProcess()
  }
}

/// Reads the certificate again on SIGHUP. The service itself also checks it from time to time.
private struct CertificateReloading: Service {
  let certificate: ServerCertificate
  let logger: Logger

  func run() async {
    await cancelWhenGracefulShutdown { [certificate, logger] in
      for await _ in await UnixSignalsSequence(trapping: .sighup) { certificate.reload(logger: logger) }
    }
  }
}

/// Not for people: `serve` starts the picture decoder with it.
struct Contained: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: Containment.command,
    abstract: "Run a program without access to the network and to this account's files.",
    shouldDisplay: false)

  /// As of a shell, for a command that cannot be executed.
  private static let failure = ExitCode(126)

  @Argument(parsing: .captureForPassthrough, help: "The path of the program, and its arguments.")
  var program: [String]

  func run() throws {
    // Without the log: the reader is a program.
    FileHandle.standardError.write(Data("\(Containment.replaceProcess(by: program))\n".utf8))
    throw Self.failure
  }
}
