import Postgres

extension Report {
  /// For operators: closes a report. It is deleted later; if the account or the visitor that it is about is gone, at the
  /// worker's next housekeeping.
  ///
  /// - Parameter note: why it was closed, at most ``maximumText`` characters.
  /// - Returns: false if there is no such open report.
  public static func close(_ id: ID, note: String?, in database: Database) async throws -> Bool {
    try await database.change { change in
      // A deletion of the account locks the report first. The next statement sees what it has committed.
      try await change.pipeline(
        "SELECT 1 FROM reports WHERE id = \(id) AND closed_at IS NULL FOR UPDATE",
        """
        UPDATE reports
        SET closed_at = now(), closing_note = \(note),
          expires_at = CASE
            WHEN EXISTS (SELECT FROM users AS u WHERE u.id = owner_id)
              OR EXISTS (SELECT FROM visitors AS v WHERE v.id = visitor_id) THEN \(expiry)
            ELSE now()
          END
        WHERE id = \(id) AND closed_at IS NULL
        """
      )[1].affected == 1
    }
  }

  static func countOpen(in database: Database) async throws -> Int {
    try await database.slow.value("SELECT count(*) FROM reports WHERE closed_at IS NULL") ?? 0
  }
}
