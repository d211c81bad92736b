/// Finds the template of a path, such as `/events/{id}`.
public struct PathTree: Sendable {
  private let root: Node
  /// The names of the parameters of each template.
  private let names: [[Substring]]

  /// - Parameter templates: differ in more than the names of their parameters.
  public init(_ templates: [String]) {
    let segments = templates.map { $0.split(separator: "/") }
    names = segments.map { $0.filter(Node.isParameter).map { $0.dropFirst().dropLast() } }
    root = Node(segments.enumerated().map { ($1[...], $0) })
  }

  /// - Returns: the index of the template and the parameters in the path; nil if no template matches.
  public func find(_ path: String) -> (index: Int, parameters: Parameters)? {
    var path = path
    var values: [Range<Int>] = []
    guard let index = path.withUTF8({ root.find($0, from: 0, &values) }) else { return nil }
    var parameters = Parameters()
    for (name, value) in zip(names[index], values) {
      let start = path.utf8.index(path.startIndex, offsetBy: value.lowerBound)
      parameters.append(path[start..<path.utf8.index(start, offsetBy: value.count)], for: name)
    }
    return (index, parameters)
  }

  /// A segment of the templates. A literal segment wins over a parameter: `me` is not an id.
  private final class Node: Sendable {
    private let index: Int?
    private let literals: [(text: [UInt8], node: Node)]
    private let parameter: Node?

    init(_ templates: [(segments: ArraySlice<Substring>, index: Int)]) {
      let here = templates.filter { $0.segments.isEmpty }.map(\.index)
      precondition(here.count <= 1, "templates differ only in the names of their parameters: \(here)")
      index = here.first
      var longer: [Substring: [(ArraySlice<Substring>, Int)]] = [:]
      for (segments, index) in templates {
        guard let first = segments.first else { continue }
        longer[Self.isParameter(first) ? "{}" : first, default: []].append((segments.dropFirst(), index))
      }
      parameter = longer.removeValue(forKey: "{}").map(Node.init)
      literals = longer.map { (Array($0.utf8), Node($1)) }
    }

    static func isParameter(_ segment: Substring) -> Bool { segment.hasPrefix("{") }

    /// - Parameter values: gets the bytes of the parameters.
    func find(_ path: UnsafeBufferPointer<UInt8>, from start: Int, _ values: inout [Range<Int>]) -> Int? {
      let slash = UInt8(ascii: "/")
      var start = start
      while start < path.count, path[start] == slash { start += 1 }
      guard start < path.count else { return index }
      var end = start
      while end < path.count, path[end] != slash { end += 1 }
      if let index = literal(UnsafeBufferPointer(rebasing: path[start..<end]))?.find(path, from: end, &values) {
        return index
      }
      guard let parameter else { return nil }
      values.append(start..<end)
      if let index = parameter.find(path, from: end, &values) { return index }
      values.removeLast()
      return nil
    }

    private func literal(_ segment: UnsafeBufferPointer<UInt8>) -> Node? {
      literals.first { $0.text.count == segment.count && $0.text.elementsEqual(segment) }?.node
    }
  }
}

/// The values in a path for the parameters of its template, as they stand there: percent signs are not decoded.
public struct Parameters: Sendable {
  private var values: [(name: Substring, value: Substring)] = []

  public init() {}

  mutating func append(_ value: Substring, for name: Substring) {
    values.append((name, value))
  }

  public func get(_ name: String) -> String? {
    values.first { $0.name == name }.map { String($0.value) }
  }
}
