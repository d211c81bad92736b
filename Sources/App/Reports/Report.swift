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
    case guest(Visitor.ID)
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
  let guestID: Visitor.ID?
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

  /// Files a report, with a copy of what it is about. If the reporter has an open report of the same subject, that one
  /// stays unchanged.
  ///
  /// - Parameters:
  ///   - owner: from ``Subject/owner(for:in:)``.
  ///   - isLimited: false for load tests.
  /// - Returns: the new report, or the open one.
  /// - Throws: ``AppError/eventNotFound`` or ``AppError/guestNotFound`` unless the reporter sees the event or visitor,
  ///   and ``AppError`` `too-many-reports`, with the number of seconds to wait.
  static func file(
    _ draft: Draft, of owner: User.ID?, by reporter: User.ID, isLimited: Bool, in change: Change
  ) async throws -> (report: Report, isNew: Bool) {
    guard owner != reporter else { throw draft.subject.ownError }
    try change.write(User.takingTurns(at: .reports, by: reporter))
    // Neither account is deleted meanwhile: its deletion would not find this report.
    let users = try await change.lock(users: [reporter, owner].compactMap { $0 }, for: .share)
    guard users.contains(reporter) else { throw AppError.sessionEnded }
    let id = ID.new()
    // The update changes nothing, but returns the open report.
    let row = try await change.first(
      """
      INSERT INTO reports AS r (
        id, reporter_id, user_id, event_id, visitor_id, owner_id, snapshot, picture, reason, text
      )
      SELECT \(id), \(reporter), user_id, event_id, visitor_id, owner_id, snapshot, picture, \(draft.reason),
        \(draft.text)
      FROM (\(draft.subject.content(for: reporter))) AS content
      ON CONFLICT (reporter_id, coalesce(user_id, event_id, visitor_id)) WHERE closed_at IS NULL
      DO UPDATE SET id = r.id
      RETURNING id, user_id, event_id, visitor_id, reason, text, created_at
      """)
    guard let row else { throw draft.subject.notFoundError }
    let report = try Report(row: row)
    let isNew = report.id == id
    if isNew, isLimited { try await checkLimit(of: reporter, in: change) }
    return (report, isNew)
  }

  static var expiry: SQL { "now() + make_interval(secs => \(Double(lifetime)))" }

  /// Refuses a report if its reporter files too many. It is already inserted, and the error rolls it back.
  private static func checkLimit(of reporter: User.ID, in change: Change) async throws {
    let wait: Int? = try await change.value(
      """
      SELECT ceil(extract(epoch FROM created_at + interval '1 day' - clock_timestamp()))::bigint
      FROM reports
      WHERE reporter_id = \(reporter)
      ORDER BY id DESC
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
