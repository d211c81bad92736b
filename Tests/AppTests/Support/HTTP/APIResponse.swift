@testable import App

/// A response of the service.
struct APIResponse: Sendable {
  let status: Int
  let headers: [(name: String, value: String)]
  let body: String
  /// `.null` if the body is not JSON.
  let json: JSON

  init(status: Int, headers: [(name: String, value: String)], body: String) {
    (self.status, self.headers, self.body) = (status, headers, body)
    json = (try? JSON(parsing: body.utf8)) ?? .null
  }

  func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// The body without its request id, the only part that may differ between two equal responses.
  var withoutRequestID: String { body.replacing(json["requestId"].string ?? "", with: "") }

  /// The slug of a problem.
  var problem: String? { json["type"].string }

  /// The fields that a problem names.
  var badFields: [String] { json["errors"].array.compactMap { $0["field"].string } }
}
