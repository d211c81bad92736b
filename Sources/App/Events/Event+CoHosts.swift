import Postgres

/// Adding and removing co-hosts.
extension Event {
  static let maximumCoHosts = 20

  /// Offers the role of a co-host of an open event to a friend of the creator, or to a guest. They become a co-host, and
  /// are named as one, when they accept. Offering it again, or to a host, changes nothing.
  ///
  /// - Throws: ``AppError/userNotFound`` if the creator does not see the user.
  static func offerHost(_ user: User.ID, to id: ID, by creator: User.ID, in change: Change) async throws {
    // The locks wait for a block between the two users.
    let found = try await change.lock(user, creator, for: .share)
    guard found.contains(creator) else { throw AppError.sessionEnded }
    let row = try await lock(id, byCreator: creator, in: change)
    let facts = try await change.first(
      """
      SELECT \(User.visible("\(user)", to: creator)) AS is_visible,
        EXISTS (\(hosts(of: id)) AND user_id = \(user)) AS is_host,
        EXISTS (\(Invitation.guests(of: id)) AND user_id = \(user)) AS is_guest,
        EXISTS (SELECT FROM friends WHERE user_id = \(creator) AND friend_id = \(user)) AS is_friend,
        (SELECT count(*) FROM event_co_hosts WHERE event_id = \(id))
          + (SELECT count(*) FROM host_offers WHERE event_id = \(id) AND user_id <> \(user)) AS others,
        \(Person.columns("u"))
      FROM users AS u WHERE u.id = \(creator)
      """)
    guard let facts, found.contains(user), try facts["is_visible"] else { throw AppError.userNotFound }
    if try facts["is_host"] { return }
    try Phase(row: row).checkIsOpen()
    guard try facts["is_guest"] || facts["is_friend"] else {
      throw AppError.invalid("userId", .notAFriend, "is neither a friend nor a guest")
    }
    guard try facts["others"] < maximumCoHosts else { throw AppError.tooManyHosts }
    let offer = Proposal.ID.new()
    let offered = try await change.rows(
      """
      INSERT INTO host_offers (id, event_id, user_id) VALUES (\(offer), \(id), \(user))
      ON CONFLICT ON CONSTRAINT one_host_offer DO NOTHING
      """)
    guard offered.affected == 1 else { return }
    change.notify(user, about: .hostOffered(id, try row["title"], offer, by: try Person(row: facts)))
  }

