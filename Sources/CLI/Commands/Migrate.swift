import App
import ArgumentParser
import Foundation
import Logging
import Postgres

struct Migrate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Bring the database's schema up to date.",
    subcommands: [Up.self, Status.self, Down.self, Verify.self], defaultSubcommand: Up.self)

  static func migrator() async throws -> Migrator {
    migrator(try await MusterConfiguration.loadWithWarnings(for: .tool))
  }

  static func migrator(_ configuration: MusterConfiguration) -> Migrator {
    Resources.migrator(url: configuration.databaseURL, role: configuration.databaseRole)
  }

  struct Up: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Apply the pending migrations, and grant the rights of MUSTER_DATABASE_ROLE (the default).")

    @Flag(help: "Print the SQL of the pending migrations, and change nothing.")
    var dryRun = false

    func run() async throws {
      if dryRun {
        let pending = try await migrator().pending()
        for migration in pending { print("-- \(migration.name)\n\(migration.up)") }
        return print(pending.isEmpty ? "up to date" : "-- \(pending.count) pending; nothing was changed")
      }
      let logger = makeLogger()
      try await migrator().up(notice: { print("applied \($0)") }, warning: { logger.warning("\($0)") })
      print("up to date")
    }
  }

  struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "List the migrations and whether they are applied.")

    @Flag(help: "Print a JSON array, for scripts.")
    var json = false

    private struct Line: Encodable {
      let version: String
      let name: String
      let state: String
      let breaking: Bool
      let appliedAt: Date?
    }

    func run() async throws {
      let all = try await migrator().status()
      guard json else {
        for status in all {
          print("\(status.state.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)) \(status.name)")
        }
        return
      }
      let encoder = JSONEncoder()
      encoder.dateEncodingStrategy = .iso8601
      encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
      let lines = all.map {
        Line(
          version: $0.version, name: $0.name, state: $0.state.rawValue, breaking: $0.isBreaking,
          appliedAt: $0.appliedAt?.date)
      }
      print(String(decoding: try encoder.encode(lines), as: UTF8.self))
    }
  }

  struct Down: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Undo all migrations after a version, newest first. The data in their tables is deleted.")

    @Option(help: "The last version to keep, such as 0002; 0000 undoes everything.")
    var to: String

    @Flag(help: "Undo although `serve` or `worker` is connected. Their requests will fail.")
    var whileConnected = false

    @OptionGroup var confirmation: Confirmation

    func run() async throws {
      let logger = makeLogger()
      let configuration = try await MusterConfiguration.loadWithWarnings(for: .tool)
      let migrator = migrator(configuration)
      let undoing = try await migrator.undoing(to: to)
      guard !undoing.migrations.isEmpty else { return print("nothing to undo") }
      try refuse(undoing)
      for loss in undoing.losses {
        print("deletes \(loss.rows == 1 ? "1 row" : "\(loss.rows) rows") of \(loss.name)")
      }
      try confirmation.ask(
        "This undoes \(undoing.migrations.count == 1 ? "1 migration" : "\(undoing.migrations.count) migrations")"
          + " and cannot be taken back.")
      // A deploy may have started some while the person was reading.
      try refuse(try await migrator.undoing(to: to))
      try await migrator.down(to: to, notice: { print("undone \($0)") }, warning: { logger.warning("\($0)") })
      // Undone data may appear in any user's lists.
      try await withDatabase("muster migrate", configuration) { database in
        guard try await database.value("SELECT to_regclass('user_stamps') IS NOT NULL") == true else { return }
        try await Stamps.move(in: database)
      }
    }

    private func refuse(_ undoing: Migrator.Undoing) throws {
      guard let programs = undoing.programs, !whileConnected else { return }
      throw Failure("programs are connected: \(programs): stop them first, or use --while-connected")
    }
  }

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Exit with an error unless the database has exactly this program's migrations.")

    func run() async throws {
      let wrong = try await migrator().status().filter { $0.state != .applied }
      guard wrong.isEmpty else {
        throw Failure(wrong.map { "\($0.name) is \($0.state.rawValue)" }.joined(separator: ", "))
      }
      print("verified")
    }
  }
}
