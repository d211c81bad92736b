import Postgres

extension Report {
  /// For operators: closes a report. It is deleted later; if the owner's account is deleted, at the worker's next
  /// housekeeping.
  ///
  /// - Parameter note: why it was closed, at most ``maximumText`` characters.
  /// - Returns: false if there is no such open report.
  public static func close(_ id: ID, note: String?, in database: Database) async throws -> Bool {
    try await database.change { change in
      // A report expires while it is open if the account is deleted, or if there was none. Visitors have none: a report
      // of one stays for as long as others, unless the visitor has erased their data.
      try await change.rows(
        """
        UPDATE reports
        SET closed_at = now(), closing_note = \(note),
          expires_at = CASE
            WHEN expires_at IS NULL OR EXISTS (SELECT FROM visitors AS v WHERE v.id = visitor_id) THEN \(expiry)
            ELSE now()
          END
        WHERE id = \(id) AND closed_at IS NULL
        """
      ).affected == 1
    }
  }

  static func countOpen(in database: Database) async throws -> Int {
    try await database.slow.value("SELECT count(*) FROM reports WHERE closed_at IS NULL") ?? 0
  }
}
