import HTTPTypes
import Hummingbird

/// Collects the endpoints that routes add with the methods of Hummingbird's routers.
final class RouteCollector: RouterMethods {
  private(set) var endpoints: [Endpoint] = []
  private let metrics: MetricsRegistry
  private let deprecations: [String: Deprecation]

  init(metrics: MetricsRegistry, deprecations: [String: Deprecation] = Deprecation.routes) {
    self.metrics = metrics
    self.deprecations = deprecations
  }

  /// Every path with a GET also has a HEAD.
  @discardableResult func on<Responder: HTTPResponder>(
    _ path: RouterPath, method: HTTPRequest.Method, responder: Responder
  ) -> Self where Responder.Context == Context {
    let segments = path.description.split(separator: "/")
    let path = "/" + segments.joined(separator: "/")
    let isKnown = segments.allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}") || !$0.contains { "{}*:".contains($0) } }
    precondition(isKnown, "\(path): a segment is text or {parameter}")
    for method in method == .get ? [method, .head] : [method] {
      precondition(!endpoints.contains { $0.path == path && $0.method == method }, "\(method) \(path) exists twice")
      endpoints.append(Endpoint(method, path, responder, metrics: metrics, deprecations: deprecations))
    }
    return self
  }

  @discardableResult func add(middleware: any MiddlewareProtocol<Request, Response, Context>) -> Self {
    preconditionFailure("middleware belongs to a group of routes")
  }
}
