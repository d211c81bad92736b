import HTTPTypes
import Hummingbird

extension Response {
  /// The response to a request for a mail by anyone who knows an address. It is the same, and takes the same time,
  /// whether an account has the address or not.
  static func afterMailing(_ mail: () async throws -> Void) async throws -> Response {
    try await EvenTime.run(mail)
    var response = Response.json(Accepted(), status: .accepted)
    response.headers[.cacheControl] = "no-store"
    return response
  }
}

/// An empty response. It does not say whether a mail will be sent.
private struct Accepted: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object { _ in }
  }
}
