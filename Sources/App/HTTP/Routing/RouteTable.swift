import HTTPTypes
import Hummingbird

/// Finds the endpoints of a path.
///
/// Hummingbird's `Router` compares paths character by character, which takes a tenth of the instructions of a
/// validation. It also does not tell middleware which methods a path has.
struct RouteTable: Sendable {
  struct Route: Sendable {
    let endpoints: [Endpoint]
    /// The methods, for the `Allow` header.
    let allow: String
    fileprivate let parameters: [Substring]

    func endpoint(for method: HTTPRequest.Method) -> Endpoint? {
      endpoints.first { $0.method == method }
    }
  }

  private let root: Node

  init(_ endpoints: [Endpoint]) {
    let routes = Dictionary(grouping: endpoints, by: \.path).map { path, endpoints in
      let segments = path.split(separator: "/")
      let route = Route(
        endpoints: endpoints, allow: endpoints.map(\.method.rawValue).sorted().joined(separator: ", "),
        parameters: segments.filter(Node.isParameter).map { $0.dropFirst().dropLast() })
      return (segments[...], route)
    }
    root = Node(routes)
  }

  /// - Returns: nil if there is no such path.
  func route(of path: String) -> (route: Route, parameters: Parameters)? {
    var values: [Substring] = []
    guard let route = root.route(of: path.utf8[...], &values) else { return nil }
    var parameters = Parameters()
    for (name, value) in zip(route.parameters, values) { parameters[name] = value }
    return (route, parameters)
  }

  /// A segment of the paths. A literal segment wins over a parameter: `me` is not an id.
  private final class Node: Sendable {
    private let route: Route?
    private let literals: [Substring: Node]
    private let parameter: Node?

    init(_ routes: [(segments: ArraySlice<Substring>, route: Route)]) {
      let here = routes.filter { $0.segments.isEmpty }.map(\.route)
      precondition(here.count <= 1, "paths differ only in the names of their parameters: \(here.map(\.allow))")
      route = here.first
      var longer: [Substring: [(ArraySlice<Substring>, Route)]] = [:]
      for (segments, route) in routes {
        guard let first = segments.first else { continue }
        longer[Self.isParameter(first) ? "{}" : first, default: []].append((segments.dropFirst(), route))
      }
      parameter = longer.removeValue(forKey: "{}").map(Node.init)
      literals = longer.mapValues(Node.init)
    }

    static func isParameter(_ segment: Substring) -> Bool { segment.hasPrefix("{") }

    func route(of path: Substring.UTF8View, _ values: inout [Substring]) -> Route? {
      let slash = UInt8(ascii: "/")
      let path = path.drop { $0 == slash }
      guard !path.isEmpty else { return route }
      let end = path.firstIndex(of: slash) ?? path.endIndex
      let (segment, rest) = (Substring(path[..<end]), path[end...])
      if let route = literals[segment]?.route(of: rest, &values) { return route }
      guard let parameter else { return nil }
      values.append(segment)
      if let route = parameter.route(of: rest, &values) { return route }
      values.removeLast()
      return nil
    }
  }
}
