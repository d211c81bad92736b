import Synchronization

/// Whether load balancers may send requests to this process.
final class Readiness: Sendable {
  private let stopping = Atomic(false)

  var isStopping: Bool { stopping.load(ordering: .relaxed) }

  func stop() { stopping.store(true, ordering: .relaxed) }
}
