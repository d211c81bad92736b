import Foundation
import Hummingbird

/// The methods that each path allows, for the `Allow` header.
struct AllowedMethods: Sendable {
  private let routes: [(segments: [String], method: String)]

  init(_ routes: [(path: String, method: String)]) {
    self.routes = routes.map { ($0.path.split(separator: "/").map(String.init), $0.method) }
  }

  /// Nil if there is no such path.
  func of(path: String) -> String? {
    let segments = path.split(separator: "/")
    let matching = routes.filter { route in
      route.segments.count == segments.count
        && zip(route.segments, segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
    // A literal segment wins over a parameter, as in the router: `me` is not an id.
    func parameters(_ segments: [String]) -> Int { segments.count { $0.hasPrefix("{") } }
    guard let fewest = matching.map({ parameters($0.segments) }).min() else { return nil }
    var names = Set(matching.filter { parameters($0.segments) == fewest }.map(\.method))
    if names.contains("GET") { names.insert("HEAD") }
    return names.sorted().joined(separator: ", ")
  }
}
