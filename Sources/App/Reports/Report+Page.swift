import Postgres

/// Reports from the pages of share links, by anyone who has the link.
extension Report {
  /// The maximum number of open reports of one event that came from pages. Further ones are accepted and not kept:
  /// operators have enough to judge by, and the sender learns nothing.
  static let maximumFromPages = 20

  /// Files a report of a link's event, with a copy of it. The same form sent again changes nothing.
  ///
  /// - Parameter id: from the form.
  static func file(
    _ id: ID, by link: ShareLink.ID, of event: Event.ID, _ reason: Reason, _ text: String?, in change: Change
  ) async throws {
    let owner: User.ID? = try await change.value("SELECT creator_id FROM events WHERE id = \(event)")
    // The account is not deleted meanwhile: its deletion would not find this report.
    if let owner { try change.lockAhead(owner, for: .share) }
    try change.write(
      """
      INSERT INTO reports (
        id, user_id, event_id, visitor_id, link_id, owner_id, snapshot, picture, reason, text
      )
      SELECT \(id), user_id, event_id, visitor_id, \(link), owner_id, snapshot, picture, \(reason), \(text)
      FROM (\(Subject.content(of: event))) AS content
      WHERE (
        SELECT count(*) FROM reports WHERE event_id = \(event) AND link_id IS NOT NULL AND closed_at IS NULL
      ) < \(maximumFromPages)
      ON CONFLICT (id) DO NOTHING
      """)
  }

  /// Removes what visitors have erased. Open reports stay until an operator has closed them.
  static func forget(_ visitor: Visitor.ID, in change: Change) throws {
    // Waits for an operator who is closing one.
    try change.write("SELECT id FROM reports WHERE visitor_id = \(visitor) ORDER BY id FOR UPDATE")
    try change.write("DELETE FROM reports WHERE visitor_id = \(visitor) AND closed_at IS NOT NULL")
  }
}
