import Subprocess

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif
#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// A cluster's folder, owned by this process: `data/` is PostgreSQL's, the files beside it are ours.
///
/// Where root starts the cluster, the folder is root's and only `data/` and the log belong to the unprivileged account,
/// which can thus not lead root astray with links of its own.
struct ClusterFolder: Sendable {
  private static let unfinishedPrefix = "data.unfinished."

  let path: String
  let account: Account
  let lock: FolderLock

  var data: String { path + "/data" }
  /// initdb works here, and the result is renamed: whatever bears the name `data` is complete. The initdb of a killed owner
  /// may still be at work in its own.
  var unfinished: String { "\(path)/\(Self.unfinishedPrefix)\(getpid())" }
  var configurationFile: String { path + "/postgresql.conf" }
  var log: String { path + "/postgres.log" }
  /// The major version of PostgreSQL that made the cluster; nil before there is one.
  var major: String? { readFile(data + "/PG_VERSION").map { String($0.prefix { !$0.isWhitespace }) } }

  /// Makes this process the owner of the cluster folder `requested`, or for root of its stand-in under `/var/lib/muster`
  /// when the account that runs the server cannot use `requested`.
  static func claim(_ requested: String, notice: (String) -> Void) async throws -> ClusterFolder {
    let path = resolved(requested)
    guard geteuid() == 0 else { return try ClusterFolder(making: path) }
    let standIn = standIn(for: path)
    if FolderLock.marks(path) || !FolderLock.marks(standIn), let home = try await ClusterFolder(reaching: path) {
      return home
    }
    guard let home = try await ClusterFolder(reaching: standIn) else {
      throw EmbeddedPostgresError("No account that can run PostgreSQL can use \(path): run as a normal user instead.")
    }
    let name = home.account.name
    notice("PostgreSQL does not run as root, and the account '\(name)' cannot use \(path): data are in \(standIn).")
    return home
  }

  /// The folder, unless the account that is to run PostgreSQL cannot use it.
  private init?(reaching path: String) async throws {
    self = try ClusterFolder(making: path)
    do {
      if try await isReachable() { return }
      guard !exists(data) else {
        throw EmbeddedPostgresError(
          "The account '\(account.name)' can no longer use its cluster in \(path): let it pass the folders above (chmod o+x)."
        )
      }
      try erase()
    } catch {
      leave()
      throw error
    }
    leave()
    return nil
  }

  /// The clusters made for `requested`, claimed for deletion.
  static func existing(for requested: String) throws -> [ClusterFolder] {
    let path = resolved(requested)
    try refuseForeign(path)
    let folders = geteuid() == 0 ? [path, standIn(for: path)] : [path]
    return try folders.filter(FolderLock.marks).map { try ClusterFolder(making: $0) }
  }

  private static func standIn(for path: String) -> String {
    "/var/lib/muster/" + hash(of: path)
  }

  private init(making path: String) throws {
    try Self.refuseForeign(path)
    try makeFolders(path)
    // A folder fresh from mktemp is closed to the account.
    if geteuid() == 0 { chmod(path, 0o755) }
    self.path = path
    lock = try FolderLock(path)
    do {
      account = try Account.running(clusterIn: path + "/data")
    } catch {
      lock.release()
      throw error
    }
  }

  private static func refuseForeign(_ path: String) throws {
    guard let content = try? FileManager.default.contentsOfDirectory(atPath: path), !content.isEmpty else { return }
    guard !FolderLock.marks(path) else { return }
    throw EmbeddedPostgresError(
      "Foreign data folder: \(path) has files, and none that says it is a cluster of Muster's; choose another folder.")
  }

  /// Whether the account can use the data folder, found out by trying: access lists and mounts have their say too.
  private func isReachable() async throws -> Bool {
    var probe = data
    if !exists(data) {
      probe = unfinished
      guard try makeUnfinished() else { return false }
    }
    return try await account.run("sh", ["-c", "cd -- \"$1\"", "sh", probe]).succeeded
  }

  /// An empty folder for initdb; false if the account cannot be given one here.
  func makeUnfinished() throws -> Bool {
    for leftover in allUnfinished { try? removeAll([leftover]) }
    guard mkdir(unfinished, 0o700) == 0 else { throw EmbeddedPostgresError("create", unfinished, errno: errno) }
    return account.own(unfinished)
  }

  private var allUnfinished: [String] {
    let content = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return content.filter { $0.hasPrefix(Self.unfinishedPrefix) }.map { "\(path)/\($0)" }
  }

  /// Creates the folder for the server's socket: a socket's path has room for some 100 bytes, so it cannot be in the data.
  ///
  /// In `/tmp` anybody may have put a folder of that name before us: one that is not ours alone is passed by.
  func makeSocketFolder() throws -> String {
    let runtime = geteuid() == 0 ? "/run" : ProcessInfo.processInfo.environment["XDG_RUNTIME_DIR"] ?? "/tmp"
    let name = "muster-" + hash(of: data)
    for base in [runtime, "/tmp"] where base.utf8.count < 50 {
      for suffix in ["", "-1", "-2", "-3"] {
        let folder = "\(base)/\(name)\(suffix)"
        let isNew = mkdir(folder, 0o700) == 0
        if isNew || account.hasPrivate(folder), account.own(folder) { return folder }
        if isNew { rmdir(folder) }
      }
    }
    throw EmbeddedPostgresError("No private folder for the server's socket: see who owns /tmp/\(name), and delete it.")
  }

  /// Deletes what this type made, the marker last, so that a deletion cut short can be repeated. Nothing runs here.
  func erase() throws {
    if let folder = try? makeSocketFolder() { try removeAll(["", ".lock"].map { "\(folder)/.s.PGSQL.5432\($0)" }) }
    try removeAll(allUnfinished + [data, configurationFile, log, log + ".old"])
    try removeAll(["\(path)/\(FolderLock.marker)"])
    rmdir(path)
  }

  /// Gives the folder up for the next owner.
  func leave() {
    if let folder = try? makeSocketFolder() { rmdir(folder) }
    lock.release()
  }
}
