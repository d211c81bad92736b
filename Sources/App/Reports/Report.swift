import Foundation
import Postgres

/// A report of a user, an event or a visitor to the operators. No one else sees it. It is sent by a user, or on the page
/// of a share link by anyone.
public struct Report: Sendable {
  public typealias ID = Identifier<Report>

  enum Reason: String, CaseIterable, SQLValue {
    case spam, harassment, hate, violence, nudity, impersonation, other
  }

  enum Subject: Sendable {
    case user(User.ID)
    case event(Event.ID)
    /// A visitor of an event.
    case guest(Guest.ID)
  }

  struct Draft: Sendable {
    let subject: Subject
    let reason: Reason
    let text: String?
  }

  /// The maximum length of a report's text, and of an operator's note, in Unicode scalars.
  public static let maximumText = 2000
  /// Seconds for which a report is kept after it was closed: 90 days. An open one is kept until it is closed.
  static let lifetime = 90 * 86_400
  static let maximumPerDay = 20

  let id: ID
  let userID: User.ID?
  let eventID: Event.ID?
  let guestID: Guest.ID?
  let reason: Reason
  let text: String?
  let createdAt: Timestamp

  init(row: Row) throws {
    id = try row["id"]
    userID = try row["user_id"]
    eventID = try row["event_id"]
    guestID = try row["visitor_id"]
    reason = try row["reason"]
    text = try row["text"]
    createdAt = try row["created_at"]
  }

  /// The reporter's open report of a user, or of an event that they still see.
  static func open(_ subject: Subject, by reporter: User.ID, in database: some Querying) async throws -> Report? {
    let id: SQL =
      switch subject {
      case .user(let user): "\(user)"
      case .event(let event): "\(event)"
      case .guest(let visitor): "\(visitor)"
      }
    return try await database.first(
      """
      SELECT id, user_id, event_id, visitor_id, reason, text, created_at FROM reports
      WHERE reporter_id = \(reporter) AND coalesce(user_id, event_id, visitor_id) = \(id) AND closed_at IS NULL
        AND EXISTS (\(subject.content(for: reporter)))
      """
    ).map(Report.init(row:))
  }

  /// The report that a user has sent with an id that the user's client has made, open or closed.
  ///
  /// - Throws: ``AppError/idTaken`` if it is not the user's.
  static func sent(_ id: ID, by reporter: User.ID, in database: some Querying) async throws -> Report? {
    let row = try await database.first(
      "SELECT id, user_id, event_id, visitor_id, reason, text, created_at, reporter_id FROM reports WHERE id = \(id)")
    guard let row else { return nil }
    guard try (row["reporter_id"] as User.ID?) == reporter else { throw AppError.idTaken }
    return try Report(row: row)
  }

  /// Files a report, with a copy of what it is about. If the reporter has an open report of the same subject, that one
  /// stays unchanged. So does the report with this id, if the reporter has sent it before.
  ///
  /// - Parameters:
  ///   - owner: from ``Subject/owner(for:in:)``.
  ///   - isLimited: false for load tests.
  /// - Returns: the new report, or the open one, or the one that was sent before.
  /// - Throws: ``AppError/eventNotFound`` or ``AppError/guestNotFound`` unless the reporter sees the event or visitor;
  ///   ``AppError/idTaken``; ``AppError`` `too-many-reports`, with the number of seconds to wait.
  static func file(
    _ given: NewID<Report>, _ draft: Draft, of owner: User.ID?, by reporter: User.ID, isLimited: Bool, in change: Change
  ) async throws -> (report: Report, isNew: Bool) {
    guard owner != reporter else { throw draft.subject.ownError }
    try User.takeTurn(at: .reports, by: reporter, in: change)
    // Neither account is deleted meanwhile: its deletion would not find this report.
    let users = try await change.lock(users: [reporter, owner].compactMap { $0 }, for: .share)
    guard users.contains(reporter) else { throw AppError.sessionEnded }
    // Again, if an operator has closed the open report between the two statements.
    for _ in 1...2 {
      if let row = try await insert(given.value, draft, by: reporter, in: change) {
        if isLimited { try await checkLimit(of: reporter, in: change) }
        return (try Report(row: row), true)
      }
      // The insert has waited for a report with this id, or of the same subject, that was filed at this moment.
      if given.isGiven, let sent = try await sent(given.value, by: reporter, in: change) { return (sent, false) }
      if let open = try await open(draft.subject, by: reporter, in: change) { return (open, false) }
    }
    throw draft.subject.notFoundError
  }

  /// - Returns: nil if there is a report with this id or an open one of the same subject, or if the reporter does not see
  ///   the subject.
  private static func insert(
    _ id: ID, _ draft: Draft, by reporter: User.ID, in change: Change
  ) async throws -> Row? {
    try await change.first(
      """
      INSERT INTO reports (
        id, reporter_id, user_id, event_id, visitor_id, owner_id, snapshot, picture, reason, text
      )
      SELECT \(id), \(reporter), user_id, event_id, visitor_id, owner_id, snapshot, picture, \(draft.reason),
        \(draft.text)
      FROM (\(draft.subject.content(for: reporter))) AS content
      ON CONFLICT DO NOTHING
      RETURNING id, user_id, event_id, visitor_id, reason, text, created_at
      """)
  }

  static var expiry: SQL { "now() + make_interval(secs => \(Double(lifetime)))" }

