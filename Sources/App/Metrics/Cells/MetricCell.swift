/// A metric that any thread can update without waiting for another.
protocol MetricCell: AnyObject, Sendable {
  static var kind: MetricKind { get }
  init()
}
