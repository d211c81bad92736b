import Foundation

/// A request, cut into the parts that ``PreviewWorld`` switches on.
struct PreviewRequest: Sendable {
  let method: String
  /// Below `/api/v1`, without the query.
  let path: String
  let query: [String: String]
  let headers: [String: String]
  let body: Data

  init(_ request: TransportRequest) {
    let components = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
    let whole = components?.path ?? ""
    method = request.method
    path = whole.range(of: "/api/v1").map { String(whole[$0.upperBound...]) } ?? whole
    let items = components?.queryItems ?? []
    query = Dictionary(items.map { ($0.name, $0.value ?? "") }) { first, _ in first }
    headers = request.headers
    body = request.body ?? Data()
  }

  /// The words of the path, such as `["events", "0190...", "invitations"]`.
  var words: [String] { path.split(separator: "/").map(String.init) }

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

  /// The id at a place of the path.
  ///
  /// - Throws: ``Problem`` if there is none.
  func id<Thing>(_ place: Int, else problem: Problem.Slug) throws -> Identifier<Thing> {
    guard words.count > place, let id = Identifier<Thing>(words[place]) else { throw Problem.missing(problem) }
    return id
  }

  /// The versions in `If-Match`; nil without it, or for any.
  var versions: [Int]? {
    guard let header = headers["If-Match"] else { return nil }
    let tags = header.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    if tags.contains("*") { return nil }
    return tags.compactMap { Int($0.replacingOccurrences(of: "W/", with: "").trimmingCharacters(in: ["\""])) }
  }

  /// The ids of `?ids=`; nil without them.
  func ids<Thing>() -> [Identifier<Thing>]? {
    query["ids"].map { $0.split(separator: ",").compactMap { Identifier(String($0)) } }
  }
}
