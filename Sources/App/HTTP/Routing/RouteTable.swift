import HTTPServer

/// Finds the endpoints of a path.
struct RouteTable: Sendable {
  struct Route: Sendable {
    let endpoints: [Endpoint]
    /// The methods, for the `Allow` header.
    let allow: String

    fileprivate init(_ endpoints: [Endpoint]) {
      self.endpoints = endpoints
      allow = endpoints.map(\.method.rawValue).sorted().joined(separator: ", ")
    }

    func endpoint(for method: HTTPRequest.Method) -> Endpoint? {
      endpoints.first { $0.method == method }
    }
  }

  private let routes: [Route]
  private let tree: PathTree

  init(_ endpoints: [Endpoint]) {
    let paths = Dictionary(grouping: endpoints, by: \.path)
    routes = paths.values.map { Route($0) }
    tree = PathTree(Array(paths.keys))
  }

  /// - Returns: nil if there is no such path.
  func route(of path: String) -> (route: Route, parameters: Parameters)? {
    guard let (index, parameters) = tree.find(path) else { return nil }
    return (routes[index], parameters)
  }
}
