import EmbeddedPostgres
import Dispatch
import Foundation
import Postgres

/// The PostgreSQL server that all tests of a run share. Each test has its own database.
///
/// `MUSTER_TEST_SERVER` is the URL of a server that runs already: see `Scripts/test-engine`.
public enum TestCluster {
  private static let cluster = Task {
    let folder =
      ProcessInfo.processInfo.environment["MUSTER_TEST_CLUSTER"]
      ?? FileManager.default.temporaryDirectory.appending(path: "muster-test-\(getpid())").path
    let cluster = try await EmbeddedPostgres.start(
      in: folder, durability: .disposable, settings: ["max_connections": "800", "shared_buffers": "256MB"])
    try await ScriptConnection.run(cluster.uri(database: "postgres"), timeout: .seconds(60)) {
      try $0.script(EmbeddedPostgres.creatingProgramRole)
    }
    // The server must not outlive the tests, unless they are killed.
    running.withLock { $0 = cluster }
    atexit {
      guard let cluster = running.withLock({ $0 }) else { return }
      let done = DispatchSemaphore(value: 0)
      Task.detached {
        try? await cluster.stop()
        try? await EmbeddedPostgres.erase(cluster.folder)
        done.signal()
      }
      _ = done.wait(timeout: .now() + 15)
    }
    return cluster
  }

  private static let running = Lock<EmbeddedPostgres?>(nil)

  /// A server that was there before the tests, by the URL of its owner.
  private struct GivenServer {
    let owner: String
    let rest: Substring
    let options: Substring

    init?(_ url: String) {
      guard let parts = url.firstMatch(of: /^(postgres(?:ql)?:\/\/[^@\/]+@)([^\/?]*)(?:\/[^?]*)?(\?.*)?$/)?.output
      else { return nil }
      (owner, rest, options) = (String(parts.1), parts.2, parts.3 ?? "?application_name=tests")
    }

    /// The part of URLs that names ``programRole``, with the password of the owner.
    var program: String { owner.replacing(/\/\/[^:@]+/) { _ in "//\(programRole)" } }
    var password: Substring? { owner.firstMatch(of: /\/\/[^:]+:([^@]+)@/)?.1 }

    func url(_ database: String) -> String { "\(owner)\(rest)/\(database)\(options)" }
  }

  private static let given = ProcessInfo.processInfo.environment["MUSTER_TEST_SERVER"].map { url in
    guard let server = GivenServer(url) else { preconditionFailure("MUSTER_TEST_SERVER names no user and host") }
    return server
  }

  private static let preparedGiven = Task {
    guard let given else { return }
    let isNew: Bool = try await ScriptConnection.run(given.url("postgres"), timeout: .seconds(60)) { connection in
      guard try connection.rows("SELECT 1 FROM pg_roles WHERE rolname = \(programRole)").isEmpty else { return false }
      try connection.script(EmbeddedPostgres.creatingProgramRole)
      guard let password = given.password?.removingPercentEncoding else { return true }
      try connection.script("ALTER ROLE \(programRole) PASSWORD '\(password.replacing("'", with: "''"))'")
      return true
    }
    guard !isNew else { return }
    do {
      let program = limited(given.url("postgres"))
      try await ScriptConnection.run(program, timeout: .seconds(60)) { try $0.script("SELECT 1") }
    } catch let error as PostgresError {
      throw Unexpected(
        "the server has a role \(programRole) that cannot log in with the owner's password; drop it first: \(error)")
    }
  }

  private static func url(_ database: String) async throws -> String {
    if let given {
      try await preparedGiven.value
      return given.url(database)
    }
    return try await cluster.value.uri(database: database)
  }

  /// Limits the number of tests that use the server at once. More would only slow each other down.
  private static let gate = Gate(places: ProcessInfo.processInfo.activeProcessorCount + 2)

  /// The URL of a database from which others can be created.
  public static func administrationURL() async throws -> String {
    try await url("postgres")
  }

  /// The role of the programs under test.
  public static var programRole: String { EmbeddedPostgres.programRole }

  /// The URL of the same database for ``programRole``: the owner's URL with another user. Other URLs stay as they are.
  public static func limited(_ url: String) -> String {
    let (owner, program) =
      given.map { ($0.owner, $0.program) } ?? ("postgresql://muster@/", "postgresql://\(programRole)@/")
    return url.hasPrefix(owner) ? program + url.dropFirst(owner.count) : url
  }

  /// The path of the server's log.
  public static func log() async throws -> String {
    try await cluster.value.folder + "/postgres.log"
  }

  /// Fails if the row of a guest or co-host differs from its event. The copies of each database are compared, whatever a
  /// test did in it.
  public static let checkingCopies = """
    DO $$
    BEGIN
      -- Some databases are empty.
      IF to_regclass('invitations') IS NOT NULL THEN
        IF EXISTS (
          SELECT FROM (
            SELECT event_id, archived_start FROM invitations
            UNION ALL
            SELECT event_id, archived_start FROM event_co_hosts
          ) AS copy
          JOIN events AS e ON e.id = copy.event_id
          WHERE copy.archived_start IS DISTINCT FROM e.archived_start
        ) THEN
          RAISE EXCEPTION 'archived_start of a guest or co-host differs from the event';
        END IF;
      END IF;
    END
    $$
    """

  /// Creates a database, hands its URL to `body`, and drops it.
  ///
  /// - Parameter template: the name of a database to copy.
  public static func withDatabase<Value: Sendable>(
    template: String = "template1", _ body: (_ url: String) async throws -> Value
  ) async throws -> Value {
    try await withPlace {
      let url = try await createDatabase(template: template)
      do {
        let value = try await body(url)
        try await ScriptConnection.run(url, timeout: .seconds(60)) { try $0.script(checkingCopies) }
        try await dropDatabase(url)
        return value
      } catch {
        try await dropDatabase(url)
        throw error
      }
    }
  }

  /// Waits until fewer tests than the limit use the server, then runs `body`.
  public static func withPlace<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    await gate.enter()
    defer { gate.leave() }
    return try await body()
  }

