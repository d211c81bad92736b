import Postgres

extension FriendRequest {
  /// The maximum number of pending requests of one sender.
  static let maximumPending = 100
  static let maximumPerDay = 50
  /// Seconds to wait after the second declined or cancelled request to the same user, and after each later one. After
  /// the first there is no wait, because it may have been a mistake.
  private static let waits = (second: 86_400, later: 7 * 86_400)

  /// Refuses a new request if its sender sends too many, to one user or to different users. The request is already
  /// inserted, and the error rolls it back. ``User/takeTurn(at:by:in:)`` makes the sender's other requests wait
  /// meanwhile.
  ///
  /// - Throws: ``AppError`` `too-many-friend-requests`, with the number of seconds to wait.
  static func checkLimits(of sender: User.ID, to receiver: User.ID, in change: Change) async throws {
    let row = try await change.first(
      """
      SELECT
        (SELECT count(*) FROM friend_requests WHERE sender_id = \(sender) AND status = 'pending') AS pending,
        (
          SELECT \(Self.seconds(until: "created_at + interval '1 day'")) FROM friend_requests
          WHERE sender_id = \(sender)
          ORDER BY created_at DESC
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
    // Nothing says when a pending request will be closed, so the wait is a guess.
    refused(
      "You have \(pending) pending friend requests. Cancel one, or wait until one is accepted or declined.", wait: 3600)
  }

  fileprivate static func tooManyFriendRequests(perDay: Int, wait: Int) -> AppError {
    refused("You have sent \(perDay) friend requests within a day. Try again later.", wait: wait)
  }

  fileprivate static func tooManyFriendRequests(toOneAfter wait: Int) -> AppError {
    refused("You have already sent this user several friend requests. Try again later.", wait: wait)
  }

  private static func refused(_ message: String, wait: Int) -> AppError {
    AppError(.tooManyRequests, "too-many-friend-requests", message, retryAfter: wait)
  }
}
