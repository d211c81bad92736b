import Metrics
import Synchronization

/// A number that rises and falls.
final class GaugeCell: MetricCell, RecorderHandler, MeterHandler {
  static let kind = MetricKind.gauge
  private let bits = Atomic<UInt64>(0)

  init() {}

  var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

  func set(_ value: Double) {
    bits.store(value.bitPattern, ordering: .relaxed)
  }

  func set(_ value: Int64) { set(Double(value)) }
  func record(_ value: Int64) { set(Double(value)) }
  func record(_ value: Double) { set(value) }

  func increment(by amount: Double) {
    var known = bits.load(ordering: .relaxed)
    while true {
      let sum = Double(bitPattern: known) + amount
      let (exchanged, original) = bits.compareExchange(expected: known, desired: sum.bitPattern, ordering: .relaxed)
      if exchanged { return }
      known = original
    }
  }

  func decrement(by amount: Double) { increment(by: -amount) }
}
