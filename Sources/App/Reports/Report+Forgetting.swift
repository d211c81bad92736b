import Postgres

extension Report {
  /// Removes a user whose account is being deleted. Their own reports stay without their name and words, because they
  /// are about others. Of the reports about them, closed ones are deleted, and open ones stay until an operator has
  /// closed them. The caller has locked the user's row.
  static func forget(_ user: User.ID, in change: Change) throws {
    // In id order: two users who delete their accounts may have reported each other.
    try change.write(
      """
      SELECT id FROM reports WHERE reporter_id = \(user) OR owner_id = \(user)
      ORDER BY id
      FOR UPDATE
      """)
    try change.write("UPDATE reports SET reporter_id = NULL, text = NULL WHERE reporter_id = \(user)")
    try change.write("DELETE FROM reports WHERE owner_id = \(user) AND closed_at IS NOT NULL")
  }

  /// Deletes reports that were closed long ago.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("reports", by: "expires_at", upTo: "now()", atMost: limit)
  }
}