  /// Makes a user a co-host of an open event, who accepts the creator's offer. Their invitation ends, their visitors
  /// leave, and the invitations of guests whom a block hides from the new host end. Places that become free go to the
  /// guests who have waited longest. The other hosts are notified.
  ///
  /// - Throws: ``AppError/proposalNotFound``.
  static func acceptHost(_ offer: Proposal.ID, of id: ID, by user: User.ID, in change: Change) async throws {
    let expected: User.ID? = try await change.value("SELECT creator_id FROM events WHERE id = \(id)")
    guard let expected else { throw AppError.proposalNotFound }
    // The locks wait for a block between the two users. They also keep the new host's name from changing, because it
    // enters the guests' lists.
    let found = try await change.lock(user, expected, for: .share)
    guard found.contains(user) else { throw AppError.sessionEnded }
    let row = try await Proposal.lock(id, in: change)
    let hiding: SQL = "SELECT hidden_id FROM hidden WHERE user_id = \(user)"
    let facts = try await change.first(
      """
      SELECT e.creator_id,
        EXISTS (SELECT FROM host_offers WHERE id = \(offer) AND event_id = \(id) AND user_id = \(user)) AS is_offered,
        EXISTS (\(Invitation.guests(of: id)) AND user_id = \(user)) AS is_guest,
        EXISTS (SELECT FROM friends WHERE user_id = \(expected) AND friend_id = \(user)) AS is_friend,
        (SELECT count(*) FROM event_co_hosts WHERE event_id = \(id)) AS others,
        ARRAY(\(Invitation.guests(of: id)) AND user_id IN (\(hiding))) AS hidden_guests,
        EXISTS (
          \(Invitation.guests(of: id)) AND user_id IN (\(hiding))
          UNION ALL
          SELECT v.merges_into FROM visitors AS v WHERE v.event_id = \(id) AND \(Visitor.isProposed(to: hiding))
        ) AS hides,
        EXISTS (
          \(Invitation.guests(of: id)) AND status IN ('going', 'waitlisted')
            AND (user_id = \(user) OR user_id IN (\(hiding)))
          UNION ALL
          SELECT v.merges_into FROM visitors AS v
          WHERE v.event_id = \(id) AND v.status IN ('going', 'waitlisted') AND \(Visitor.isProposed(to: hiding))
        ) AS frees,
        \(Person.columns("u"))
      FROM events AS e JOIN users AS u ON u.id = \(user)
      WHERE e.id = \(id)
      """)
    guard let facts, try facts["is_offered"] else { throw AppError.proposalNotFound }
    guard try (facts["creator_id"] as User.ID?) == expected else { throw AppError.contended }
    try Phase(row: row).checkIsOpen()
    let (isGuest, hidden): (Bool, [User.ID]) = (try facts["is_guest"], try facts["hidden_guests"])
    // The friendship, or the invitation, may have ended since.
    guard try isGuest || facts["is_friend"] else { throw AppError.proposalNotFound }
    guard try facts["others"] < maximumCoHosts else { throw AppError.tooManyHosts }
    let leaving = isGuest ? hidden + [user] : hidden
    // All leave in one step, so that no free place goes to a guest who is about to leave. If a block may have freed one,
    // hosts are not notified.
    try await Guest.leave(
      invitees: leaving.isEmpty ? nil : "i.event_id = \(id) AND i.user_id = ANY(\(leaving))",
      visitors: "v.event_id = \(id) AND \(Visitor.isProposed(to: "SELECT \(user) UNION ALL \(hiding)"))",
      by: try facts["hides"] && facts["frees"] ? .block : .user(user), in: change)
    for guest in hidden { try Invitation.forgetNotices(of: guest, about: id, in: change) }
    if !hidden.isEmpty { try await withdrawOffers(to: hidden, at: [id], in: change) }
    try change.write("DELETE FROM host_offers WHERE id = \(offer)")
    try Invitation.forgetNotices(of: user, about: id, ofType: .hostOffered, in: change)
    try change.write("DELETE FROM removed_hosts WHERE event_id = \(id) AND user_id = \(user)")
    // The time is later than those of all other co-hosts, even if the clock was set back.
    try change.write(
      """
      INSERT INTO event_co_hosts (event_id, user_id, added_at)
      SELECT \(id), \(user), greatest(clock_timestamp(), max(added_at) + interval '1 microsecond')
      FROM event_co_hosts WHERE event_id = \(id)
      """)
    try touchWhoSeesHosts(of: [id], where: User.visible("user_id", to: user), in: change)
    change.notify(
      usersIn: "\(hosts(of: id)) AND \(User.visible("user_id", to: user))",
      about: .hostAdded(id, try row["title"], by: try Person(row: facts)))
  }

  /// Declines the creator's offer. No one is notified.
  ///
  /// - Throws: ``AppError/proposalNotFound``.
  static func declineHost(_ offer: Proposal.ID, of id: ID, by user: User.ID, in change: Change) async throws {
    _ = try await Proposal.lock(id, in: change)
    let declined = try await change.rows(
      "DELETE FROM host_offers WHERE id = \(offer) AND event_id = \(id) AND user_id = \(user)")
    guard declined.affected == 1 else { throw AppError.proposalNotFound }
    try Invitation.forgetNotices(of: user, about: id, ofType: .hostOffered, in: change)
  }

  /// Ends the offers that a condition names, and deletes their notifications. The caller has locked the events.
  ///
  /// - Parameter condition: on `host_offers AS o` and `events AS e`.
  static func withdrawOffers(where condition: SQL, in change: Change) async throws {
    let ended = try await change.rows(
      "DELETE FROM host_offers AS o USING events AS e WHERE e.id = o.event_id AND \(condition) RETURNING o.event_id, o.user_id"
    )
    for row in ended {
      try Invitation.forgetNotices(
        of: try row["user_id"], about: try row["event_id"], ofType: .hostOffered, in: change)
    }
  }

