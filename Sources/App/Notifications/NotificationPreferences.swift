import Postgres

/// Which types of notifications a user is told on their devices. All of them reach the inbox.
struct NotificationPreferences: Sendable {
  let muted: Set<Notice.Kind>
  /// Of the collection, read in the same snapshot.
  var stamp: Timestamp?

  /// - Throws: ``AppError/sessionEnded`` without an account.
  static func find(of user: User.ID, in database: some Querying) async throws -> NotificationPreferences {
    let row = try await database.first(
      """
      SELECT s.notification_preferences AS stamp, ARRAY(SELECT type FROM muted_notifications WHERE user_id = \(user)) AS muted
      FROM user_stamps AS s
      WHERE s.user_id = \(user)
      """)
    guard let row else { throw AppError.sessionEnded }
    let types: [String] = try row["muted"]
    // A newer release may know more of them than this one.
    return NotificationPreferences(muted: Set(types.compactMap(Notice.Kind.init(rawValue:))), stamp: try row["stamp"])
  }

  /// Turns types on and off; the others stay as they are. Repeating it changes nothing.
  ///
  /// - Parameter choices: whether each is on.
  /// - Returns: all of them, without the stamp, which is made when the change is committed.
  /// - Throws: ``AppError/sessionEnded`` without an account.
  static func choose(
    _ choices: [Notice.Kind: Bool], by user: User.ID, in change: Change
  ) async throws -> NotificationPreferences {
    // Two phones of one person choose one after the other, and neither waits for the other crosswise.
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    let (on, off) = (choices.filter(\.value).map(\.key), choices.filter { !$0.value }.map(\.key))
    let answers = try await change.pipeline(
      "DELETE FROM muted_notifications WHERE user_id = \(user) AND type = ANY(\(on))",
      """
      INSERT INTO muted_notifications (user_id, type)
      SELECT \(user), chosen.type FROM unnest(\(off)) AS chosen (type)
      ON CONFLICT DO NOTHING
      """)
    if answers.contains(where: { $0.affected > 0 }) { change.touch(.notificationPreferences, of: user) }
    var preferences = try await find(of: user, in: change)
    preferences.stamp = nil
    return preferences
  }

  /// The same with the stamp, which only a read after the commit has. Failing, it must not say that nothing was changed.
  func afterCommit(of user: User.ID, in database: Database) async throws -> NotificationPreferences {
    do {
      return try await Self.find(of: user, in: database)
    } catch is PostgresError {
      return self
    }
  }
}
