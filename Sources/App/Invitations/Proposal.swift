import Postgres

/// A proposal that a user may accept or decline: the answer of a visitor with the user's address, while the user has another one,
/// or the offer to host an event. A proposal ends when it is accepted or declined, and with its event.
struct Proposal: Sendable {
  typealias ID = Identifier<Proposal>

  enum Kind: String, SQLValue {
    case answer, host

    /// The type of the notification.
    var notice: Notice.Kind {
      switch self {
      case .answer: .answerProposed
      case .host: .hostOffered
      }
    }
  }

  let id: ID
  let kind: Kind
  let event: Event.ID
  let title: String
  let startTime: Timestamp
  let timeZone: String
  /// The creator, who offers. Nil for an answer.
  let person: Person?
  /// The name that was typed into the form. Nil for an offer.
  let name: String?
  /// The visitor's answer. Nil for an offer.
  let status: Invitation.Status?
  let plusOnes: Int
  let createdAt: Timestamp

  /// A user's proposals for events that have not ended, newest first.
  static func list(of user: User.ID, page: PageRequest, in database: some Querying) async throws -> List<Proposal> {
    try await List.read(
      page: page,
      query: Keyset(
        list: .proposals,
        columns: """
          p.id AS proposal_id, p.kind, p.event_id, e.title, e.start_time, e.time_zone, p.name, p.status, p.plus_ones,
          p.since, CASE WHEN p.kind = 'host' THEN \(Person.record("c")) END AS person
          """,
        source: """
          proposals AS p
          JOIN events AS e ON e.id = p.event_id
          LEFT JOIN users AS c ON c.id = e.creator_id
          WHERE p.user_id = \(user) AND \(Event.Phase.isOpen("e"))
            AND (p.kind = 'host' OR NOT \(Event.Phase.isOver("e")))
          """,
        time: "p.since", id: "p.id", order: .descending),
      in: database, item: Proposal.init(row:))
  }

  init(row: Row) throws {
    id = try row["proposal_id"]
    kind = try row["kind"]
    event = try row["event_id"]
    title = try row["title"]
    startTime = try row["start_time"]
    timeZone = try row["time_zone"]
    person = try row["person"]
    name = try row["name"]
    status = try row["status"]
    plusOnes = try row["plus_ones"]
    createdAt = try row["since"]
  }

  /// The kind and the event of a user's proposal.
  ///
  /// - Throws: ``AppError/proposalNotFound``
  static func find(
    _ id: ID, of user: User.ID, in database: some Querying
  ) async throws -> (kind: Kind, event: Event.ID) {
    let row = try await database.first("SELECT kind, event_id FROM proposals WHERE id = \(id) AND user_id = \(user)")
    guard let row else { throw AppError.proposalNotFound }
    return (try row["kind"], try row["event_id"])
  }

  /// Locks the event of a proposal.
  static func lock(_ event: Event.ID, in change: Change) async throws -> Row {
    guard let row = try await change.first(Event.Places.locking(event)) else { throw AppError.proposalNotFound }
    return row
  }

  static func accept(
    _ id: ID, _ kind: Kind, about event: Event.ID, by user: User.ID, in change: Change
  ) async throws {
    switch kind {
    case .answer: try await Visitor.accept(Guest.ID(rawValue: id.rawValue), at: event, by: user, in: change)
    case .host: try await Event.acceptHost(id, of: event, by: user, in: change)
    }
  }

  static func decline(
    _ id: ID, _ kind: Kind, about event: Event.ID, by user: User.ID, in change: Change
  ) async throws {
    switch kind {
    case .answer: try await Visitor.decline(Guest.ID(rawValue: id.rawValue), at: event, by: user, in: change)
    case .host: try await Event.declineHost(id, of: event, by: user, in: change)
    }
  }

  /// Deletes the notifications of proposals that no one can decide any more, because their events have ended or are
  /// cancelled. The caller has locked the events.
  static func forgetNotices(about events: [Event.ID], in change: Change) async throws {
    guard !events.isEmpty else { return }
    let proposals = try await change.rows(
      "SELECT DISTINCT user_id, event_id, kind FROM proposals WHERE event_id = ANY(\(events)) ORDER BY user_id, event_id"
    )
    for row in proposals {
      let kind: Kind = try row["kind"]
      try Invitation.forgetNotices(of: try row["user_id"], about: try row["event_id"], ofType: kind.notice, in: change)
    }
  }
}

extension AppError {
  static let proposalNotFound = AppError(
    .notFound, "proposal-not-found", "There is no such proposal, or it was accepted, declined or withdrawn.")
}