  /// Ends the offers that these users can no longer accept, because they have left the guest list and are no friends of
  /// the creator. The caller has locked the events.
  static func withdrawOffers(to users: [User.ID], at events: [Event.ID], in change: Change) async throws {
    try await withdrawOffers(
      where: """
        e.id = ANY(\(events)) AND o.user_id = ANY(\(users))
          AND NOT EXISTS (SELECT FROM invitations AS i WHERE i.event_id = o.event_id AND i.user_id = o.user_id)
          AND NOT EXISTS (SELECT FROM friends AS f WHERE f.user_id = e.creator_id AND f.friend_id = o.user_id)
        """,
      in: change)
  }

  /// A condition: whether one of two users has offered the other, who is no guest, to host an event.
  static func offersHost(between pair: [User.ID]) -> SQL {
    "EXISTS (SELECT FROM host_offers AS o JOIN events AS e ON e.id = o.event_id WHERE \(isOffer(between: pair)))"
  }

  /// The same, on `host_offers AS o` and `events AS e`.
  private static func isOffer(between pair: [User.ID]) -> SQL {
    """
    o.user_id = ANY(\(pair)) AND e.creator_id = ANY(\(pair))
      AND NOT EXISTS (SELECT FROM invitations AS i WHERE i.event_id = o.event_id AND i.user_id = o.user_id)
    """
  }

  /// Ends the offers of each of two users to the other, who are no longer friends. Offers to guests stay. The caller has
  /// locked both users.
  static func withdrawOffers(between pair: [User.ID], in change: Change) async throws {
    try change.write(
      locking("SELECT e.id FROM host_offers AS o JOIN events AS e ON e.id = o.event_id WHERE \(isOffer(between: pair))")
    )
    try await withdrawOffers(where: isOffer(between: pair), in: change)
  }

  /// Ends a co-host's role at an open event, on behalf of the creator or of the co-host. The former co-host is not
  /// invited, and loses all notifications about the event. An offer that was not accepted also ends. Removing any other
  /// user changes nothing.
  static func removeHost(_ user: User.ID, from id: ID, by actor: User.ID, in change: Change) async throws {
    // Blocks decide who sees the host. A block that is added or removed now waits, or the touch below sees it.
    try change.lockAhead(user, actor, for: .share)
    let row =
      try await user == actor
      ? lock(id, by: actor, in: change) : lock(id, byCreator: actor, in: change)
    guard try (row["creator_id"] as User.ID?) != user else {
      throw AppError.invalid("userId", .notAllowed, "must not be the creator")
    }
    let rows = try await change.pipeline(
      "SELECT 1 FROM event_co_hosts WHERE event_id = \(id) AND user_id = \(user)",
      "DELETE FROM host_offers WHERE event_id = \(id) AND user_id = \(user)")
    if rows[1].affected > 0 { try Invitation.forgetNotices(of: user, about: id, ofType: .hostOffered, in: change) }
    guard !rows[0].isEmpty else { return }
    try Phase(row: row).checkIsOpen()
    try change.write("DELETE FROM event_co_hosts WHERE event_id = \(id) AND user_id = \(user)")
    // A co-host who leaves may come back.
    if user != actor { try change.write(noting(removed: user, fromHostsOf: id)) }
    try change.write(ShareLink.revoking(of: user, at: id))
    change.touch(.events, of: user)
    try touchWhoSeesHosts(of: [id], where: User.visible("user_id", to: user), in: change)
    try Invitation.forgetNotices(of: user, about: id, in: change)
    if user != actor { change.notify(user, about: .invitationWithdrawn(id, try row["title"])) }
  }

  private static func noting(removed user: User.ID, fromHostsOf id: ID) -> SQL {
    "INSERT INTO removed_hosts (event_id, user_id) VALUES (\(id), \(user)) ON CONFLICT DO NOTHING"
  }

  /// A statement that lets former co-hosts come back through links, because a host invites them.
  static func readmitting(_ users: [User.ID], to id: ID) -> SQL {
    "DELETE FROM removed_hosts WHERE event_id = \(id) AND user_id = ANY(\(users))"
  }

