import Foundation
import Subprocess
import Synchronization

/// The PostgreSQL server programs of one version that is installed on this machine.
struct Server: Sendable {
  let programs: String
  let major: String

  /// Finds the programs for a cluster: of the version that created it, or the first version found for a new cluster.
  static func find(for home: ClusterFolder) async throws -> Server {
    var found: [Server] = []
    for folder in await programFolders() {
      guard ["postgres", "initdb"].allSatisfy({ access("\(folder)/\($0)", X_OK) == 0 }) else { continue }
      // "postgres (PostgreSQL) 17.2 (Debian ...)"
      let version = try await Account.current.run("postgres", ["--version"], programs: folder).output
      guard let number = version.split(separator: " ").dropFirst(2).first else { continue }
      let server = Server(programs: folder, major: String(number.prefix { $0.isNumber }))
      if home.major == nil || home.major == server.major { return server }
      found.append(server)
    }
    if found.isEmpty, let only = setProgramFolder {
      throw EmbeddedPostgresError(
        "MUSTER_PG_BIN is \(only), which has no PostgreSQL server programs (postgres, initdb): correct or unset it.")
    }
    #if os(macOS)
      let install = "brew install postgresql"
      let (newest, exact) = ("\(install)@17", "\(install)@\(home.major ?? "")")
    #else
      let install = "sudo apt-get install -y postgresql"
      let (newest, exact) = (install, "\(install)-\(home.major ?? "")")
    #endif
    guard !found.isEmpty else {
      throw EmbeddedPostgresError(
        "No PostgreSQL server found: install one (\(newest)), or set MUSTER_PG_BIN to the folder with its programs.")
    }
    throw EmbeddedPostgresError(
      "The cluster in \(home.path) needs PostgreSQL \(home.major ?? "?"), but \(found[0].major) is installed: install "
        + "the right version (\(exact)), or delete the data and start over (muster dev --reset).")
  }

  private static var setProgramFolder: String? {
    ProcessInfo.processInfo.environment["MUSTER_PG_BIN"].flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func programFolders() async -> [String] {
    if let setProgramFolder { return [setProgramFolder] }
    var folders: [String] = []
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    if let folder = try? await Account.current.run("pg_config", ["--bindir"], programs: path), folder.succeeded {
      folders += folder.output.split(whereSeparator: \.isNewline).map(String.init)
    }
    for brew in ["/opt/homebrew", "/usr/local", "/home/linuxbrew/.linuxbrew"] {
      folders += versions(in: "\(brew)/opt", prefix: "postgresql@")
    }
    folders += versions(in: "/usr/lib/postgresql", prefix: "") + versions(in: "/usr", prefix: "pgsql-")
    return folders + path.split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
  }

  /// The `bin` folders of versions installed side by side, highest first.
  private static func versions(in folder: String, prefix: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let numbers = names.filter { $0.hasPrefix(prefix) }.compactMap { Int($0.dropFirst(prefix.count)) }
    return numbers.sorted(by: >).map { "\(folder)/\(prefix)\($0)/bin" }
  }

  /// Creates the cluster in `home`.
  func createCluster(in home: ClusterFolder, durability: EmbeddedPostgres.Durability) async throws {
    // Case mapping beyond ASCII, and the same order on every machine. On macOS, only PostgreSQL 17's builtin provider
    // has it.
    let locales = [
      ["--locale=C.UTF-8"], ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"], ["--locale=C"],
    ]
    var arguments = ["--pgdata=\(home.unfinished)", "--username=muster", "--encoding=UTF8"]
    arguments += ["--auth-local=trust", "--auth-host=reject"] + (durability == .disposable ? ["--no-sync"] : [])
    var output = ""
    do {
      for locale in locales {
        guard try home.makeUnfinished() else { throw EmbeddedPostgresError("own", home.unfinished, errno: errno) }
        let result = try await home.account.run("initdb", arguments + locale, programs: programs)
        if result.succeeded {
          guard rename(home.unfinished, home.data) == 0 else {
            throw EmbeddedPostgresError("create", home.data, errno: errno)
          }
          return
        }
        output = result.output
        guard output.contains("invalid locale") || output.contains("unrecognized") else { break }
      }
    } catch {
      try? Files.removeAll([home.unfinished])
      throw error
    }
    try Files.removeAll([home.unfinished])
    try? Files.write(home.log, output, mode: 0o600)
    throw EmbeddedPostgresError("Cannot create a cluster", output: output, log: home.log, folder: home.path)
  }

  /// The cluster's running postmaster. Takes over the one that a killed owner left if it has this configuration, or
  /// starts a new one.
  func postmaster(of home: ClusterFolder, socketFolder: String, configuration: String) async throws -> Postmaster {
    if let left = await Postmaster.running(in: home) {
      if Files.read(home.configurationFile) == configuration, Files.exists(socketFolder + "/.s.PGSQL.5432"),
        let ready = try await left.whenReady(in: home)
      {
        return ready
      }
      try await left.stop(in: home)
    }
    // Files left by a crash would be mistaken for the new server's, or would block it if another process now has the
    // old id. Deleting them cannot lead to two servers on the same data: the shared memory is identified by the data
    // folder.
    try Files.removeAll([home.data + "/postmaster.pid"] + ["", ".lock"].map { "\(socketFolder)/.s.PGSQL.5432\($0)" })
    try Files.write(home.configurationFile, configuration)
    var failure: any Error
    var attempts = 0
    repeat {
      do {
        return try await launch(home)
      } catch let error as EmbeddedPostgresError where error.description.contains("pre-existing shared memory block") {
        // When a postmaster is killed with its owner, its server processes need a moment to end.
        failure = error
        attempts += 1
        await Task.pause(.milliseconds(500))
      }
    } while attempts < 10 && !Task.isCancelled
    throw failure
  }

  private func launch(_ home: ClusterFolder) async throws -> Postmaster {
    rename(home.log, home.log + ".old")
    try Files.write(home.log, "", mode: 0o600)
    guard home.account.own(home.log) else { throw EmbeddedPostgresError("own", home.log, errno: errno) }
    // The shell redirects output to the log and then becomes the server.
    let script = "log=$1; shift; exec \"$@\" </dev/null >>\"$log\" 2>&1"
    let arguments = ["\(programs)/postgres", "-D", home.data, "-c", "config_file=\(home.configurationFile)"]
    let end = Mutex<String?>(nil)
    let child = Task.detached {
      let result = try? await home.account.run("sh", ["-c", script, "sh", home.log] + arguments, programs: programs)
      end.withLock { $0 = result?.output ?? "" }
    }
    let deadline = ContinuousClock.now + .seconds(60)
    while ContinuousClock.now < deadline, !Task.isCancelled {
      if let output = end.withLock({ $0 }) {
        let log = Files.read(home.log) ?? ""
        throw EmbeddedPostgresError(
          "PostgreSQL does not start", output: log.isEmpty ? output : log, log: home.log, folder: home.path)
      }
      if let postmaster = await Postmaster.running(in: home), postmaster.isReady { return postmaster }
      await Task.pause(.milliseconds(20))
    }
    child.cancel()
    await child.value
    try Task.checkCancellation()
    throw EmbeddedPostgresError("PostgreSQL is not ready after a minute: check its log, \(home.log), and try again.")
  }
}
