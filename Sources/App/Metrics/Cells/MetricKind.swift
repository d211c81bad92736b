/// Named as in Prometheus.
enum MetricKind: String, Sendable {
  case counter, gauge, histogram
}