  /// A SQL condition: whether another user has ended the role of a former co-host. Links do not admit them.
  static func hasRemoved(_ user: User.ID, fromHostsOf id: ID) -> SQL {
    "EXISTS (SELECT FROM removed_hosts WHERE event_id = \(id) AND user_id = \(user))"
  }

  /// Ends the roles of co-hosts whom a block hides from the creator. The caller holds the locks on the events.
  static func partHosts(of events: [ID], in change: Change) async throws {
    let ended = try await change.rows(
      """
      DELETE FROM event_co_hosts AS h
      USING events AS e
      WHERE e.id = h.event_id AND e.id = ANY(\(events)) AND e.archived_at IS NULL
        AND h.user_id IN (SELECT hidden_id FROM hidden WHERE user_id = e.creator_id)
      RETURNING h.event_id, h.user_id, e.creator_id
      """)
    for row in ended {
      let (coHost, creator): (User.ID, User.ID) = (try row["user_id"], try row["creator_id"])
      change.touch(.events, of: coHost, creator)
      try change.write(noting(removed: coHost, fromHostsOf: try row["event_id"]))
      try change.write(ShareLink.revoking(of: coHost, at: try row["event_id"]))
      try Invitation.forgetNotices(of: coHost, about: try row["event_id"], in: change)
      try touchWhoSeesHosts(of: [try row["event_id"]], where: User.visible("user_id", to: coHost), in: change)
    }
  }

  /// Ends all roles of a user whose account is about to be deleted. The co-host who has served longest becomes the
  /// creator of each of their events, and loses co-hosts with whom there is a block. Events without co-hosts keep their
  /// creator. The caller has locked the events.
  static func handOver(_ events: [ID], of user: User.ID, in change: Change) async throws {
    let rows = try await change.pipeline(
      """
      SELECT h.event_id FROM event_hosts AS h JOIN events AS e ON e.id = h.event_id
      WHERE h.user_id = \(user) AND e.archived_at IS NULL AND EXISTS (
        SELECT FROM event_co_hosts AS other WHERE other.event_id = h.event_id
      )
      """,
      "DELETE FROM event_co_hosts WHERE user_id = \(user)",
      "DELETE FROM host_offers WHERE user_id = \(user) OR event_id IN (SELECT id FROM events WHERE creator_id = \(user))",
      """
      UPDATE events AS e SET creator_id = heir.user_id
      FROM (
        SELECT DISTINCT ON (event_id) event_id, user_id FROM event_co_hosts
        WHERE event_id = ANY(\(events))
        ORDER BY event_id, added_at, user_id
      ) AS heir
      WHERE e.id = heir.event_id AND e.creator_id = \(user)
      """,
      """
      DELETE FROM event_co_hosts AS h
      USING events AS e
      WHERE e.id = h.event_id AND e.id = ANY(\(events)) AND h.user_id = e.creator_id
      """)
    try touchWhoSeesHosts(of: try rows[0].map { try $0["event_id"] }, in: change)
    try await partHosts(of: events, in: change)
  }
}

extension AppError {
  static let tooManyHosts = AppError(
    .conflict, "too-many-hosts", "The event already has \(Event.maximumCoHosts) co-hosts. Remove one first.")
}

/// An offer to host an event that the user has neither accepted nor declined, as the hosts see it.
struct HostOffer: Sendable {
  let person: Person
  let offeredAt: Timestamp

  /// The open offers of an event, oldest first, for its hosts only.
  static func list(of event: Event.ID, for host: User.ID, in database: some Querying) async throws -> [HostOffer] {
    let rows = try await database.rows(
      """
      SELECT \(Person.columns("u")), o.offered_at
      FROM host_offers AS o
      JOIN users AS u ON u.id = o.user_id
      WHERE o.event_id = \(event) AND \(Event.isHosted(event, by: host)) AND \(User.visible("u.id", to: host))
      ORDER BY o.offered_at, o.id
      """)
    // No row: the event has no offers, or the user is not a host.
    if rows.isEmpty { try await Event.checkHosts(event, host, in: database) }
    return try rows.map { HostOffer(person: try Person(row: $0), offeredAt: try $0["offered_at"]) }
  }
}

extension HostOffer: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.hostOffer(user: person, offeredAt: offeredAt)
  }
}
