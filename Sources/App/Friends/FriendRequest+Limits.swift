import Postgres

extension FriendRequest {
  /// Sent by one user.
  private static let maximumPending = 100
  private static let maximumPerDay = 50
  /// Seconds to wait after the second request to one user that was declined or cancelled, and after each later one. The
  /// first may be repeated at once: it may have been a mistake.
  private static let waits = (second: 86_400, later: 7 * 86_400)

  /// Refuses a request that was just inserted, and goes with the transaction, if its sender asks too often: one user
  /// again and again, or too many users. The sender's other requests wait meanwhile: see ``User/takingTurns(at:by:)``.
  ///
  /// - Throws: ``AppError`` `too-many-friend-requests`, with the seconds to wait.
  static func checkLimits(of sender: User.ID, to receiver: User.ID, in change: Change) async throws {
    let row = try await change.first(
      """
      SELECT
        (SELECT count(*) FROM friend_requests WHERE sender_id = \(sender) AND status = 'pending') AS pending,
        (
          SELECT \(Self.seconds(until: "created_at + interval '1 day'")) FROM friend_requests
          WHERE sender_id = \(sender)
          ORDER BY id DESC
          OFFSET \(maximumPerDay)
          LIMIT 1
        ) AS wait_for_any,
        (
          SELECT \(Self.seconds(
            until: """
              max(closed_at) + make_interval(secs => CASE count(*)
                WHEN 1 THEN 0 WHEN 2 THEN \(Double(waits.second)) ELSE \(Double(waits.later))
              END)
              """))
          FROM friend_requests
          WHERE sender_id = \(sender) AND receiver_id = \(receiver) AND status IN ('declined', 'cancelled')
        ) AS wait_for_this
      """)
    guard let row else { return }
    let pending: Int = try row["pending"]
    if pending > maximumPending { throw AppError.tooManyFriendRequests(pending: maximumPending) }
    let (any, this): (Int?, Int?) = (try row["wait_for_any"], try row["wait_for_this"])
    if let any, any > 0 { throw AppError.tooManyFriendRequests(perDay: maximumPerDay, wait: any) }
    if let this, this > 0 { throw AppError.tooManyFriendRequests(toOneAfter: this) }
  }

  private static func seconds(until time: SQL) -> SQL {
    "ceil(extract(epoch FROM \(time) - clock_timestamp()))::bigint"
  }
}

extension AppError {
  fileprivate static func tooManyFriendRequests(pending: Int) -> AppError {
    // It is unknown when one is answered.
    refused("You have \(pending) pending friend requests: cancel one, or wait for an answer.", wait: 3600)
  }

  fileprivate static func tooManyFriendRequests(perDay: Int, wait: Int) -> AppError {
    refused("You have sent \(perDay) friend requests within a day.", wait: wait)
  }

  fileprivate static func tooManyFriendRequests(toOneAfter wait: Int) -> AppError {
    refused("You have asked this user before: wait longer until you ask again.", wait: wait)
  }

  private static func refused(_ message: String, wait: Int) -> AppError {
    AppError(.tooManyRequests, "too-many-friend-requests", message, retryAfter: wait)
  }
}
