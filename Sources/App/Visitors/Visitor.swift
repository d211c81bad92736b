import Postgres

/// A guest without an account, who answers on the page of a share link.
struct Visitor: Sendable {
  typealias ID = Identifier<Visitor>

  /// Seconds after which an answer with an unconfirmed address is deleted.
  static let confirmationTime = 24 * 3600
  /// Days after an event for which its visitors' data is kept.
  static let daysKept = 90

  let id: ID
  let event: Event.ID
  let kid: String
  let name: String
  let email: EmailAddress?
  let isConfirmed: Bool
  let isUnsubscribed: Bool
  /// Whether an account with the address decides about the answer. Until then, the visitor cannot change it.
  let isProposed: Bool
  let group: Invitation.Group
  /// The answer that a pending visitor gets when a host approves.
  let wanted: Invitation.Status?

  /// Of `visitors AS v`. Each name starts with `visitor_`.
  static let columns: SQL = """
    v.id AS visitor_id, v.event_id AS visitor_event, v.kid AS visitor_kid, v.name AS visitor_name,
    v.email AS visitor_email, v.confirmed_at IS NOT NULL AS visitor_confirmed,
    v.unsubscribed_at IS NOT NULL AS visitor_unsubscribed, v.status AS visitor_status,
    v.plus_ones AS visitor_plus_ones, v.wanted AS visitor_wanted, v.proposed_at IS NOT NULL AS visitor_proposed
    """

  init(row: Row) throws {
    id = try row["visitor_id"]
    event = try row["visitor_event"]
    kid = try row["visitor_kid"]
    name = try row["visitor_name"]
    email = try row["visitor_email"]
    isConfirmed = try row["visitor_confirmed"]
    isUnsubscribed = try row["visitor_unsubscribed"]
    isProposed = try row["visitor_proposed"]
    group = Invitation.Group(status: try row["visitor_status"], plusOnes: try row["visitor_plus_ones"])
    wanted = try row["visitor_wanted"]
  }

  /// Whether this is the visitor's answer. Guests on the waiting list want to go.
  ///
  /// - Parameter plusOnes: nil for any number.
  func says(_ answer: Invitation.Status, bringing plusOnes: Int?) -> Bool {
    let said = wanted ?? (group.status == .waitlisted ? .going : group.status)
    return said == answer && (plusOnes ?? group.plusOnes) == group.plusOnes
  }

  /// The event of a visitor.
  ///
  /// - Throws: ``AppError/visitorNotFound``
  static func event(of token: VisitorTokens.PageToken, in database: some Querying) async throws -> Event.ID {
    let event: Event.ID? = try await database.value(
      "SELECT event_id FROM visitors WHERE id = \(token.id) AND kid = \(token.kid)")
    guard let event else { throw AppError.visitorNotFound }
    return event
  }

  /// A visitor whose event's row is locked.
  static func find(_ id: ID, of event: Event.ID, in change: Change) async throws -> Visitor {
    let row = try await change.first(
      "SELECT \(columns) FROM visitors AS v WHERE v.id = \(id) AND v.event_id = \(event)")
    guard let row else { throw AppError.visitorNotFound }
    return try Visitor(row: row)
  }
}

extension AppError {
  static let visitorNotFound = AppError(.notFound, "visitor-not-found", "There is no such visitor.")
}
