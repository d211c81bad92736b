import Synchronization

/// Whether load balancers may send requests here.
final class Readiness: Sendable {
  private let stopping = Atomic(false)

  var isStopping: Bool { stopping.load(ordering: .relaxed) }

  func stop() { stopping.store(true, ordering: .relaxed) }
}
