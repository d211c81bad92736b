import Postgres

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
      WHERE o.event_id = \(event) AND o.event_id IN (\(Event.hosted(by: host))) AND \(User.visible("u.id", to: host))
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
