import HTTPServer
import Postgres

/// Responds to a request that has found its endpoint.
typealias Handler = @Sendable (Request, Context) async throws -> Response

/// The handler of one method of one path.
final class Endpoint: Sendable {
  let method: HTTPRequest.Method
  /// The template of the path, such as `/api/v1/events/{id}`.
  let path: String
  let respond: Handler
  /// In front of each statement, such as `/* GET /api/v1/events */`, so that `pg_stat_activity` and the logs of slow
  /// statements show where a statement comes from. A HEAD runs the statements of its GET.
  let comment: SQL.Comment
  let metrics: RequestMetrics
  let deprecation: Deprecation?

  init(
    _ method: HTTPRequest.Method, _ path: String, metrics: MetricsRegistry, deprecation: Deprecation? = nil,
    _ respond: @escaping Handler
  ) {
    self.method = method
    self.path = path
    self.respond = respond
    self.metrics = RequestMetrics(method.rawValue, path, in: metrics)
    comment = SQL.Comment("\(method == .head ? "GET" : method.rawValue) \(path)")
    self.deprecation = deprecation
  }

  /// The endpoints of the service. Every path with a GET also has a HEAD.
  ///
  /// - Parameter streams: the caller must run them.
  static func all(_ dependencies: Dependencies, streams: NotificationStreams) -> [Endpoint] {
    let handlers = Handlers(dependencies, streams: streams)
    return Operation.allCases.flatMap { operation in
      let (attributes, handler) = (operation.attributes, handlers.handler(of: operation))
      let responder = OperationResponder(operation, dependencies, handler)
      return (attributes.method == .get ? [.get, .head] : [attributes.method]).map { method in
        Endpoint(
          method, attributes.path, metrics: dependencies.metrics, deprecation: attributes.deprecation,
          responder.respond)
      }
    }
  }
}

/// The end of a route, announced in its responses (RFC 9745, RFC 8594).
struct Deprecation: Sendable {
  let since: Timestamp
  /// A year after `since` at the earliest. From then on, the route may be gone.
  let sunset: Timestamp

  /// The values of `Deprecation` and `Sunset`.
  var headers: (since: String, sunset: String) {
    ("@\(since.microseconds / 1_000_000)", sunset.httpDate)
  }
}
