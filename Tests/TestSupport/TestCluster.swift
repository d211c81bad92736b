import EmbeddedPostgres
import Dispatch
import Foundation
import Postgres
import Synchronization

/// The PostgreSQL server that all tests of a run share, each in a database of its own.
public enum TestCluster {
  private static let cluster = Task {
    let folder =
      ProcessInfo.processInfo.environment["MUSTER_TEST_CLUSTER"]
      ?? FileManager.default.temporaryDirectory.appending(path: "muster-test-\(getpid())").path
    let cluster = try await EmbeddedPostgres.start(
      in: folder, durability: .disposable, settings: ["max_connections": "800", "shared_buffers": "256MB"])
    // A server must not outlive the tests, however they end short of a kill.
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

  private static let running = Mutex<EmbeddedPostgres?>(nil)

  /// So many tests use the server at once: more would only make each other late.
  private static let gate = Gate(places: 2 * ProcessInfo.processInfo.activeProcessorCount)

  /// A database of the cluster, to create others from.
  public static func administrationURL() async throws -> String {
    try await cluster.value.uri(database: "postgres")
  }

  /// Creates a database, hands its URL to `body`, and drops it.
  ///
  /// - Parameter template: the name of a database to copy.
  public static func withDatabase<Value: Sendable>(
    template: String = "template1", _ body: (_ url: String) async throws -> Value
  ) async throws -> Value {
    await gate.enter()
    defer { gate.leave() }
    let cluster = try await cluster.value
    let name = "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
    let administration = cluster.uri(database: "postgres")
    try await ScriptConnection.run(administration) {
      try $0.script("CREATE DATABASE \(name) TEMPLATE \(template)")
    }
    do {
      let value = try await body(cluster.uri(database: name))
      try await drop(name, administration)
      return value
    } catch {
      try await drop(name, administration)
      throw error
    }
  }

  private static func drop(_ name: String, _ administration: String) async throws {
    try await ScriptConnection.run(administration) { try $0.script("DROP DATABASE \(name) WITH (FORCE)") }
  }

  /// Creates a database to copy from, once.
  public static func makeTemplate(_ name: String, _ prepare: (_ url: String) async throws -> Void) async throws {
    let cluster = try await cluster.value
    try await ScriptConnection.run(cluster.uri(database: "postgres")) {
      try $0.script("DROP DATABASE IF EXISTS \(name)")
      try $0.script("CREATE DATABASE \(name)")
    }
    try await prepare(cluster.uri(database: name))
  }
}

/// Lets so many in at once, the others in the order in which they came.
private final class Gate: Sendable {
  private struct State {
    var places: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  init(places: Int) {
    state = Mutex(State(places: places))
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
