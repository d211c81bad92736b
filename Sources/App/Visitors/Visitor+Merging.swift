import Logging
import Postgres

/// Visitors whose address an account has verified become guests with this account, unless the account has an answer of
/// its own: an answer that was given before its address was proven never takes away what an account has. It is then
/// proposed to the account: see ``Proposal``.
///
/// The change that verifies the address marks its confirmed visitors, and a worker merges each in a change of its own:
/// it locks the hosts of the event, in the order of ids, which a login could not. A mark is lost only together with the
/// verification, and a merge removes the row that has the mark or proposes it, so each visitor is merged exactly once.
extension Visitor {
  /// Marks the confirmed visitors with an account's verified address. The caller has locked the account.
  static func claim(for user: User.ID, in change: Change) async throws {
    // Serializes with visitors who confirm this address now: the marking sees what they have committed. It locks in the
    // order of ids. Changes that move several visitors may not; a deadlock with one of them repeats this change.
    try await release(
      from: user, where: "email_key IS DISTINCT FROM (SELECT email_key FROM users WHERE id = \(user))", in: change)
    try await change.pipeline(
      Turns.taking(
        addressTurns,
        atEach: """
          SELECT hashtext(u.email_key) FROM users AS u
          WHERE u.id = \(user) AND u.email_verified_at IS NOT NULL AND u.email IS NOT NULL
          """,
        isPortable: change.isPortable),
      """
      WITH claimed AS MATERIALIZED (
        SELECT v.id, u.id AS user_id
        FROM visitors AS v
        JOIN users AS u ON u.email_key = v.email_key
        WHERE u.id = \(user) AND u.email_verified_at IS NOT NULL AND v.confirmed_at IS NOT NULL
        ORDER BY v.id
        FOR NO KEY UPDATE OF v
      )
      UPDATE visitors AS v SET merges_into = claimed.user_id
      FROM claimed
      WHERE v.id = claimed.id
      """)
    change.wakeWorkers()
  }

  /// Ends an account's claims to visitors, and their proposals to it. The visitors stay. The caller has locked the account.
  ///
  /// - Parameter condition: on the columns of `visitors`.
  static func release(from user: User.ID, where condition: SQL = "true", in change: Change) async throws {
    let proposed = try await change.rows(
      """
      SELECT DISTINCT event_id FROM visitors
      WHERE merges_into = \(user) AND proposed_at IS NOT NULL AND \(condition)
      ORDER BY event_id
      """)
    try change.write(
      "UPDATE visitors SET merges_into = NULL, proposed_at = NULL WHERE merges_into = \(user) AND \(condition)")
    // Under the account's lock: a proposal locks it before it queues its notice.
    for row in proposed {
      try Invitation.forgetNotices(of: user, about: try row["event_id"], ofType: .answerProposed, in: change)
    }
  }

  /// A condition on `visitors AS v`: whether one of some accounts decides about the answer.
  ///
  /// - Parameter users: their ids, as a list or a query.
  static func isProposed(to users: SQL) -> SQL { "v.merges_into IN (\(users)) AND v.proposed_at IS NOT NULL" }

  /// A query of the marked visitors whose address an account still has: `id` and `event_id`. It may be continued with
  /// AND and ORDER BY.
  static func merging(into user: User.ID) -> SQL {
    """
    SELECT v.id, v.event_id FROM visitors AS v JOIN users AS u ON u.id = v.merges_into
    WHERE v.merges_into = \(user) AND u.email_verified_at IS NOT NULL AND u.email_key = v.email_key
    """
  }

  /// Merges the visitors that are marked now. One who waits for approval keeps the mark, and is merged with the answer
  /// that applies then.
  ///
  /// - Returns: how many marks are gone.
  static func mergeMarked(in database: Database, logger: Logger) async throws -> Int {
    let marked = try await database.rows(
      """
      SELECT id, event_id, merges_into FROM visitors
      WHERE merges_into IS NOT NULL AND proposed_at IS NULL AND status <> 'pending'
      ORDER BY id
      LIMIT 100
      """)
    var merged = 0
    for row in marked {
      do {
        let (id, event): (Guest.ID, Event.ID) = (try row["id"], try row["event_id"])
        let user: User.ID = try row["merges_into"]
        try await database.change { try await merge(id, at: event, into: user, in: $0) }
        merged += 1
      } catch let error where !Task.isCancelled {
        // The others must not wait for this one.
        logger.warning("a visitor cannot be merged", metadata: ["error": "\(error)"])
      }
    }
    return merged
  }

