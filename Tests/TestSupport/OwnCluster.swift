import EmbeddedPostgres
import Foundation
import Postgres

/// A PostgreSQL server of one test's own, which it may stop and crash. What was committed survives both.
public final class OwnCluster: Sendable {
  private let server: Lock<EmbeddedPostgres>

  private init(_ server: EmbeddedPostgres) {
    self.server = Lock(server)
  }

  /// Starts one, and deletes it when `body` is done.
  public static func run(_ body: (OwnCluster) async throws -> Void) async throws {
    // Beside the other tests' cluster, where `Scripts/test` looks for servers to stop.
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
    // The machine stays up, so nothing is lost without fsync; but what a crashed server has not handed to it would be.
    try await EmbeddedPostgres.start(
      in: folder, durability: .disposable,
      settings: [
        "max_connections": "200", "shared_buffers": "64MB", "synchronous_commit": "on", "full_page_writes": "on",
      ])
  }

  /// The same after a restart.
  public var url: String { server.withLock { $0 }.uri(database: "postgres") }

  /// Stops it: in order, cutting all connections, or without a word, so that it has to recover.
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
    // Also for a task that was cancelled.
    await Task.detached {
      try? await last.stop()
      try? await EmbeddedPostgres.erase(last.folder)
    }.value
  }
}
