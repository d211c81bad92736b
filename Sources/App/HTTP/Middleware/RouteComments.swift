import HTTPTypes
import Postgres

/// The comment of each route's statements, such as `/* GET /api/v1/events */`, so that `pg_stat_activity` and the logs
/// of slow statements show where a statement comes from. All comments exist beforehand.
struct RouteComments: Sendable {
  private let comments: [String: [(method: HTTPRequest.Method, comment: SQL.Comment)]]

  init(_ routes: [(path: String, method: HTTPRequest.Method)]) {
    comments = Dictionary(grouping: routes) { $0.path }.mapValues { routes in
      routes.map { ($0.method, SQL.Comment("\($0.method.rawValue) \($0.path)")) }
    }
  }

  /// A HEAD runs the statements of its GET.
  ///
  /// - Parameter route: the route's template, if there is one.
  func comment(_ method: HTTPRequest.Method, _ route: String?) -> SQL.Comment? {
    guard let methods = route.flatMap({ comments[$0] }) else { return nil }
    let method = method == .head ? .get : method
    return methods.first { $0.method == method }?.comment
  }
}
