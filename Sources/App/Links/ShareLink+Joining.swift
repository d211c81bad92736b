import Postgres

/// Becoming a guest through a link.
extension ShareLink {
  /// The event that a link leads to.
  ///
  /// - Throws: ``AppError/linkNotFound``, including for a link that was revoked.
  static func event(of token: (id: ID, kid: String), in database: some Querying) async throws -> Event.ID {
    let event: Event.ID? = try await database.value(
      "SELECT event_id FROM share_links WHERE id = \(token.id) AND kid = \(token.kid)")
    guard let event else { throw AppError.linkNotFound }
    return event
  }

  /// Makes a user a guest of an event. They need not be a friend of a host. They get the state `invited`, and answer as
  /// every guest does; until then no one is notified. If the link asks for approval, they get the state `pending`, and
  /// the hosts are notified. A user who is a guest already stays one, even if the link no longer admits anyone.
  ///
  /// - Throws: ``AppError/linkNotFound``, including if the user and a host are hidden from each other, and for a former
  ///   co-host whose role another user has ended.
  static func join(
    _ token: (id: ID, kid: String), to event: Event.ID, by user: User.ID, in change: Change
  ) async throws {
    // The locks keep names from changing, and keep out blocks: the hosts' names enter the guest's lists, and the
    // guest's name enters the guest list.
    let expected: [User.ID] = try await change.rows(Event.hosts(of: event)).map { try $0["user_id"] }
    let locked = try await change.lock(users: expected + [user], for: .share)
    guard locked.contains(user) else { throw AppError.sessionEnded }
    let eventRow = try await change.first(
      """
      SELECT title, \(Event.Phase.columns), \(Event.total) AS total FROM events WHERE id = \(event)
      FOR NO KEY UPDATE
      """)
    guard let eventRow else { throw AppError.linkNotFound }
    let rows = try await change.pipeline(
      """
      SELECT \(columns), coalesce(expires_at <= clock_timestamp(), false) AS is_expired FROM share_links
      WHERE id = \(token.id) AND event_id = \(event) AND kid = \(token.kid)
      """,
      """
      SELECT h.user_id, h.user_id IN (SELECT hidden_id FROM hidden WHERE user_id = \(user)) AS is_hidden
      FROM (\(Event.hosts(of: event))) AS h
      """,
      "SELECT 1 FROM invitations WHERE event_id = \(event) AND user_id = \(user)",
      "SELECT display_name, \(Event.hasRemoved(user, fromHostsOf: event)) AS is_removed FROM users WHERE id = \(user)")
    guard let row = rows[0].first, try !rows[1].contains(where: { try $0["is_hidden"] }) else {
      throw AppError.linkNotFound
    }
    let hosts: [User.ID] = try rows[1].map { try $0["user_id"] }
    // A new host whose row is not locked. The next try locks it.
    guard locked.isSuperset(of: hosts) else { throw AppError.contended }
    guard !hosts.contains(user) else { throw AppError.ownEvent }
    guard rows[2].isEmpty else { return }
    if let person = rows[3].first, try person["is_removed"] { throw AppError.linkNotFound }
    let link = try ShareLink(row: row)
    guard link.settings.kind == .answer else { throw AppError.linkOnlyShows }
    try Event.Phase(row: eventRow).checkIsOpen()
    if try row["is_expired"] { throw AppError.linkExpired }
    let total: Int = try eventRow["total"]
    guard total < Invitation.maximumGuests, link.joined < link.settings.maxGuests ?? .max else {
      throw AppError.linkFull
    }
    try change.write("UPDATE share_links SET joined_count = joined_count + 1 WHERE id = \(link.id)")
    let approval = link.settings.approval
    try Invitation.add([user], as: approval ? .pending : .invited, to: event, beside: total, in: change)
    guard approval, let name: String = try rows[3].first?["display_name"] else { return }
    change.notify(
      hosts,
      about: .answer(
        event, try eventRow["title"], Notice.NamedGuest(id: Guest.ID(user), user: user, name: name),
        Party(status: .pending)))
  }
}

extension AppError {
  static let linkOnlyShows = AppError(
    .forbidden, "link-only-shows", "This link only shows the event. Ask a host for an invitation.")
  static let linkExpired = AppError(.conflict, "link-expired", "This link has expired. Ask a host for another one.")
  static let linkFull = AppError(.conflict, "link-full", "No more guests can join through this link.")
}
