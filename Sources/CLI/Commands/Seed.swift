import App
import ArgumentParser
import EmbeddedPostgres
import Foundation
import Logging
import Postgres
import ServiceLifecycle
import UnixSignals

struct Seed: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Add users and events to the database, or export the demo.",
    subcommands: [Demo.self, Load.self, Export.self])

  struct Demo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add the demo data: the same ids every time, dates relative to today, safe to repeat.")

    @Flag(
      help: """
        Delete the demo users and all their data first, and any other account that has one of their e-mail addresses.
        """)
    var reset = false

    @OptionGroup var confirmation: Confirmation

    func run() async throws {
      let dependencies = try await Dependencies(
        try await MusterConfiguration.loadWithWarnings(for: .tool), name: "muster seed", logger: makeLogger())
      let logins: DemoSeed.Logins
      do {
        let seed = try DemoSeed()
        if try await seed.meetsOthers(in: dependencies.database) {
          try confirmation.ask(
            "This database has users of its own, and the passwords of the demo's users are published.")
        }
        logins = try await seed.plant(in: dependencies, resets: reset)
      } catch {
        await dependencies.close()
        throw error
      }
      await dependencies.close()
      for line in logins.leftOut { print("\(line) Rename or delete that account, and seed again.") }
      for line in logins.changed { print("\(line) Use --reset to undo that.") }
      if let login = logins.working {
        print("seeded the demo: log in as \(login) with the password \(DemoSeed.password)")
      } else {
        print("seeded the demo: no demo user has the demo password")
      }
    }
  }
}

extension Seed {
  struct Load: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Add synthetic users and events for load tests. Every user's password is \(LoadSeed.password).")

    @Option(help: "The number of users. Each has about 50 friends, and two events with about 10 guests.")
    var users = 100_000

    @Option(help: "The random seed. The same seed produces the same data.")
    var seed: UInt64 = 1

    @Flag(help: "Seed even if the database already has users.")
    var force = false

    @Option(help: "Log in 2,000 users, and write a line \"userId eventId accessToken\" for each to this file.")
    var tokens: String?

    func validate() throws {
      guard (100...10_000_000).contains(users) else { throw ValidationError("--users must be from 100 to 10000000.") }
    }

    func run() async throws {
      let configuration =
        tokens == nil
        ? try await MusterConfiguration.loadWithWarnings(for: .tool)
        : try await MusterConfiguration.loadWithWarnings(for: .serve)
      let seed = LoadSeed(users: users, seed: seed)
      let bar = ProgressBar()
      let start = ContinuousClock.now
      try await seed.plant(in: configuration, isForced: force) { bar.show($0, $1) }
      bar.end()
      if let tokens {
        let dependencies = try await Dependencies(configuration, name: "muster seed", logger: makeLogger())
        try await seed.tokens(dependencies).write(toFile: tokens, atomically: true, encoding: .utf8)
        await dependencies.close()
      }
      print("seeded \(users) users in \((ContinuousClock.now - start).components.seconds) s")
    }
  }
}

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

/// A progress bar on one line of a terminal. Prints nothing if stderr is not a terminal.
private struct ProgressBar: Sendable {
  private let isTerminal = isatty(STDERR_FILENO) == 1

  func show(_ what: String, _ part: Double) {
    guard isTerminal else { return }
    let filled = Int(part * 30)
    let bar = String(repeating: "#", count: filled) + String(repeating: ".", count: 30 - filled)
    FileHandle.standardError.write(Data("\r\u{1b}[K[\(bar)] \(what)".utf8))
  }

  func end() {
    if isTerminal { FileHandle.standardError.write(Data("\r\u{1b}[K".utf8)) }
  }
}
