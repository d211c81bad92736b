import Postgres
import Testing

@testable import App

/// The calls of an app about accounts, friends, blocks and reports.
extension Phone {
  @discardableResult func editProfile(
    _ body: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("editMe", [:], body: body, status, sourceLocation)
  }

  @discardableResult func deleteAccount(
    expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("deleteMe", [:], body: #"{"password": "\#(password)"}"#, status, sourceLocation)
  }

  /// - Returns: the request's id.
  @discardableResult func sendFriendRequest(
    to other: Phone, expecting status: Int = 201, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    let response = try await send("POST", "friend-requests", #"{"receiverId": "\#(other.id)"}"#)
    #expect(response.status == status, "\(response.body)", sourceLocation: sourceLocation)
    return response.json["id"].string ?? ""
  }

  @discardableResult func accept(
    _ request: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("acceptFriendRequest", ["request": request], status, sourceLocation)
  }

  @discardableResult func decline(
    _ request: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("declineFriendRequest", ["request": request], status, sourceLocation)
  }

  @discardableResult func cancel(
    _ request: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("cancelFriendRequest", ["sentRequest": request], status, sourceLocation)
  }

  @discardableResult func unfriend(
    _ other: Phone, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("endFriendship", ["user": other.id], status, sourceLocation)
  }

  @discardableResult func block(
    _ other: Phone, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("block", ["user": other.id], status, sourceLocation)
  }

  @discardableResult func unblock(
    _ other: Phone, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("unblock", ["user": other.id], status, sourceLocation)
  }

  /// The usernames of the users whom this user has blocked, newest first.
  func blocked() async throws -> [String] {
    try await get("blocks")["items"].array.compactMap { $0["user"]["username"].string }
  }

  @discardableResult func report(
    _ other: Phone, reason: String = "spam", text: String? = nil, expecting status: Int = 201,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let words = text.map { "\"\($0)\"" } ?? "null"
    return try await act(
      "report", [:], body: #"{"userId": "\#(other.id)", "reason": "\#(reason)", "text": \#(words)}"#, status,
      sourceLocation)
  }

  @discardableResult func report(
    event: String, expecting status: Int = 201, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("report", [:], body: #"{"eventId": "\#(event)", "reason": "other"}"#, status, sourceLocation)
  }
}

extension TestApp {
  /// Moves all friend requests into the past.
  func letFriendRequestsAge(by interval: String) async throws {
    try await database.execute(
      """
      UPDATE friend_requests
      SET created_at = created_at - \(interval)::interval, closed_at = closed_at - \(interval)::interval
      """)
  }

  /// All reports as an operator sees them, latest first.
  func reports() async throws -> [ReportEntry] {
    try await ReportEntry.list(all: true, atMost: 100, in: database)
  }

  /// Closes all open reports.
  func closeReports() async throws {
    for report in try await ReportEntry.list(all: false, atMost: 100, in: database) {
      let id = try #require(Report.ID(report.id))
      #expect(try await Report.close(id, note: nil, in: database))
    }
  }
}
