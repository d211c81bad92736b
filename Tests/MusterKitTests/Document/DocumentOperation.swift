import Foundation
import MusterKit
import Testing

/// An operation of the OpenAPI document, as a client sees it.
struct DocumentOperation: Sendable {
  private static let ownHeaders: Set = ["Accept", "Authorization", "Content-Type"]
  private static let key = "Idempotency-Key"

  /// Such as `PUT /events/{id}/hosts/{userId}`.
  let name: String
  let method: String
  let path: [String]
  let hasToken: Bool
  /// Whether a token may be left out.
  let allowsNoToken: Bool
  let query: Set<String>
  let headers: Set<String>
  /// The members of a JSON body, by the media types of a body. Nil for any.
  let bodies: [String: Set<String>?]
  let needsBody: Bool
  /// The document's own example of a success.
  let success: TransportResponse

  static func all(in document: PublishedDocument) throws -> [DocumentOperation] {
    try document.operations().map { method, path, node in try Self(method, path, node, in: document) }
  }

  private init(
    _ method: String, _ path: String, _ node: PublishedDocument.Node, in document: PublishedDocument
  ) throws {
    name = "\(method.uppercased()) \(path)"
    self.method = method.uppercased()
    self.path = path.split(separator: "/").map(String.init)
    let security = node["security"] as? [Any]
    hasToken = security?.isEmpty != true
    allowsNoToken = security?.contains { ($0 as? [AnyHashable: Any])?.isEmpty == true } ?? false
    let parameters = try (node["parameters"] as? [PublishedDocument.Node] ?? []).map(document.resolved)
    func names(in place: String) -> Set<String> {
      Set(parameters.filter { $0["in"] as? String == place }.compactMap { $0["name"] as? String })
    }
    (query, headers) = (names(in: "query"), names(in: "header"))
    let body = try (node["requestBody"] as? PublishedDocument.Node).map(document.resolved)
    let content = body?["content"] as? [String: PublishedDocument.Node] ?? [:]
    bodies = try content.mapValues { media in
      let members = try document.members(of: media["schema"] as? PublishedDocument.Node ?? [:])
      return members?.isEmpty == true ? nil : members
    }
    needsBody = body?["required"] as? Bool ?? false
    success = try Self.success(of: node, in: document)
  }

  private static func success(
    of node: PublishedDocument.Node, in document: PublishedDocument
  ) throws -> TransportResponse {
    for (status, type, examples) in try document.responses(of: node) where status.hasPrefix("2") {
      let example = try #require(examples.first, "A success needs an example.")
      let body = try (example as? String).map { Data($0.utf8) } ?? JSONSerialization.data(withJSONObject: example)
      return TransportResponse(status: try #require(Int(status)), headers: ["content-type": type], body: body)
    }
    #expect((node["responses"] as? PublishedDocument.Node)?["204"] != nil)
    return .noContent
  }

  /// Whether a path is one of this operation's.
  ///
  /// - Parameter values: what the path may name. A misspelled word is not an id.
  func matches(_ path: [String], naming values: Set<String>) -> Bool {
    path.count == self.path.count
      && zip(self.path, path).allSatisfy { $0.hasPrefix("{") ? values.contains($1) : $0 == $1 }
  }

  /// The number of words in the path that are not parameters. `/users/me` goes before `/users/{id}`.
  var literals: Int { path.count { !$0.hasPrefix("{") } }

  /// The parts of a request that the operation does not know, and those that it lacks.
  func faults(in request: TransportRequest) -> [String] {
    let items = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
    var faults = items.filter { !query.contains($0.name) }.map { "the parameter \($0.name)" }
    let sent = Set(request.headers.keys)
    faults += sent.subtracting(headers).subtracting(Self.ownHeaders).map { "the header \($0)" }
    if sent.contains(Self.key) != headers.contains(Self.key) { faults.append("the idempotency key") }
    let sendsToken = sent.contains("Authorization")
    if sendsToken != hasToken, sendsToken || !allowsNoToken { faults.append("the token") }
    guard let body = request.body else { return faults + (needsBody ? ["no body"] : []) }
    guard let members = request.headers["Content-Type"].flatMap({ bodies[$0] }) else { return faults + ["the body"] }
    guard let members, let object = try? JSONDecoder().decode([String: JSONValue].self, from: body) else {
      return faults
    }
    return faults + Set(object.keys).subtracting(members).map { "the member \($0)" }
  }
}