  /// Refuses a report if its reporter files too many. It is already inserted, and the error rolls it back. Ids say
  /// nothing about the order: clients make them.
  private static func checkLimit(of reporter: User.ID, in change: Change) async throws {
    let wait: Int? = try await change.value(
      """
      SELECT ceil(extract(epoch FROM created_at + interval '1 day' - clock_timestamp()))::bigint
      FROM reports
      WHERE reporter_id = \(reporter) AND created_at > clock_timestamp() - interval '1 day'
      ORDER BY created_at DESC
      OFFSET \(maximumPerDay)
      LIMIT 1
      """)
    if let wait, wait > 0 { throw AppError.tooManyReports(perDay: maximumPerDay, wait: wait) }
  }
}

extension AppError {
  fileprivate static func tooManyReports(perDay: Int, wait: Int) -> AppError {
    AppError(
      .tooManyRequests, "too-many-reports", "You have sent \(perDay) reports within a day. Try again later.",
      retryAfter: wait)
  }
}

extension Report.Subject {
  /// The user whose content this is: the reported user, who may not exist, or the event's creator. Nil for a visitor,
  /// who has no account, and if the creator's account is deleted.
  ///
  /// - Throws: ``AppError/eventNotFound`` unless the reporter sees the event.
  func owner(for reporter: User.ID, in database: some Querying) async throws -> User.ID? {
    switch self {
    case .user(let user): return user
    case .event(let event):
      let row = try await database.first(
        "SELECT creator_id FROM events WHERE id = \(event) AND \(Event.isVisible(event, to: reporter))")
      guard let row else { throw AppError.eventNotFound }
      return try row["creator_id"]
    case .guest: return nil
    }
  }

  /// A query of the content as it is now. It has no row for an event that the reporter does not see.
  ///
  /// For a user it always has one, so that every id gets the same response. Senders of spam and threats delete their
  /// accounts or block their victims, who still have the id in a notification. To accept only some of these ids would
  /// tell a deleted account from a block. Nothing of a deleted account is left to be copied.
  func content(for reporter: User.ID) -> SQL {
    switch self {
    case .user(let user):
      """
      SELECT subject.id AS user_id, NULL::uuid AS event_id, NULL::uuid AS visitor_id, u.id AS owner_id,
        jsonb_strip_nulls(jsonb_build_object(
          'username', u.username, 'displayName', u.display_name, 'bio', u.bio
        )) AS snapshot, (SELECT p.jpeg_768 FROM pictures AS p WHERE p.user_id = u.id) AS picture
      FROM (SELECT \(user)::uuid AS id) AS subject
      LEFT JOIN users AS u ON u.id = subject.id
      """
    case .event(let event): "\(Self.content(of: event)) AND \(Event.isVisible(event, to: reporter))"
    case .guest(let visitor):
      """
      SELECT NULL::uuid AS user_id, NULL::uuid AS event_id, v.id AS visitor_id, NULL::uuid AS owner_id,
        jsonb_strip_nulls(jsonb_build_object(
          'name', v.name, 'event', e.title, 'eventId', e.id, 'linkId', v.link_id, 'creator', c.username
        )) AS snapshot, NULL::bytea AS picture
      FROM visitors AS v
      JOIN events AS e ON e.id = v.event_id
      LEFT JOIN users AS c ON c.id = e.creator_id
      CROSS JOIN LATERAL (SELECT \(Event.myStatus(of: reporter, atEvent: "e.id")) AS status) AS mine
      WHERE v.id = \(visitor) AND EXISTS (
        SELECT FROM (\(Guest.visible(at: "e.id", to: reporter, withStatus: "mine.status"))) AS seen WHERE seen.id = v.id
      )
      """
    }
  }

  /// A query of an event as it is now, for anyone. It may be continued with AND.
  static func content(of event: Event.ID) -> SQL {
    """
    SELECT NULL::uuid AS user_id, e.id AS event_id, NULL::uuid AS visitor_id, c.id AS owner_id,
      jsonb_strip_nulls(jsonb_build_object(
        'title', e.title, 'note', e.note, 'place', e.location_name, 'url', e.url, 'creator', c.username
      )) AS snapshot, NULL::bytea AS picture
    FROM events AS e
    LEFT JOIN users AS c ON c.id = e.creator_id
    WHERE e.id = \(event)
    """
  }

  fileprivate var notFoundError: AppError {
    switch self {
    case .user: .userNotFound
    case .event: .eventNotFound
    case .guest: .guestNotFound
    }
  }

  fileprivate var ownError: AppError {
    switch self {
    case .user: .invalid("userId", .notAllowed, "must be another user")
    case .event: .invalid("eventId", .notAllowed, "must be an event of another user")
    case .guest: .invalid("guestId", .notAllowed, "must be a visitor")
    }
  }
}

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
  static func forget(_ visitor: Guest.ID, in change: Change) throws {
    // Waits for an operator who is closing one.
    try change.write("SELECT id FROM reports WHERE visitor_id = \(visitor) ORDER BY id FOR UPDATE")
    try change.write("DELETE FROM reports WHERE visitor_id = \(visitor) AND closed_at IS NOT NULL")
  }
}

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

extension Report {
  /// For operators: the reported user's picture at the time of the report, as a JPEG. Nil if there is none, or no such
  /// report.
  public static func picture(of id: ID, in database: Database) async throws -> Data? {
    try await database.first("SELECT picture FROM reports WHERE id = \(id)").flatMap { try $0["picture"] }
  }
}
