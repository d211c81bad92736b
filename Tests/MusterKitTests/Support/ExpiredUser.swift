import Foundation
import MusterKit
import Postgres
import TestSupport
import Testing

/// A user whose access token has expired, and the row of the session in the database.
struct ExpiredUser: Sendable {
  /// The session's row, as far as the tests need it.
  struct SessionRow: Equatable {
    /// The number of refreshes.
    let counter: Int
    let isOpen: Bool
  }

  let user: TestUser
  let client: MusterClient
  private let url: URL
  private let databaseURL: String

  var id: User.ID { user.id }
  var tokens: any TokenStore { user.tokens }

  /// - Parameters:
  ///   - url: where the client sends its calls: the shared server if nil, or a proxy in front of it.
  ///   - isExpiryKnown: whether the stored expiry is right. Otherwise, the client learns it from a response.
  static func register(
    _ name: String, at url: URL? = nil, tokens: any TokenStore = MemoryTokenStore(),
    transport: any Transport = URLSessionTransport(), retries: RetryPolicy = .swift, isExpiryKnown: Bool = true
  ) async throws -> ExpiredUser {
    let shared = try await MusterServer.shared.value
    let user = try await TestUser.register(name, at: try await MusterServer.hasty.value.url, tokens: tokens)
    var stored = try #require(try tokens.load())
    let end = stored.accessExpiresAt.addingTimeInterval(1)
    try await eventually { Date.now > end }
    if !isExpiryKnown { stored.accessExpiresAt = .now.addingTimeInterval(600) }
    try tokens.save(stored)
    let client = MusterClient(baseURL: url ?? shared.url, tokens: tokens, transport: transport, retries: retries)
    return ExpiredUser(user: user, client: client, url: url ?? shared.url, databaseURL: shared.databaseURL)
  }

  /// A client of another process, with the same tokens.
  func relaunch() -> MusterClient {
    MusterClient(baseURL: url, tokens: tokens, retries: .swift)
  }

  /// Replaces the access token by one that has expired, and keeps the refresh token.
  func expire(again expired: StoredTokens) throws {
    var stored = try #require(try tokens.load())
    (stored.accessToken, stored.accessExpiresAt) = (expired.accessToken, expired.accessExpiresAt)
    try tokens.save(stored)
  }

  // MARK: The session in the database

  func session() async throws -> SessionRow {
    let row = try await rows("SELECT counter, ended_at IS NULL AS is_open FROM sessions WHERE user_id = \(id.rawValue)")
    return SessionRow(counter: try row["counter"], isOpen: try row["is_open"])
  }

  /// Moves the last refresh into the past.
  func age(seconds: Int) async throws {
    _ = try await rows(
      """
      UPDATE sessions SET rotated_at = rotated_at - \(seconds) * interval '1 second'
      WHERE user_id = \(id.rawValue)
      RETURNING counter
      """)
  }

  /// Ends the session from another device.
  func endSession() async throws {
    let other = try await user.logIn(at: MusterServer.shared.value.url)
    let session = try #require(try await other.client.auth.sessions().items.first { !$0.current })
    try await other.client.auth.endSession(session.id)
  }

  /// Checks that the session continues after this number of refreshes, and that there was no warning.
  func expectNoTheft(counter: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws {
    #expect(try await session() == SessionRow(counter: counter, isOpen: true), sourceLocation: sourceLocation)
    #expect(client.userID == id, sourceLocation: sourceLocation)
    let alarms = try await rows(
      """
      SELECT (SELECT count(*) FROM notifications WHERE recipient_id = \(id.rawValue) AND type = 'session-revoked')
        + (SELECT count(*) FROM notification_queue WHERE recipient_ids @> ARRAY[\(id.rawValue)] AND type = 'session-revoked')
        AS number
      """)
    #expect(try alarms["number"] == 0, sourceLocation: sourceLocation)
  }

  private func rows(_ sql: SQL) async throws -> Row {
    try #require(try await ScriptConnection.run(databaseURL, timeout: .seconds(60)) { try $0.rows(sql) }.first)
  }
}
