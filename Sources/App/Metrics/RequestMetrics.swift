/// Counts the requests of an endpoint. Its cells exist beforehand, so a count waits for no other request.
struct RequestMetrics: Sendable {
  private let duration: HistogramCell
  /// By the first digit of the status.
  private let responses: [CounterCell]

  /// - Parameters:
  ///   - method: the label `method`.
  ///   - route: the label `route`, such as `/api/v1/events/{id}`.
  init(_ method: String, _ route: String, in metrics: MetricsRegistry) {
    let labels = [("method", method), ("route", route)]
    duration = metrics.cell("http_request_duration_seconds", labels, of: HistogramCell.self)
    responses = (1...5).map {
      metrics.cell("http_requests_total", labels + [("status", "\($0)xx")], of: CounterCell.self)
    }
  }

  func count(_ status: Int, after duration: Duration) {
    self.duration.record(duration)
    responses[min(max(status / 100, 1), 5) - 1].increment(by: 1)
  }
}
