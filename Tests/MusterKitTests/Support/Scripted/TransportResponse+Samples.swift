import Foundation
import MusterKit

extension TransportResponse {
  static func json(_ text: String, status: Int = 200, headers: [String: String] = [:]) -> TransportResponse {
    TransportResponse(
      status: status, headers: headers.merging(["content-type": "application/json"]) { $1 }, body: Data(text.utf8))
  }

  static func problem(
    _ type: Problem.Slug, status: Int, retryAfter: Int? = nil
  ) -> TransportResponse {
    var headers = ["content-type": "application/problem+json"]
    headers["retry-after"] = retryAfter.map(String.init)
    let body = #"{"type":"\#(type)","title":"T","status":\#(status),"detail":"D","requestId":"5f3a"}"#
    return TransportResponse(status: status, headers: headers, body: Data(body.utf8))
  }

  static func html(status: Int, headers: [String: String] = [:]) -> TransportResponse {
    TransportResponse(
      status: status, headers: headers.merging(["content-type": "text/html; charset=utf-8"]) { $1 },
      body: Data("<html>no</html>".utf8))
  }

  static let noContent = TransportResponse(status: 204)

  static let emptyPage = json(#"{"items":[],"nextCursor":null,"timestamp":null}"#)

  /// The response to a login or a refresh.
  static func tokens(_ number: Int, user: UUID = .ana, expiresIn: Int = 900) throws -> TransportResponse {
    let user = User(id: user, username: "ana", displayName: "Ana", createdAt: Date(timeIntervalSince1970: 0))
    let tokens = Tokens(
      user: user, accessToken: "access-\(number)", refreshToken: "refresh-\(number)", expiresIn: expiresIn)
    return TransportResponse(
      status: 200, headers: ["content-type": "application/json"], body: try JSONEncoder.muster().encode(tokens))
  }
}

extension TransportRequest {
  var accessToken: String? {
    headers["Authorization"].flatMap { $0.hasPrefix("Bearer ") ? String($0.dropFirst(7)) : nil }
  }

  var refreshToken: String? {
    body.flatMap { try? JSONDecoder().decode([String: String].self, from: $0) }?["refreshToken"]
  }

  var isRefresh: Bool { url.path == "/api/v1/auth/refresh" }
}

extension StoredTokens {
  static func sample(_ number: Int, user: UUID = .ana, expiresIn: TimeInterval = 900) -> StoredTokens {
    StoredTokens(
      accessToken: "access-\(number)", refreshToken: "refresh-\(number)",
      accessExpiresAt: Date(timeIntervalSinceNow: expiresIn), user: user)
  }
}

extension UUID {
  static let ana = UUID(uuid: (1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1))
  static let ben = UUID(uuid: (1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0xAB))
}
