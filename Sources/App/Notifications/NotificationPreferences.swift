import Postgres

/// The types of notifications that a user's devices get. The inbox gets all types.
struct NotificationPreferences: Stamped {
  let muted: Set<Notice.Kind>
  /// The collection's stamp, read in the same snapshot.
  var stamp: Timestamp?

  /// - Throws: ``AppError/sessionEnded`` if the account is gone.
  static func find(of user: User.ID, in database: some Querying) async throws -> NotificationPreferences {
    let row = try await database.first(
      """
      SELECT s.notification_preferences AS stamp, ARRAY(SELECT type FROM muted_notifications WHERE user_id = \(user)) AS muted
      FROM user_stamps AS s
      WHERE s.user_id = \(user)
      """)
    guard let row else { throw AppError.sessionEnded }
    let types: [String] = try row["muted"]
    // A newer release may know more types than this one.
    return NotificationPreferences(muted: Set(types.compactMap(Notice.Kind.init(rawValue:))), stamp: try row["stamp"])
  }

  /// Turns types on and off; the others stay as they are. Repeating it changes nothing.
  ///
  /// - Parameters:
  ///   - choices: whether each type is on.
  ///   - tags: the stamps that the client has read. With another one, a change gets 412.
  /// - Returns: all preferences, without the stamp, which is set at the commit.
  /// - Throws: ``AppError/sessionEnded`` if the account is gone.
  static func choose(
    _ choices: [Notice.Kind: Bool], by user: User.ID, ifStampIn tags: EntityTags? = nil, in change: Change
  ) async throws -> NotificationPreferences {
    // The lock makes two phones of one user choose one after the other, without a deadlock.
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    if let tags {
      let current = try await find(of: user, in: change)
      let changesAny = choices.contains { current.muted.contains($0.key) == $0.value }
      if changesAny, let stamp = current.stamp, !tags.contains(stamp) { throw AppError.lostUpdate }
    }
    let (on, off) = (choices.filter(\.value).map(\.key), choices.filter { !$0.value }.map(\.key))
    let results = try await change.pipeline(
      "DELETE FROM muted_notifications WHERE user_id = \(user) AND type = ANY(\(on))",
      """
      INSERT INTO muted_notifications (user_id, type)
      SELECT \(user), chosen.type FROM unnest(\(off)) AS chosen (type)
      ON CONFLICT DO NOTHING
      """)
    if results.contains(where: { $0.affected > 0 }) { change.touch(.notificationPreferences, of: user) }
    var preferences = try await find(of: user, in: change)
    preferences.stamp = nil
    return preferences
  }

  /// Adds the stamp, which only a read after the commit has. If the read fails, the change is still reported as made.
  func afterCommit(of user: User.ID, in database: Database) async throws -> NotificationPreferences {
    do {
      return try await Self.find(of: user, in: database)
    } catch is PostgresError {
      return self
    }
  }
}
