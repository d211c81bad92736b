import Metrics
import Synchronization

/// A number that only rises.
final class CounterCell: MetricCell, CounterHandler {
  static let kind = MetricKind.counter
  private let total = Atomic<Int64>(0)

  init() {}

  var value: Int64 { total.load(ordering: .relaxed) }

  func increment(by amount: Int64) {
    total.wrappingAdd(amount, ordering: .relaxed)
  }

  func reset() {
    total.store(0, ordering: .relaxed)
  }
}
