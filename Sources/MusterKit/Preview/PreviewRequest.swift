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
  /// - Throws: ``Problem`` `malformed-body`
  func read<Value: Decodable>(as type: Value.Type = Value.self) throws -> Value {
    do {
      return try JSONDecoder.muster().decode(type, from: body)
    } catch {
      throw Problem.preview(.malformedBody, 400, "The body does not fit: \(error)")
    }
  }

  /// The ids of `?ids=`; nil without them.
  var ids: [UUID]? { query["ids"].map { $0.split(separator: ",").compactMap { UUID(uuidString: String($0)) } } }
}

extension Problem {
  /// A problem of a preview.
  static func preview(_ type: Slug, _ status: Int, _ detail: String, errors: [FieldProblem] = []) -> Problem {
    Problem(type: type, title: type.rawValue, status: status, detail: detail, requestId: "preview", errors: errors)
  }

  static func missing(_ type: Slug) -> Problem { preview(type, 404, "The demo has no such thing.") }
}
