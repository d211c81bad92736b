import EmbeddedPostgres
import Foundation
import Postgres

/// A PostgreSQL server for a single test, which may stop and crash it. Committed data survives both.
public final class OwnCluster: Sendable {
  private let server: Lock<EmbeddedPostgres>

  private init(_ server: EmbeddedPostgres) {
    self.server = Lock(server)
  }

  /// Starts a server, and deletes it when `body` ends.
  public static func run(_ body: (OwnCluster) async throws -> Void) async throws {
    // In the folder next to the other tests' cluster, where `Scripts/test` looks for servers to stop.
    let shared = ProcessInfo.processInfo.environment["MUSTER_TEST_CLUSTER"]
    let parent =
      shared.map { URL(filePath: $0).deletingLastPathComponent() } ?? FileManager.default.temporaryDirectory
    let folder = parent.appending(path: "own-\(UUID().uuidString.prefix(8))").path
    let cluster = OwnCluster(try await start(in: folder))
    do {
      try await body(cluster)
    } catch {
      await cluster.remove()
      throw error
    }
    await cluster.remove()
  }

  private static func start(in folder: String) async throws -> EmbeddedPostgres {
    // The machine stays up, so fsync is not needed. But data that a crashed server has not written to the system is
    // lost.
    let cluster = try await EmbeddedPostgres.start(
      in: folder, durability: .disposable,
      settings: [
        "max_connections": "200", "shared_buffers": "64MB", "synchronous_commit": "on", "full_page_writes": "on",
      ])
    try await ScriptConnection.run(cluster.uri(database: "postgres"), timeout: .seconds(60)) {
      try $0.script(EmbeddedPostgres.creatingProgramRole)
    }
    return cluster
  }

  /// The URL, which stays the same after a restart.
  public var url: String { server.withLock { $0 }.uri(database: "postgres") }

  /// Stops the server and closes all connections. A crash makes the next start recover.
  public func stop(crashing: Bool) async throws {
    let running = server.withLock { $0 }
    if crashing { kill(running.postmasterPID, SIGQUIT) }
    try await running.stop()
  }

  public func start() async throws {
    let next = try await Self.start(in: server.withLock { $0 }.folder)
    server.withLock { $0 = next }
  }

  private func remove() async {
    let last = server.withLock { $0 }
    // Detached, so that it also works in a cancelled task.
    await Task.detached {
      try? await last.stop()
      try? await EmbeddedPostgres.erase(last.folder)
    }.value
  }
}
