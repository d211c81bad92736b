import Foundation
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// The account that the server runs as: our own account, or an unprivileged one for root, which PostgreSQL rejects.
struct Account: Sendable {
  let name: String
  let userID: uid_t
  let groupID: gid_t

  static let current = Account(name: "", userID: geteuid(), groupID: getegid())

  /// The account for the existing or future cluster in the folder `data`.
  static func running(clusterIn data: String) throws -> Account {
    var info = stat()
    let owner = lstat(data, &info) == 0 ? info.st_uid : nil
    if geteuid() != 0 {
      guard owner == nil || owner == geteuid() else {
        throw EmbeddedPostgresError(
          "The cluster in \(data) belongs to another account: use that account or root, or choose another folder.")
      }
      return current
    }
    if let owner {
      guard owner != 0, let account = Account(getpwuid(owner)) else {
        throw EmbeddedPostgresError("The cluster in \(data) belongs to account \(owner), which cannot run PostgreSQL.")
      }
      return account
    }
    for name in ["postgres", "_postgres", "nobody"] {
      if let account = Account(getpwnam(name)) { return account }
    }
    throw EmbeddedPostgresError("PostgreSQL does not run as root: add an account for it (useradd --system postgres).")
  }

  private init(name: String, userID: uid_t, groupID: gid_t) {
    (self.name, self.userID, self.groupID) = (name, userID, groupID)
  }

  private init?(_ entry: UnsafeMutablePointer<passwd>?) {
    guard let entry = entry?.pointee else { return nil }
    self.init(name: String(cString: entry.pw_name), userID: entry.pw_uid, groupID: entry.pw_gid)
  }

  /// Makes this account the owner of a file, if we run as another account. Returns false if the file system rejects it.
  func own(_ path: String) -> Bool {
    userID == geteuid() || lchown(path, userID, groupID) == 0
  }

  /// Whether only this account, or ours, has access to the folder.
  func hasPrivate(_ folder: String) -> Bool {
    var info = stat()
    guard lstat(folder, &info) == 0, info.st_mode & S_IFMT == S_IFDIR, info.st_mode & 0o077 == 0 else { return false }
    return info.st_uid == userID || info.st_uid == geteuid()
  }

  /// Runs a program as this account, without our PG* variables. Looks it up in `programs` and the system's folders.
  func run(
    _ program: String, _ arguments: [String], programs: String? = nil
  ) async throws -> (succeeded: Bool, output: String) {
    var environment: [Environment.Key: String] = ["LC_ALL": "C", "TZ": "UTC"]
    environment["PATH"] = [programs, "/usr/bin:/bin"].compactMap { $0 }.joined(separator: ":")
    environment["LD_LIBRARY_PATH"] = ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"]
    var options = PlatformOptions()
    options.createSession = true
    options.teardownSequence = [
      .send(signal: .interrupt, allowedDurationToNextStep: .seconds(8)),
      .send(signal: .quit, allowedDurationToNextStep: .seconds(7)),
    ]
    var command = [program] + arguments
    if userID != geteuid() {
      #if os(Linux)
        // For another user, Subprocess clones its child. There, glibc's setgroups can wait forever for threads that
        // exist only in the parent.
        command = ["setpriv", "--reuid", "\(userID)", "--regid", "\(groupID)", "--clear-groups"] + command
      #else
        (options.userID, options.groupID, options.supplementaryGroups) = (userID, groupID, [])
      #endif
    }
    do {
      let result = try await Subprocess.run(
        .name(command[0]), arguments: Arguments(Array(command.dropFirst())), environment: .custom(environment),
        workingDirectory: "/", platformOptions: options, output: .string(limit: 1 << 20), error: .combinedWithOutput)
      // The failure of a cancelled program means nothing.
      if !result.terminationStatus.isSuccess { try Task.checkCancellation() }
      return (result.terminationStatus.isSuccess, result.standardOutput)
    } catch let error as SubprocessError {
      try Task.checkCancellation()
      throw EmbeddedPostgresError("Cannot run \(program) as \(name.isEmpty ? "this account" : name): \(error)")
    }
  }
}
