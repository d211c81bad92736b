import Foundation
import Postgres
import TestSupport
import Testing

/// A `muster serve` and a `muster worker` as processes, on a database that only they use.
final class MusterServer: Sendable {
  let databaseURL: String
  private let settings: [String: String]
  private let state: Lock<State>

  private struct State {
    var server: Program
    var worker: Program?
    var port: Int
  }

  /// Starts the processes, runs `body`, and ends them.
  ///
  /// - Parameters:
  ///   - environment: settings in addition to ``Muster/environment(_:)``.
  ///   - hasWorker: without a worker, no notification reaches an inbox.
  static func run(
    _ environment: [String: String] = [:], hasWorker: Bool = true,
    _ body: @Sendable (MusterServer) async throws -> Void
  ) async throws {
    try await template.value
    try await TestCluster.withDatabase(template: templateName) { databaseURL in
      let server = try await MusterServer(databaseURL, environment, hasWorker: hasWorker)
      defer { server.end() }
      try await body(server)
    }
  }

  /// The server for tests that need no special settings and restart nothing. It ends with this process. Tests share
  /// it, so each of them registers users of its own.
  static let shared = Task { try await common(["MUSTER_CONNECTIONS_PER_ADDRESS": "0"], hasWorker: true) }

  /// Like ``shared``, on the same database, but its access tokens expire after a second.
  static let hasty = Task {
    let patient = try await shared.value
    let settings = patient.settings.merging(["MUSTER_ACCESS_TOKEN_SECONDS": "1"]) { $1 }
    return endedAtExit(try await MusterServer(patient.databaseURL, settings, hasWorker: false))
  }

  private static func common(_ environment: [String: String], hasWorker: Bool) async throws -> MusterServer {
    try await template.value
    let administration = try await TestCluster.administrationURL()
    let name = "test_client_shared"
    try await ScriptConnection.run(administration, timeout: .seconds(60)) {
      try $0.script("DROP DATABASE IF EXISTS \(name)")
      try $0.script("CREATE DATABASE \(name) TEMPLATE \(templateName)")
    }
    let url = administration.replacing("/postgres?", with: "/\(name)?")
    return endedAtExit(try await MusterServer(url, environment, hasWorker: hasWorker))
  }

  init(_ databaseURL: String, _ environment: [String: String] = [:], hasWorker: Bool) async throws {
    self.databaseURL = databaseURL
    settings = Muster.environment(databaseURL).merging(["MUSTER_THROTTLING": "off"]) { $1 }.merging(environment) { $1 }
    let server = try await Self.serve(settings)
    let worker = hasWorker ? try await Program(Program.path("muster"), ["worker"], environment: settings) : nil
    state = Lock(State(server: server.program, worker: worker, port: server.port))
    try await worker?.waitForOutput("working")
  }

