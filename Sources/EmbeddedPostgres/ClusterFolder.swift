import Foundation
import Subprocess

/// A cluster's folder, owned by this process. `data/` belongs to PostgreSQL, the other files to this library.
///
/// If root starts the cluster, root owns the folder, and only `data/` and the log belong to the unprivileged account.
/// So that account cannot misdirect root with symbolic links.
struct ClusterFolder: Sendable {
  private static let unfinishedPrefix = "data.unfinished."

  let path: String
  let account: Account
  let lock: FolderLock

  var data: String { path + "/data" }
  /// The folder in which initdb runs. It is renamed to `data` afterwards, so `data` is always complete. The initdb of a
  /// killed owner may still run in its own folder.
  var unfinished: String { "\(path)/\(Self.unfinishedPrefix)\(getpid())" }
  var configurationFile: String { path + "/postgresql.conf" }
  var log: String { path + "/postgres.log" }
  /// The owner's settings.
  var settings: String { path + "/settings.json" }
  /// Settings that are being written.
  var newSettings: String { settings + ".new" }
  /// The major version of PostgreSQL that created the cluster; nil if there is no cluster yet.
  var major: String? { Files.read(data + "/PG_VERSION").map { String($0.prefix { !$0.isWhitespace }) } }

  /// Makes this process the owner of the cluster folder `requested`. If root starts the cluster and the account that
  /// runs the server cannot use `requested`, uses a stand-in under `/var/lib/muster`.
  static func claim(_ requested: String, notice: (String) -> Void) async throws -> ClusterFolder {
    let path = Files.resolved(requested)
    guard geteuid() == 0 else { return try ClusterFolder(making: path) }
    let standIn = standIn(for: path)
    if FolderLock.marks(path) || !FolderLock.marks(standIn), let home = try await ClusterFolder(reaching: path) {
      return home
    }
    guard let home = try await ClusterFolder(reaching: standIn) else {
      throw EmbeddedPostgresError("No account that can run PostgreSQL can access \(path): run as a normal user.")
    }
    let name = home.account.name
    notice("PostgreSQL does not run as root, and the account '\(name)' cannot use \(path): the data is in \(standIn).")
    return home
  }

  /// Claims the folder; nil if the account that runs PostgreSQL cannot use it.
  private init?(reaching path: String) async throws {
    self = try ClusterFolder(making: path)
    do {
      if try await isReachable() { return }
      guard !Files.exists(data) else {
        throw EmbeddedPostgresError(
          "The account '\(account.name)' cannot reach its cluster in \(path): open the parent folders (chmod o+x)."
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

  /// Claims the clusters created for `requested`, for deletion.
  static func existing(for requested: String) throws -> [ClusterFolder] {
    let path = Files.resolved(requested)
    try refuseForeign(path)
    let folders = geteuid() == 0 ? [path, standIn(for: path)] : [path]
    return try folders.filter(FolderLock.marks).map { try ClusterFolder(making: $0) }
  }

  private static func standIn(for path: String) -> String {
    "/var/lib/muster/" + Files.hash(of: path)
  }

  private init(making path: String) throws {
    try Self.refuseForeign(path)
    try Files.makeFolders(path)
    // The account has no access to a folder that mktemp created.
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
      "Foreign data folder: \(path) contains files but is not a cluster created by Muster; choose another folder.")
  }

  /// Whether the account can use the data folder. It tries, because access lists and mounts also matter.
  private func isReachable() async throws -> Bool {
    var probe = data
    if !Files.exists(data) {
      probe = unfinished
      guard try makeUnfinished() else { return false }
    }
    return try await account.run("sh", ["-c", "cd -- \"$1\"", "sh", probe]).succeeded
  }

  /// Creates an empty folder for initdb. Returns false if the account cannot own it here.
  func makeUnfinished() throws -> Bool {
    for leftover in allUnfinished { try? Files.removeAll([leftover]) }
    guard mkdir(unfinished, 0o700) == 0 else { throw EmbeddedPostgresError("create", unfinished, errno: errno) }
    return account.own(unfinished)
  }

  private var allUnfinished: [String] {
    let content = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    return content.filter { $0.hasPrefix(Self.unfinishedPrefix) }.map { "\(path)/\($0)" }
  }

  /// Creates the folder for the server's socket. It is outside the data folder, because a socket's path is limited to
  /// about 100 bytes.
  ///
  /// In `/tmp`, another user may have created a folder with that name. A folder that is not private to us is skipped.
  func makeSocketFolder() throws -> String {
    let runtime = geteuid() == 0 ? "/run" : ProcessInfo.processInfo.environment["XDG_RUNTIME_DIR"] ?? "/tmp"
    let name = "muster-" + Files.hash(of: data)
    for base in [runtime, "/tmp"] where base.utf8.count < 50 {
      for suffix in ["", "-1", "-2", "-3"] {
        let folder = "\(base)/\(name)\(suffix)"
        let isNew = mkdir(folder, 0o700) == 0
        if isNew || account.hasPrivate(folder), account.own(folder) { return folder }
        if isNew { rmdir(folder) }
      }
    }
    throw EmbeddedPostgresError("No private folder for the server's socket: check who owns /tmp/\(name) and delete it.")
  }

  /// Deletes everything that this type created. The marker goes last, so that an interrupted deletion can be repeated.
  /// The server must not be running.
  func erase() throws {
    if let folder = try? makeSocketFolder() {
      try Files.removeAll(["", ".lock"].map { "\(folder)/.s.PGSQL.5432\($0)" })
    }
    try Files.removeAll(allUnfinished + [data, configurationFile, log, log + ".old", settings, newSettings])
    try Files.removeAll(["\(path)/\(FolderLock.marker)"])
    rmdir(path)
  }

  /// Releases the folder for the next owner.
  func leave() {
    if let folder = try? makeSocketFolder() { rmdir(folder) }
    lock.release()
  }
}
