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
  static func tokens(_ number: Int, user: User.ID = .ana, expiresIn: Int = 900) throws -> TransportResponse {
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
  static func sample(_ number: Int, user: User.ID = .ana, expiresIn: TimeInterval = 900) -> StoredTokens {
    StoredTokens(
      accessToken: "access-\(number)", refreshToken: "refresh-\(number)",
      accessExpiresAt: Date(timeIntervalSinceNow: expiresIn), user: user)
  }
}

extension Identifier {
  static var ana: Self { Self(UUID(uuid: (1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1))) }
  static var ben: Self { Self(UUID(uuid: (1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0xAB))) }
}

extension TimeZone {
  static var lisbon: TimeZone { TimeZone(identifier: "Europe/Lisbon") ?? .gmt }
  static var berlin: TimeZone { TimeZone(identifier: "Europe/Berlin") ?? .gmt }
}

extension InboxItem {
  init(
    id: ID, createdAt: Date, type: NotificationType, message: String, userId: User.ID? = nil,
    eventId: MusterKit.Event.ID? = nil
  ) {
    self.init(
      id: id, createdAt: createdAt, message: message, locKey: type.rawValue, type: type, userId: userId,
      eventId: eventId)
  }
}

extension FriendRequest {
  init(id: ID, sender: Person, receiver: Person, createdAt: Date) {
    self.init(id: id, sender: sender, receiver: receiver, status: .pending, createdAt: createdAt)
  }
}
