import HTTPTypes

/// Counts requests. The cells of all routes exist beforehand: a request finds its cells by the route's template, and
/// its writes wait for no other request.
struct RequestMetrics: Sendable {
  private struct Cells: Sendable {
    let duration: HistogramCell
    /// By the first digit of the status.
    let responses: [CounterCell]

    init(_ method: String, _ route: String, in metrics: MetricsRegistry) {
      let labels = [("method", method), ("route", route)]
      duration = metrics.cell("http_request_duration_seconds", labels, of: HistogramCell.self)
      responses = (1...5).map {
        metrics.cell("http_requests_total", labels + [("status", "\($0)xx")], of: CounterCell.self)
      }
    }
  }

  private struct Method: Sendable {
    let method: HTTPRequest.Method
    let cells: Cells
  }

  private let routes: [String: [Method]]
  /// For paths without a route.
  private let elsewhere: Cells

  init(_ routes: [(path: String, method: HTTPRequest.Method)], in metrics: MetricsRegistry) {
    var known: [String: [Method]] = [:]
    for (path, method) in routes {
      // Every path with a GET also has a HEAD.
      let methods = method == .get ? [method, .head] : [method]
      known[path, default: []] += methods.map { Method(method: $0, cells: Cells($0.rawValue, path, in: metrics)) }
    }
    self.routes = known
    elsewhere = Cells("any", "none", in: metrics)
  }

  /// - Parameter route: the route's template, if there is one.
  func count(_ method: HTTPRequest.Method, _ route: String?, _ status: Int, after duration: Duration) {
    let cells = route.flatMap { routes[$0] }?.first { $0.method == method }?.cells ?? elsewhere
    cells.duration.record(duration)
    cells.responses[min(max(status / 100, 1), 5) - 1].increment(by: 1)
  }
}
