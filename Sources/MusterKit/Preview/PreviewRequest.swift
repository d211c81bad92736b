import Foundation

/// A request, cut into the parts that ``PreviewWorld`` reads.
struct PreviewRequest: Sendable {
  let method: String
  /// Below `/api/v1`, without the query.
  let path: String
  /// The same, percent-encoded.
  private let encodedPath: String
  let query: [String: String]
  let headers: [String: String]
  let body: Data

  init(_ request: TransportRequest) {
    let components = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
    let whole = components?.percentEncodedPath ?? ""
    method = request.method
    encodedPath = whole.range(of: Route.prefix).map { String(whole[$0.upperBound...]) } ?? whole
    path = encodedPath.removingPercentEncoding ?? encodedPath
    let items = components?.queryItems ?? []
    query = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
    headers = request.headers
    body = request.body ?? Data()
  }

  /// The operation of the API, with the ids in the path.
  ///
  /// - Throws: ``Problem`` for an unknown path, or for a word that is not an id
  func route() throws(Problem) -> Route { try Route(method: method, path: encodedPath) }

  /// Decodes the body.
  ///
  /// - Parameter defaults: the values of members that the body lacks.
  /// - Throws: ``Problem`` `malformed-body`
  func read<Value: Decodable>(as type: Value.Type = Value.self, defaults: [String: JSONValue] = [:]) throws -> Value {
    do {
      guard !defaults.isEmpty else { return try JSONDecoder.muster().decode(type, from: body) }
      let members = try JSONDecoder.muster().decode([String: JSONValue].self, from: body)
      return try JSONValue.object(members.merging(defaults) { $0 == .null ? $1 : $0 }).decode()
    } catch {
      throw Problem.refused(.malformedBody, 400, "The body does not fit: \(error)")
    }
  }

  /// The versions in `If-Match`; nil without it, or for any.
  var versions: [Int]? { tags?.compactMap { Int($0) } }

  /// Whether `If-Match`, if there is one, has the stamp.
  func isBased(on stamp: Stamp?) -> Bool { stamp.map { tags?.contains($0.rawValue) != false } ?? true }

  private var tags: [String]? {
    guard let header = headers["If-Match"] else { return nil }
    let tags = header.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    if tags.contains("*") { return nil }
    return tags.map { $0.replacingOccurrences(of: "W/", with: "").trimmingCharacters(in: ["\""]) }
  }

  /// The ids of `?ids=`; nil without them.
  func ids<Thing>() -> [Identifier<Thing>]? {
    query["ids"].map { $0.split(separator: ",").compactMap { Identifier(String($0)) } }
  }
}