  /// Creates a database, and returns its URL.
  public static func createDatabase(template: String) async throws -> String {
    let name = "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
    let prepare = preparations.withLock { $0[template] }
    try await administer("CREATE DATABASE \(name)\(prepare == nil ? " TEMPLATE \(template)" : "")")
    let url = try await url(name)
    try await prepare?(url)
    return url
  }

  /// How to fill the databases of a given server: not every engine copies databases.
  private static let preparations = Lock<[String: @Sendable (_ url: String) async throws -> Void]>([:])

  public static func dropDatabase(_ url: String) async throws {
    try await administer("DROP DATABASE \(try name(of: url)) WITH (FORCE)")
  }

  /// Replaces a test's database by an empty one.
  ///
  /// - Parameter options: of `CREATE DATABASE`, such as a locale.
  public static func recreate(_ url: String, _ options: String) async throws {
    try await dropDatabase(url)
    try await administer("CREATE DATABASE \(try name(of: url)) \(options)")
  }

  private static func name(of url: String) throws -> Substring {
    guard let name = url.firstMatch(of: /\/(test_[a-z0-9]+)\?/)?.1 else {
      throw Unexpected("not a test's database: \(url)")
    }
    return name
  }

  private static func administer(_ sql: String) async throws {
    try await ScriptConnection.run(try await administrationURL(), timeout: .seconds(60)) { try $0.script(sql) }
  }

  /// The URL of the same database through PgBouncer, if `MUSTER_TEST_PGBOUNCER` is set to the path of its program.
  public static func pooled(_ url: String) async throws -> String? {
    guard let port = try await pooler.value, let parts = url.firstMatch(of: /\/([a-z_]+)@\/([a-z0-9_]+)\?/)?.output
    else { return nil }
    return "postgresql://\(parts.1)@127.0.0.1:\(port)/\(parts.2)"
  }

  private static var poolerProgram: String? { ProcessInfo.processInfo.environment["MUSTER_TEST_PGBOUNCER"] }

  private static let pooler = Task { () -> Int? in
    guard let program = poolerProgram else { return nil }
    let server = try await cluster.value
    guard let socket = server.uri(database: "postgres").firstMatch(of: /host=([^&]+)/)?.1 else { return nil }
    let port = Int.random(in: 20_000..<30_000)
    let folder = poolerFolder
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let users = folder + "/users.txt"
    try "\"muster\" \"\"\n\"\(programRole)\" \"\"\n".write(toFile: users, atomically: true, encoding: .utf8)
    try """
    [databases]
    * = host=\(socket.removingPercentEncoding ?? "") port=5432
    [pgbouncer]
    listen_addr = 127.0.0.1
    listen_port = \(port)
    unix_socket_dir =
    auth_type = trust
    auth_file = \(users)
    pool_mode = transaction
    max_client_conn = 1000
    default_pool_size = 20
    """.write(toFile: folder + "/pgbouncer.ini", atomically: true, encoding: .utf8)
    // Like PostgreSQL, it does not run as root.
    let asRoot = getuid() == 0 ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] : []
    let process = try await Program("/usr/bin/env", asRoot + [program, folder + "/pgbouncer.ini"])
    runningPooler.withLock { $0 = process }
    atexit {
      runningPooler.withLock { $0 }?.end()
      try? FileManager.default.removeItem(atPath: poolerFolder)
    }
    try await process.waitForOutput("process up")
    return port
  }

  private static let poolerFolder = "/tmp/muster-pgbouncer-\(getpid())"
  private static let runningPooler = Lock<Program?>(nil)

  /// Creates a template database. Call it once per name.
  public static func makeTemplate(
    _ name: String, _ prepare: @escaping @Sendable (_ url: String) async throws -> Void
  ) async throws {
    if given != nil { return preparations.withLock { $0[name] = prepare } }
    try await administer("DROP DATABASE IF EXISTS \(name)")
    try await administer("CREATE DATABASE \(name)")
    try await prepare(try await url(name))
  }
}

/// Admits a limited number of callers at once. The others wait in order.
private final class Gate: Sendable {
  private struct State {
    var places: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Lock<State>

  init(places: Int) {
    state = Lock(State(places: places))
  }

  func enter() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.places == 0 else {
          state.places -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if state.waiting.isEmpty {
        state.places += 1
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.resume()
  }
}
