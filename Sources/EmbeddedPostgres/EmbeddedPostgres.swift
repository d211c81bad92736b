import Foundation
import Subprocess
import Synchronization

/// A private PostgreSQL cluster in a folder. Only its account and root can open its Unix socket.
///
/// One process owns a cluster at a time. The postmaster runs in its own session, so Ctrl-C in the owner's terminal does
/// not reach it. It outlives an owner that is killed, and the next owner of the folder takes it over.
public final class EmbeddedPostgres: Sendable {
  /// The durability of a commit.
  public enum Durability: Sendable {
    /// Survives a power failure.
    case durable
    /// Lost if the machine crashes, but several times faster. For tests.
    case disposable
  }

  /// The folder that contains the cluster: the requested one, or a folder under `/var/lib/muster` for a cluster of
  /// root.
  public let folder: String
  /// The server's main process. SIGINT shuts it down immediately, but cleanly.
  public let postmasterPID: Int32

  private let home: ClusterFolder
  private let socketFolder: String
  private let stopping = Mutex<Task<Void, any Error>?>(nil)

  private init(home: ClusterFolder, socketFolder: String, postmaster: Postmaster) {
    folder = home.path
    postmasterPID = postmaster.pid
    self.home = home
    self.socketFolder = socketFolder
  }

  /// Starts the cluster in `folder` and creates it on first use. Takes over a cluster that a killed owner left running.
  ///
  /// - Parameters:
  ///   - folder: Missing, empty, or created by this function before. Any other folder is rejected and left unchanged.
  ///   - settings: Server settings by name. They override the defaults for a small development cluster.
  ///   - notice: Called with one line for anything unexpected, such as data in another folder.
  /// - Throws: `EmbeddedPostgresError`, or `CancellationError` if the task was cancelled. The server does not run then.
  public static func start(
    in folder: String, durability: Durability = .durable, settings: [String: String] = [:],
    notice: (String) -> Void = { _ in }
  ) async throws -> EmbeddedPostgres {
    let home = try await ClusterFolder.claim(folder, notice: notice)
    do {
      let server = try await Server.find(for: home)
      if home.major == nil { try await server.createCluster(in: home, durability: durability) }
      let socketFolder = try home.makeSocketFolder()
      let configuration = configuration(of: home, socketFolder: socketFolder, durability, settings)
      let postmaster = try await server.postmaster(of: home, socketFolder: socketFolder, configuration: configuration)
      return EmbeddedPostgres(home: home, socketFolder: socketFolder, postmaster: postmaster)
    } catch {
      home.leave()
      throw error
    }
  }

  /// Stops the cluster in `folder` if it runs, and deletes it. Accepts a missing or empty folder. Rejects a folder that
  /// ``start(in:durability:settings:notice:)`` did not create, or that another process owns.
  public static func erase(_ folder: String) async throws {
    for home in try ClusterFolder.existing(for: folder) {
      defer { home.leave() }
      try await Postmaster.running(in: home)?.stop(in: home)
      try home.erase()
    }
  }

  /// A role for programs. It has only the rights that it is granted. ``creatingProgramRole`` creates it.
  public static let programRole = "muster_app"

  /// A script for the superuser, in any database of the cluster. Repeating it does no harm.
  public static let creatingProgramRole = """
    DO $$
    BEGIN
      CREATE ROLE \(programRole) LOGIN;
    EXCEPTION WHEN duplicate_object THEN NULL;
    END
    $$
    """

  /// The libpq URI of a database in the cluster.
  ///
  /// - Parameter role: the superuser `muster`, or ``programRole``.
  public func uri(database: String, role: String = "muster") -> String {
    "postgresql://\(role)@/\(percentEncoded(database))?host=\(percentEncoded(socketFolder))&port=5432"
  }

  /// The owner's settings. Nil if none were kept. ``erase(_:)`` deletes them.
  public var settings: String? { Files.read(home.settings) }

  /// Keeps settings with the cluster, in a file that only the owner's account can read.
  public func keep(settings: String) throws {
    try Files.write(home.newSettings, settings, mode: 0o600)
    guard rename(home.newSettings, home.settings) == 0 else {
      throw EmbeddedPostgresError("write", home.settings, errno: errno)
    }
  }

  /// Shuts the cluster down, closes its connections, and returns once it is down.
  ///
  /// After eight seconds, the server is stopped without the final checkpoint. The next start then needs a recovery, but
  /// no data is lost. Safe to call more than once, and from a cancelled task.
  public func stop() async throws {
    let shutdown = stopping.withLock { current in
      let task = current ?? Task { try await self.shutDown() }
      current = task
      return task
    }
    try await shutdown.value
  }

  private func shutDown() async throws {
    try await Postmaster.running(in: home)?.stop(in: home)
    home.leave()
  }

  private static func configuration(
    of home: ClusterFolder, socketFolder: String, _ durability: Durability, _ settings: [String: String]
  ) -> String {
    var values = [
      "max_connections": "100",
      "shared_buffers": "128MB",
      "jit": "off",
      "timezone": "UTC",
      "log_timezone": "UTC",
      "log_checkpoints": "off",
      "cluster_name": "muster",
    ]
    if durability == .disposable {
      for name in ["fsync", "synchronous_commit", "full_page_writes"] { values[name] = "off" }
    }
    values.merge(settings) { $1 }
    // Set last, so that callers cannot open other ways in: the socket in its private folder is the only one.
    values["listen_addresses"] = ""
    values["port"] = "5432"
    values["unix_socket_directories"] = "\"\(socketFolder)\""
    values["unix_socket_permissions"] = "0700"
    values["logging_collector"] = "off"
    let lines = values.sorted { $0.key < $1.key }.map { "\($0.key) = \(quoted($0.value))" }
    return "# Written by muster at every start.\ninclude \(quoted(home.data + "/postgresql.conf"))\n"
      + lines.joined(separator: "\n") + "\n"
  }

  private static func quoted(_ value: String) -> String {
    "'" + value.replacing("\\", with: "\\\\").replacing("'", with: "''") + "'"
  }

  private func percentEncoded(_ text: String) -> String {
    text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        return String(UnicodeScalar(byte))
      default:
        return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }.joined()
  }
}