  /// Merges a marked visitor into an account, and notifies the account. Without an invitation, the account gets one
  /// with the visitor's state and place in the line, and so does an invitation without an answer. Any other answer of
  /// the account stays, and the visitor's is proposed. A host, a user hidden from a host, and a former co-host cannot
  /// be a guest: the visitor is removed.
  static func merge(_ id: Guest.ID, at event: Event.ID, into user: User.ID, in change: Change) async throws {
    guard let found = try await find(id, at: event, of: user, isProposed: false, in: change) else { return }
    let party = found.visitor.party
    switch found.outcome {
    case .released:
      try change.write("UPDATE visitors SET merges_into = NULL WHERE id = \(id) AND merges_into = \(user)")
    case .removed(let cause): try await Guest.leave(visitors: "v.id = \(id)", by: cause, in: change)
    case .proposed:
      try change.write("UPDATE visitors SET proposed_at = clock_timestamp() WHERE id = \(id)")
      let proposal = Proposal.ID(rawValue: id.rawValue)
      change.notify(
        user, about: .answerProposed(event, found.title, proposal, party.status, with: party.plusOnes))
    case .merged:
      try await found.merge(in: change)
      change.notify(user, about: .answerMerged(event, found.title, party.status, with: party.plusOnes))
    }
  }

  /// Makes a proposed answer the account's own, on behalf of the account. The hosts are notified.
  ///
  /// - Throws: ``AppError/proposalNotFound``; ``AppError/eventArchived`` or ``AppError/eventCancelled``.
  static func accept(_ id: Guest.ID, at event: Event.ID, by user: User.ID, in change: Change) async throws {
    guard let found = try await find(id, at: event, of: user, isProposed: true, in: change), found.isOwner,
      found.mayBeGuest
    else { throw AppError.proposalNotFound }
    try found.phase.checkIsNotOver()
    try await found.merge(in: change)
    guard let person = try await change.first("SELECT \(Person.columns("u")) FROM users AS u WHERE u.id = \(user)")
    else { throw AppError.sessionEnded }
    change.notify(
      found.hosts,
      about: .answer(event, found.title, Notice.NamedGuest(try Person(row: person)), found.visitor.party))
  }

  /// Refuses a proposed answer: the visitor's party leaves, and its places go to those who wait.
  ///
  /// - Throws: ``AppError/proposalNotFound``; ``AppError/eventArchived`` or ``AppError/eventCancelled``.
  static func decline(_ id: Guest.ID, at event: Event.ID, by user: User.ID, in change: Change) async throws {
    let row = try await Proposal.lock(event, in: change)
    let mine: SQL = "v.id = \(id) AND v.event_id = \(event) AND \(isProposed(to: "\(user)"))"
    guard try await change.first("SELECT 1 FROM visitors AS v WHERE \(mine)") != nil else {
      throw AppError.proposalNotFound
    }
    try Event.Phase(row: row).checkIsNotOver()
    try await Guest.leave(visitors: mine, by: .user(user), in: change)
  }

  /// A marked visitor and the account, whose rows and event are locked.
  private struct Marked {
    let visitor: Visitor
    let answeredAt: Timestamp
    let user: User.ID
    /// Whether the account still has the address.
    let isOwner: Bool
    /// The account's invitation.
    let own: (party: Party, answeredAt: Timestamp?)?
    let hosts: [User.ID]
    let isHidden: Bool
    let mayBeGuest: Bool
    let title: String
    let phase: Event.Phase

    /// The end of a marked visitor.
    enum Outcome {
      /// The account is gone, or has another address by now.
      case released
      case removed(Guest.Cause)
      case proposed, merged
    }

    var outcome: Outcome {
      if !isOwner { return .released }
      if !mayBeGuest { return .removed(isHidden ? .block : .visitor) }
      guard let own = own?.party, own.status != .invited, own != visitor.party else { return .merged }
      // An event that no longer changes takes no decision.
      return phase.isCurrent ? .proposed : .removed(.visitor)
    }

