import Foundation
import Postgres
import TestSupport
import Testing

/// A primary dies, and its synchronous standby replaces it.
@Suite(.timeLimit(.minutes(15)))
struct FailoverTests {
  @Test func `if the primary is killed under load, no acknowledged write is lost, and the promoted standby serves`()
    async throws
  {
    try await ServerPair.run { pair in
      let primary = Server(url: pair.url(pair.primary))
      try await primary.script(Load.table)
      // Among several hosts, the client chooses the one that accepts writes, in any order.
      var configuration = Database.Configuration(url: pair.url(pair.standby, pair.primary))
      configuration.applicationName = Server.applicationName
      configuration.connectTimeout = .seconds(1)
      configuration.acquireTimeout = .seconds(2)
      configuration.statementTimeout = .seconds(2)
      let database = try Database(configuration)
      defer { database.close() }
      #expect(try await database.value("SELECT pg_is_in_recovery()") == false)
      let load = try await Load.run(on: [database]) { load in
        try await load.recovery(within: .seconds(20))
        try await Task.sleep(for: .seconds(1))
        let acknowledged = load.acknowledged
        try await pair.killPrimary()
        try await load.turn(within: configuration.maximumCallTime)
        try await pair.promoteStandby()
        try await load.recovery(within: .seconds(2))
        #expect(load.acknowledged > acknowledged)
      }
      let promoted = Server(url: pair.url(pair.standby))
      try await load.check(on: promoted, within: configuration.maximumCallTime)
      try await expectFullPool(of: database, connections: configuration.connections)
      #expect(try await promoted.backends() <= configuration.connections + configuration.sharedConnections)
    }
  }

  @Test func `if the wait of a COMMIT for the standby is cancelled, its outcome is unknown`() async throws {
    try await ServerPair.run { pair in
      let server = Server(url: pair.url(pair.primary))
      try await server.script(Load.table)
      // The server reports this only in a warning, which the URL must not turn off.
      let quiet = " options='-c client_min_messages=error'"
      var configuration = Database.Configuration(url: pair.url(pair.primary) + quiet)
      configuration.applicationName = Server.applicationName
      configuration.statementTimeout = .seconds(20)
      let database = try Database(configuration)
      defer { database.close() }
      try await database.execute("INSERT INTO notes VALUES (0)")
      try await pair.killStandby()
      let writes = [
        Task { _ = try await database.execute("INSERT INTO notes VALUES (1)") },
        Task { _ = try await database.batch("INSERT INTO notes VALUES (2)") },
        Task { try await database.transaction { _ = try await $0.rows("INSERT INTO notes VALUES (3)") } },
      ]
      let waits = "wait_event = 'SyncRep'"
      try await eventually("they wait for the standby") { try await server.backends(waits) == writes.count }
      _ = try await server.rows("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE \(unescaped: waits)")
      for write in writes {
        let error = try await postgresError { try await write.value }
        #expect(error.kind == .unknownOutcome)
        #expect(error.mayHaveRun)
        #expect(error.isUnavailable)
      }
      // The rows are on this server, but they would be lost with it.
      #expect(try await database.value("SELECT count(*) FROM notes") == 1 + writes.count)
    }
  }
}

/// A primary and a synchronous standby, created for one test in a separate folder.
private final class ServerPair: Sendable {
  /// The folders of a server's data and socket.
  struct Place: Sendable {
    let data: String
    let socket: String
  }

  let primary: Place
  let standby: Place
  private let folder: String
  private let programs: ServerPrograms
  private let running = Collected<(place: Place, program: Program)>()

  private init(_ programs: ServerPrograms) throws {
    folder = try programs.makeFolder("pair")
    primary = Place(data: "\(folder)/primary", socket: "\(folder)/p")
    standby = Place(data: "\(folder)/standby", socket: "\(folder)/s")
    self.programs = programs
    for path in [primary.socket, standby.socket] {
      mkdir(path, 0o700)
      programs.own(path)
    }
  }

  /// Starts both servers, and stops and deletes them when `body` ends.
  static func run(_ body: (ServerPair) async throws -> Void) async throws {
    let pair = try ServerPair(await ServerPrograms())
    do {
      try await pair.start()
      try await body(pair)
      await pair.remove()
    } catch {
      await pair.remove()
      throw error
    }
  }

  /// A connection string with these hosts.
  func url(_ places: Place...) -> String {
    let ports = places.map { _ in "5432" }.joined(separator: ",")
    return "host=\(places.map(\.socket).joined(separator: ",")) port=\(ports) user=muster dbname=postgres"
  }

  private func start() async throws {
    try await programs.run(
      "initdb",
      [
        "--pgdata=\(primary.data)", "--username=muster", "--encoding=UTF8", "--locale=C", "--auth-local=trust",
        "--auth-host=reject", "--no-sync",
      ])
    // Not in a file: the standby would copy it and then wait for its own standby.
    try await launch(primary, "synchronous_standby_names=*")
    try await programs.run(
      "pg_basebackup",
      [
        "--pgdata=\(standby.data)", "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
        "--host=\(primary.socket)", "--port=5432", "--username=muster",
      ])
    try await launch(standby)
    let server = Server(url: url(primary))
    try await eventually("the standby has caught up") {
      try await server.value("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == 1
    }
  }

  private func launch(_ place: Place, _ settings: String...) async throws {
    let all = ["unix_socket_directories=\(place.socket)", "listen_addresses=", "fsync=off", "shared_buffers=32MB"]
    let program = try await programs.start("postgres", ["-D", place.data] + (all + settings).flatMap { ["-c", $0] })
    running.append((place, program))
    let url = url(place)
    try await eventually("the server is ready") {
      if !program.isRunning { throw Unexpected("the server ended: \(program.standardError)") }
      return (try? await Server(url: url).value("SELECT 1")) == 1
    }
  }

  func killPrimary() async throws { try await kill(primary) }

  func killStandby() async throws { try await kill(standby) }

  func promoteStandby() async throws { try await programs.run("pg_ctl", ["promote", "--pgdata=\(standby.data)"]) }

  /// Kills all processes of a server at once, without a shutdown.
  private func kill(_ place: Place) async throws {
    guard let program = running.all.last(where: { $0.place.data == place.data })?.program else { return }
    // SIGSTOP keeps it from starting more children.
    program.signal(SIGSTOP)
    let children = try await Program("/bin/ps", ["-A", "-o", "pid=", "-o", "ppid="])
    _ = try await children.exitStatus()
    let pids = children.standardOutput.split(whereSeparator: \.isNewline)
      .map { $0.split(separator: " ").compactMap { Int32($0) } }
      .filter { $0.count == 2 && $0[1] == program.pid }.map { $0[0] }
    for pid in [program.pid] + pids { Foundation.kill(pid, SIGKILL) }
    _ = try await program.exitStatus()
  }

  /// Stops running servers and deletes everything, including the shared memory of killed servers.
  private func remove() async {
    for (place, program) in running.all {
      let lines =
        (try? String(contentsOfFile: "\(place.data)/postmaster.pid", encoding: .utf8))?
        .split(separator: "\n", omittingEmptySubsequences: false) ?? []
      program.signal(SIGQUIT)
      // Detached, so that it also works in a cancelled task.
      _ = await Task.detached { try? await program.exitStatus(within: .seconds(10)) }.value
      // The seventh line is "key id".
      let segment = lines.count > 6 ? lines[6].split(separator: " ").last.flatMap { Int32($0) } : nil
      if let segment { shmctl(segment, IPC_RMID, nil) }
    }
    try? FileManager.default.removeItem(atPath: folder)
  }
}
