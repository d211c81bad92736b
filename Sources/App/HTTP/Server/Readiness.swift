import Logging
import ServiceLifecycle
import Synchronization

/// Whether load balancers may send requests here.
final class Readiness: Sendable {
  private let stopping = Atomic(false)

  var isStopping: Bool { stopping.load(ordering: .relaxed) }

  func stop() { stopping.store(true, ordering: .relaxed) }
}

/// Keeps the listener open for a while after the process was told to stop, until load balancers have seen that it is
/// unready: a service group stops its services from the last to the first, and this is the last.
struct Draining: Service {
  let readiness: Readiness
  let seconds: Int
  let logger: Logger

  func run() async throws {
    // It throws when the service has failed: then there is nothing to drain.
    do { try await gracefulShutdown() } catch { return }
    readiness.stop()
    logger.notice("stopping", metadata: ["drain_seconds": .stringConvertible(seconds)])
    if seconds > 0 { try? await Task.sleep(for: .seconds(seconds)) }
  }
}
