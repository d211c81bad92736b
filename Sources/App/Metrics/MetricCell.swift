/// Something that is counted or measured, from any thread, without waiting for another.
protocol MetricCell: AnyObject, Sendable {
  static var kind: MetricKind { get }
  init()
}

/// As Prometheus calls them.
enum MetricKind: String, Sendable {
  case counter, gauge, histogram
}
