import HTTPTypes
import Hummingbird
import Postgres

/// What the service does for one method of one path.
final class Endpoint: Sendable {
  let method: HTTPRequest.Method
  /// The template of the path, such as `/api/v1/events/{id}`.
  let path: String
  let responder: any HTTPResponder<Context>
  /// In front of each statement, such as `/* GET /api/v1/events */`, so that `pg_stat_activity` and the logs of slow
  /// statements show where a statement comes from. A HEAD runs the statements of its GET.
  let comment: SQL.Comment
  let metrics: RequestMetrics
  let deprecation: Deprecation?

  init(
    _ method: HTTPRequest.Method, _ path: String, _ responder: any HTTPResponder<Context>, metrics: MetricsRegistry,
    deprecations: [String: Deprecation] = Deprecation.routes
  ) {
    self.method = method
    self.path = path
    self.responder = responder
    self.metrics = RequestMetrics(method.rawValue, path, in: metrics)
    let name = "\(method == .head ? "GET" : method.rawValue) \(path)"
    comment = SQL.Comment(name)
    deprecation = deprecations[name]
  }
}
