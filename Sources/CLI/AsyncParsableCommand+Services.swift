import App
import ArgumentParser
import Foundation
import Logging
import Postgres
import ServiceLifecycle
import UnixSignals

extension AsyncParsableCommand {
  /// Runs services until one of the signals arrives, then lets them finish their current work.
  ///
  /// - Parameters:
  ///   - drainSeconds: additional time for the shutdown.
  ///   - zones: the time zone database, whose version is logged; nil if it is read later.
  func run(
    _ services: [any Service], until signals: [UnixSignal] = [.sigterm, .sigint], drainSeconds: Int = 0,
    zones: ZoneDatabase? = nil, logger: Logger
  ) async throws {
    var quiet = logger
    quiet.logLevel = .error
    let announced: [any Service] = [Announcement(zones: zones, logger: logger)] + services
    var configuration = ServiceGroupConfiguration(
      services: announced.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
      gracefulShutdownSignals: signals, logger: quiet)
    configuration.maximumGracefulShutdownDuration = .seconds(9 + drainSeconds)
    try await ServiceGroup(configuration: configuration).run()
    logger.notice("stopped", metadata: ["version": "\(Release.version)"])
  }

  /// Ends the process without the exit handlers of libraries: OpenSSL's frees memory that a thread which is just ending
  /// may still use.
  func endProcess() -> Never {
    fflush(nil)
    _exit(EXIT_SUCCESS)
  }
}

/// Whether a process may run on the database's schema.
enum SchemaCheck {
  /// The service never migrates. It does not run on an older schema. It runs on a newer one, so that a deploy can
  /// migrate first, unless a migration is breaking.
  static func run(of url: String, logger: Logger) async throws {
    let all = try await Resources.migrator(url: url).status()
    func names(_ matching: (Migrator.Status) -> Bool) -> String {
      all.filter(matching).map(\.name).joined(separator: ", ")
    }
    let pending = names { $0.state == .pending }
    guard pending.isEmpty else {
      throw Failure("the database lacks the migrations \(pending): run `muster migrate` first")
    }
    let edited = names { $0.state == .edited }
    guard edited.isEmpty else { throw Failure("the database was migrated with different versions of \(edited)") }
    let breaking = names { $0.state == .unknown && $0.isBreaking }
    guard breaking.isEmpty else {
      throw Failure("the database has breaking migrations that this release does not know: \(breaking)")
    }
    let ahead = names { $0.state == .unknown }
    if !ahead.isEmpty {
      logger.warning("the database is ahead of this release", metadata: ["migrations": "\(ahead)"])
    }
  }
}

/// Makes a check of the database once it is available, for a process that started while it was not.
struct LateCheck: Service {
  let logger: Logger
  let check: @Sendable () async throws -> Void

  /// - Throws: what the check throws; the process then ends.
  func run() async throws {
    try await cancelWhenGracefulShutdown { try await wait() }
    try? await gracefulShutdown()
  }

  /// Returns when the schema is checked, or the task is cancelled.
  func wait() async throws {
    while !Task.isCancelled {
      do {
        return try await check()
      } catch let error as PostgresError where error.isOutage {
        logger.warning("the database is unavailable: waiting for it", metadata: ["error": "\(error)"])
      }
      // Throws only on cancellation, which ends the loop.
      try? await Task.sleep(for: .seconds(1))
    }
  }
}

extension PostgresError {
  /// Whether waiting may help. A server that refuses the login is not away: libpq has only its text.
  var isOutage: Bool {
    isUnavailable
      && !["authentication failed", "does not exist", "pg_hba.conf", "permission denied"].contains {
        description.contains($0)
      }
  }
}

/// Whether the refresh tokens of open sessions can be verified.
enum KeyCheck {
  /// A process with other keys would tell every client that its session has ended.
  ///
  /// - Throws: ``Failure`` if none of the keys is that of an open session.
  static func run(_ configuration: MusterConfiguration, logger: Logger) async throws {
    let sessions = try await Session.countByKey(at: configuration.databaseURL)
    let lost = sessions.filter { !configuration.refreshTokenKeys.kids.contains($0.key) }
    guard !lost.isEmpty else { return }
    let names = lost.keys.sorted().joined(separator: ", ")
    guard lost.count < sessions.count else {
      throw Failure(
        "MUSTER_REFRESH_TOKEN_KEYS has none of the keys of the open sessions (\(names)): all users would be logged out. "
          + "If the keys are lost, run `muster sessions end --all` first")
    }
    logger.warning(
      "MUSTER_REFRESH_TOKEN_KEYS lacks keys of open sessions: their users must log in again",
      metadata: ["keys": "\(names)", "sessions": .stringConvertible(lost.values.reduce(0, +))])
  }
}

/// Logs that the services run. From now on, signals stop them gracefully.
private struct Announcement: Service {
  let zones: ZoneDatabase?
  let logger: Logger

  func run() async throws {
    var facts: Logger.Metadata = ["version": "\(Release.version)"]
    if let zones { facts["tzdata"] = "\(zones.version)" }
    logger.notice("started", metadata: facts)
    if let zones, !zones.missing.isEmpty {
      logger.warning(
        "time zones are not installed: install the package tzdata-legacy", metadata: ["zones": "\(zones.missing.count)"]
      )
    }
    try? await gracefulShutdown()
  }
}

extension AsyncParsableCommand {
  /// Runs `body` with the database, for a command that does one thing and ends.
  ///
  /// - Parameters:
  ///   - name: the name in `pg_stat_activity`.
  ///   - configuration: nil reads it. A command reads it once, because its secrets are forgotten then.
  func withDatabase(
    _ name: String, _ configuration: MusterConfiguration? = nil, _ body: (Database) async throws -> Void
  ) async throws {
    let known: MusterConfiguration
    if let configuration { known = configuration } else { known = try await .loadWithWarnings(for: .tool) }
    let database = try Database(known.database(name, logger: makeLogger()))
    defer { database.close() }
    try await body(database)
  }
}

extension MusterConfiguration {
  /// Reads the configuration, after which the secrets are no longer in this process's environment. Logs a warning about
  /// unknown names, which are usually misspelled.
  ///
  /// - Parameters:
  ///   - environment: the variables, if they were read before.
  ///   - overrides: values that take precedence over all others.
  ///   - fallbacks: values for variables that have none otherwise.
  static func loadWithWarnings(
    for program: Program, environment: [String: String] = ProcessInfo.processInfo.environment,
    overrides: [String: String] = [:], fallbacks: [String: String] = [:]
  ) async throws -> MusterConfiguration {
    Containment.forgetSecrets()
    let configuration = try await load(
      for: program, environment: environment, overrides: overrides, fallbacks: fallbacks)
    if !configuration.unknownVariables.isEmpty {
      makeLogger().warning(
        "unknown environment variables are ignored: `muster --help` lists all",
        metadata: ["variables": .array(configuration.unknownVariables.map { .string($0) })])
    }
    return configuration
  }
}
