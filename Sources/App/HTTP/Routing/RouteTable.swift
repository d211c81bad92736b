import HTTPTypes
import Hummingbird

/// Finds the endpoints of a path.
///
/// Hummingbird's `Router` compares paths character by character, which takes a tenth of the instructions of a
/// validation. It also gives middleware no way to learn the methods of a path.
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
    var path = path
    var values: [Range<Int>] = []
    guard let route = path.withUTF8({ root.route(of: $0, from: 0, &values) }) else { return nil }
    var parameters = Parameters()
    for (name, value) in zip(route.parameters, values) {
      let start = path.utf8.index(path.startIndex, offsetBy: value.lowerBound)
      parameters[name] = path[start..<path.utf8.index(start, offsetBy: value.count)]
    }
    return (route, parameters)
  }

  /// A segment of the paths. A literal segment wins over a parameter: `me` is not an id.
  private final class Node: Sendable {
    private let route: Route?
    private let literals: [(text: [UInt8], node: Node)]
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
      literals = longer.map { (Array($0.utf8), Node($1)) }
    }

    static func isParameter(_ segment: Substring) -> Bool { segment.hasPrefix("{") }

    /// - Parameter values: gets the bytes of the parameters.
    func route(of path: UnsafeBufferPointer<UInt8>, from start: Int, _ values: inout [Range<Int>]) -> Route? {
      let slash = UInt8(ascii: "/")
      var start = start
      while start < path.count, path[start] == slash { start += 1 }
      guard start < path.count else { return route }
      var end = start
      while end < path.count, path[end] != slash { end += 1 }
      if let route = literal(UnsafeBufferPointer(rebasing: path[start..<end]))?.route(of: path, from: end, &values) {
        return route
      }
      guard let parameter else { return nil }
      values.append(start..<end)
      if let route = parameter.route(of: path, from: end, &values) { return route }
      values.removeLast()
      return nil
    }

    private func literal(_ segment: UnsafeBufferPointer<UInt8>) -> Node? {
      literals.first { $0.text.count == segment.count && $0.text.elementsEqual(segment) }?.node
    }
  }
}