    /// Gives the visitor's answer to the account, and removes the visitor. The places of both are counted until then, so
    /// nothing is oversold. If both wait in the line, the earlier place stays.
    func merge(in change: Change) async throws {
      let (id, event, party) = (visitor.id, visitor.event, visitor.party)
      guard let own else {
        try change.write("DELETE FROM visitors WHERE id = \(id)")
        try change.write(
          """
          INSERT INTO invitations (event_id, user_id, status, plus_ones, answered_at)
          VALUES (\(event), \(user), \(party.status), \(Int32(party.plusOnes)), \(answeredAt))
          """)
        try change.write("UPDATE events SET visitor_count = visitor_count - 1 WHERE id = \(event)")
        change.touch(.events, .invitations, of: user)
        // They have the name that was typed into the form, and not the account's.
        return try Visitor.forgetNotices(about: [id], at: event, in: change)
      }
      let bothWait = own.party.status == .waitlisted && party.status == .waitlisted
      try Guest.write(
        Guest.ID(user), as: .invitee, at: event, from: own.party, to: party,
        answeredAt: bothWait ? min(answeredAt, own.answeredAt ?? answeredAt) : answeredAt, in: change)
      // After the invitation has its new state: this promotes, if the two had more places than they keep.
      try await Guest.leave(visitors: "v.id = \(id)", by: .visitor, in: change)
      if phase.isCurrent, own.party.status == .going || own.party.status == .waitlisted {
        try await Guest.promoteWaiting(at: [event], by: .visitor, in: change)
      }
    }
  }

  /// Locks the account, the hosts of the event, and the event, and reads a marked visitor.
  ///
  /// - Returns: nil if another worker was faster, or the visitor is gone.
  private static func find(
    _ id: Guest.ID, at event: Event.ID, of user: User.ID, isProposed: Bool, in change: Change
  ) async throws -> Marked? {
    // As for joining through a link: no names change meanwhile, and no block comes between the user and a host.
    let expected: [User.ID] = try await change.rows(Event.hosts(of: event)).map { try $0["user_id"] }
    let locked = try await change.lock(users: expected + [user], for: .share)
    guard let eventRow = try await change.first(Event.Places.locking(event)) else { return nil }
    let rows = try await change.pipeline(
      """
      SELECT \(columns), v.answered_at, u.id IS NOT NULL AS is_owner
      FROM visitors AS v
      LEFT JOIN users AS u ON u.id = v.merges_into AND u.email_verified_at IS NOT NULL
        AND u.email_key = v.email_key
      WHERE v.id = \(id) AND v.event_id = \(event) AND v.merges_into = \(user) AND v.status <> 'pending'
        AND (v.proposed_at IS NOT NULL) = \(isProposed)
      """,
      """
      SELECT h.user_id, h.user_id IN (SELECT hidden_id FROM hidden WHERE user_id = \(user)) AS is_hidden
      FROM (\(Event.hosts(of: event))) AS h
      """,
      """
      SELECT status, plus_ones, answered_at FROM invitations WHERE event_id = \(event) AND user_id = \(user)
      """,
      "SELECT \(Event.hasRemoved(user, fromHostsOf: event)) AS is_removed")
    guard let row = rows[0].first else { return nil }
    let hosts: [User.ID] = try rows[1].map { try $0["user_id"] }
    // A new host whose row is not locked. The next try locks it.
    guard locked.isSuperset(of: hosts) else { throw AppError.contended }
    let isHidden = try rows[1].contains { try $0["is_hidden"] }
    let own = try rows[2].first.map {
      (
        party: Party(status: try $0["status"], plusOnes: try $0["plus_ones"]),
        answeredAt: try $0["answered_at"] as Timestamp?
      )
    }
    // A former co-host comes back by an invitation only.
    let wasRemoved: Bool = try rows[3].first.map { try $0["is_removed"] } ?? false
    let isRemoved = own == nil && wasRemoved
    return Marked(
      visitor: try Visitor(row: row), answeredAt: try row["answered_at"], user: user, isOwner: try row["is_owner"],
      own: own, hosts: hosts, isHidden: isHidden, mayBeGuest: !isHidden && !hosts.contains(user) && !isRemoved,
      title: try eventRow["title"], phase: try Event.Phase(row: eventRow))
  }
}
