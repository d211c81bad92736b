import Logging
import ServiceLifecycle

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