  var port: Int { state.withLock { $0.port } }
  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(filePath: "/") }
  /// The log of the server.
  var log: String { state.withLock { $0.server }.standardError }

  /// Plants the demo.
  func seedDemo() async throws {
    try await Muster.run("seed", "demo", environment: settings)
  }

  // MARK: Failures

  /// Ends everyone's sessions, as an operator who has lost the keys does.
  func endSessions() async throws {
    try await Muster.run("sessions", "end", "--all", environment: settings)
  }

  /// Kills the server, as a power failure would.
  func kill() async throws {
    let server = state.withLock { $0.server }
    server.signal(SIGKILL)
    _ = try await server.exitStatus()
  }

  /// Also kills the worker, so that nothing uses the database.
  func stop() async throws {
    let worker = state.withLock { $0.worker }
    worker?.signal(SIGKILL)
    _ = try await worker?.exitStatus()
    try await kill()
  }

  /// Starts the server again after ``kill()`` or ``stop()``, on another port.
  ///
  /// - Parameter environment: settings that replace those of the first start.
  func start(_ environment: [String: String] = [:]) async throws {
    let settings = settings.merging(environment) { $1 }
    let server = try await Self.serve(settings)
    let worker = state.withLock { state in
      (state.server, state.port) = (server.program, server.port)
      return state.worker
    }
    guard let worker, !worker.isRunning else { return }
    let next = try await Program(Program.path("muster"), ["worker"], environment: settings)
    state.withLock { $0.worker = next }
    try await next.waitForOutput("working")
  }

  /// Keeps a copy of the database. Only while the server is stopped.
  func dump() async throws { try await copyDatabase(from: name, to: name + "_dump") }

  /// Replaces the database by the copy that ``dump()`` has made. Only while the server is stopped.
  func restoreDump() async throws {
    try await copyDatabase(from: name + "_dump", to: name)
    let (dump, administration) = (name + "_dump", try await TestCluster.administrationURL())
    try await ScriptConnection.run(administration, timeout: .seconds(60)) { try $0.script("DROP DATABASE \(dump)") }
  }

  private func copyDatabase(from source: String, to target: String) async throws {
    let administration = try await TestCluster.administrationURL()
    try await ScriptConnection.run(administration, timeout: .seconds(60)) {
      try $0.script("DROP DATABASE IF EXISTS \(target) WITH (FORCE)")
      try $0.script("CREATE DATABASE \(target) TEMPLATE \(source)")
    }
  }

  /// The name of the database.
  private var name: String { String(databaseURL.prefix { $0 != "?" }.split(separator: "/").last ?? "") }

  /// Waits until everything is done: no request is in progress, and all notices are filed.
  ///
  /// - Returns: the time since which nothing has changed.
  func quiet() async throws -> Date {
    var looks = 0
    try await eventually(within: .seconds(120)) {
      let busy: Int = try await value(
        """
        SELECT (SELECT count(*) FROM notification_queue)
          + (SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle')
        """)
      looks = busy > 0 ? 0 : looks + 1
      return looks > 3
    }
    return .now
  }

  /// Forgets the keys of writes, as after a day.
  func forgetKeys() async throws {
    let _: Int = try await value(
      "WITH forgotten AS (DELETE FROM idempotency_keys RETURNING 1) SELECT count(*) FROM forgotten")
  }

  /// Lets live events end, as if a day had passed since, and archives them.
  ///
  /// - Parameter condition: which ones.
  func endEvents(where condition: SQL) async throws {
    let _: Int = try await value(
      """
      WITH ended AS (
        UPDATE events SET live_until = now() - interval '1 second'
        WHERE archived_at IS NULL AND \(condition) RETURNING 1
      )
      SELECT count(*) FROM ended
      """)
    try await Muster.run("worker", "--once", environment: settings)
  }

  /// Runs a statement on the database, and returns its single value.
  func value<Value: SQLValue>(_ sql: SQL) async throws -> Value {
    try await ScriptConnection.run(databaseURL, timeout: .seconds(60)) { try #require(try $0.rows(sql).first)[0] }
  }

  /// Ends all processes.
  private func end() {
    for program in state.withLock({ [$0.server, $0.worker] }) { program?.signal(SIGKILL) }
  }

  private static func serve(_ settings: [String: String]) async throws -> (program: Program, port: Int) {
    let program = try await Muster.serve(environment: settings)
    do {
      return (program, try #require(try await program.address().port))
    } catch {
      program.signal(SIGKILL)
      throw error
    }
  }

  private static func endedAtExit(_ server: MusterServer) -> MusterServer {
    left.withLock { $0.append(server) }
    _ = ending
    return server
  }

  private static let left = Lock<[MusterServer]>([])
  private static let ending: Void = {
    atexit { for server in left.withLock({ $0 }) { server.end() } }
  }()

  private static let templateName = "muster_client_template"

  private static let template = Task {
    try await TestCluster.makeTemplate(templateName) { url in
      try await Muster.run("migrate", environment: Muster.ownersEnvironment(url))
    }
  }
}
