import Postgres
import Testing

@testable import App

extension Phone {
  @discardableResult
  func cancel(
    _ request: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(
      act: "cancelFriendRequest", ["sentRequest": request], expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func unfriend(
    _ other: Phone, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "endFriendship", ["user": other.id], expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func block(
    _ other: Phone, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "block", ["user": other.id], expecting: status, sourceLocation: sourceLocation)
  }

  @discardableResult
  func unblock(
    _ other: Phone, expecting status: Int = 204, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await perform(act: "unblock", ["user": other.id], expecting: status, sourceLocation: sourceLocation)
  }

  /// The usernames of the users whom this user has blocked, newest first.
  func blocked() async throws -> [String] {
    try await get("blocks")["items"].array.compactMap { $0["user"]["username"].string }
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

  /// Expects that no block is crossed. Between two users with a block there is no friendship, no pending request, no
  /// invitation to a future event, no queued notice, and no delivery.
  func expectNothingCrossesABlock(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let rows = try await database.rows(
      """
      SELECT 'friendship' FROM friendships AS f JOIN hidden AS h ON h.user_id = f.user_a AND h.hidden_id = f.user_b
      UNION ALL
      SELECT 'request' FROM friend_requests AS r
      JOIN hidden AS h ON h.user_id = r.sender_id AND h.hidden_id = r.receiver_id
      WHERE r.status = 'pending'
      UNION ALL
      SELECT 'invitation' FROM invitations AS i
      JOIN events AS e ON e.id = i.event_id
      JOIN event_hosts AS host ON host.event_id = e.id
      JOIN hidden AS h ON h.user_id = i.user_id AND h.hidden_id = host.user_id
      WHERE e.archived_at IS NULL
      UNION ALL
      SELECT 'co-host' FROM event_co_hosts AS c
      JOIN events AS e ON e.id = c.event_id
      JOIN hidden AS h ON h.user_id = c.user_id AND h.hidden_id = e.creator_id
      WHERE e.archived_at IS NULL
      UNION ALL
      SELECT q.type FROM notification_queue AS q
      JOIN hidden AS h ON h.user_id = ANY(q.recipient_ids)
      LEFT JOIN events AS e ON e.id = q.subject_id
      WHERE q.payload->>'userId' = h.hidden_id::text OR e.creator_id = h.hidden_id
      UNION ALL
      SELECT d.type FROM deliveries AS d
      JOIN hidden AS h ON h.user_id = d.recipient_id
      LEFT JOIN events AS e ON e.id = d.subject_id
      WHERE d.payload->>'userId' = h.hidden_id::text OR e.creator_id = h.hidden_id
      """)
    let crossing = try rows.map { try $0[0] as String }
    #expect(crossing == [], sourceLocation: sourceLocation)
  }
}
