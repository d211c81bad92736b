import App
import ArgumentParser
import EmbeddedPostgres
import Foundation
import Logging
import Postgres
import ServiceLifecycle
import UnixSignals

extension Seed {
  struct Export: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write the demo as responses of the API, for SwiftUI previews and mocked clients.",
      discussion: """
        Writes a file for each call of the demo user \(DemoSeed.login), and index.json, which names them. Needs no database:
        it starts a private PostgreSQL and removes it at the end. Two exports of the same day are the same, byte for byte.
        """)

    @Argument(help: "The folder. It must be missing, empty or an earlier export, which is replaced.")
    var folder: String

    @Option(help: "The day of the demo, such as 2026-05-01. The times of its events are relative to it.")
    var day = SeedExport.day

    func run() async throws {
      let logger = makeLogger()
      guard let export = try SeedExport(day: day, logger: logger) else {
        throw ValidationError("--day must be a day such as \(SeedExport.day).")
      }
      let service = ExportService(export: export, folder: URL(filePath: folder))
      var quiet = logger
      quiet.logLevel = .critical
      try await ServiceGroup(
        configuration: ServiceGroupConfiguration(
          services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
          gracefulShutdownSignals: [.sigterm, .sigint, .sighup], logger: quiet)
      ).run()
      print("exported the demo of \(day) to \(folder)")
    }
  }
}

/// A service, so that a signal stops it gracefully: PostgreSQL must not keep running.
private struct ExportService: Service {
  let export: SeedExport
  let folder: URL

  func run() async throws {
    let data = FileManager.default.temporaryDirectory.appending(path: "muster-export-\(UUID().uuidString)").path
    let cluster = try await EmbeddedPostgres.start(in: data, durability: .disposable)
    let result = await Task { try await write(from: cluster) }.result
    try await cluster.stop()
    try await EmbeddedPostgres.erase(data)
    try result.get()
  }

  private func write(from cluster: EmbeddedPostgres) async throws {
    try await ScriptConnection.run(cluster.uri(database: "postgres")) { try $0.script("CREATE DATABASE muster") }
    try await cancelWhenGracefulShutdown {
      try await export.write(to: folder, database: cluster.uri(database: "muster"))
    }
  }
}
