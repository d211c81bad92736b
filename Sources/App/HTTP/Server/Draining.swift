import Logging
import ServiceLifecycle

/// Keeps the listener open for a while after the process begins to stop, so that load balancers notice that it is
/// unready. A service group stops its services from the last to the first, and this one is the last.
struct Draining: Service {
  let readiness: Readiness
  let seconds: Int
  let logger: Logger

  func run() async throws {
    // Throws if the service has failed, and then there is nothing to drain.
    do { try await gracefulShutdown() } catch { return }
    readiness.stop()
    logger.notice("stopping", metadata: ["drain_seconds": .stringConvertible(seconds)])
    if seconds > 0 { try? await Task.sleep(for: .seconds(seconds)) }
  }
}
