import Metrics
import Synchronization

/// A metric that any thread can update without waiting for another.
protocol MetricCell: AnyObject, Sendable {
  static var kind: MetricKind { get }
  init()
}

/// Named as in Prometheus.
enum MetricKind: String, Sendable {
  case counter, gauge, histogram
}

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

/// Counts durations by fixed bounds.
final class HistogramCell: MetricCell, TimerHandler, RecorderHandler {
  static let kind = MetricKind.histogram
  /// In seconds. One more bucket counts everything above the last bound.
  static let bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  private static let nanoseconds = bounds.map { Int64($0 * 1e9) }

  private let buckets = (0...HistogramCell.bounds.count).map { _ in CounterCell() }
  private let sum = CounterCell()

  init() {}

  func recordNanoseconds(_ duration: Int64) {
    let bounds = Self.nanoseconds
    var place = 0
    while place < bounds.count, duration > bounds[place] { place += 1 }
    buckets[place].increment(by: 1)
    sum.increment(by: duration)
  }

  func record(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    recordNanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
  }

  /// In seconds.
  func record(_ value: Double) {
    if let nanoseconds = Int64(exactly: (value * 1e9).rounded()) { recordNanoseconds(nanoseconds) }
  }

  func record(_ value: Int64) { record(Double(value)) }

  /// How many durations are within each bound, how many there are, and their sum in seconds.
  var totals: (upTo: [Int64], count: Int64, seconds: Double) {
    var count: Int64 = 0
    let upTo = buckets.map { bucket -> Int64 in
      count += bucket.value
      return count
    }
    return (Array(upTo.dropLast()), count, Double(sum.value) / 1e9)
  }
}
