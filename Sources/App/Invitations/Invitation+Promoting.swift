import Postgres

/// The waiting list, which invitees and visitors share.
extension Invitation {
  /// Who caused a promotion.
  enum Cause {
    case user(User.ID)
    /// A visitor, or the end of a visitor's answer. No user needs to be left out.
    case visitor
    /// A block, which hosts must not notice.
    case block
  }

  /// Promotes after a guest's answer, if it may have freed places. A group that waited and leaves or shrinks may have
  /// been the one that did not fit.
  ///
  /// - Parameter places: as they were before the answer.
  static func promoteWaiting(
    at event: Event.ID, after old: Group, _ places: Event.Places, by cause: Cause, in change: Change
  ) async throws {
    guard places.waiting > 0, old.status == .going || old.status == .waitlisted else { return }
    try await promoteWaiting(at: [event], by: cause, in: change)
  }

  /// Gives the free places of events to the groups that have waited longest, up to the first group that does not fit.
  /// Groups that are larger than the whole event are skipped. An event that is over promotes no one: a notice after the
  /// event would be wrong. The caller holds the locks on the events.
  ///
  /// - Parameter cause: hosts are notified of promotions that they did not cause.
  static func promoteWaiting(at events: [Event.ID], by cause: Cause, in change: Change) async throws {
    let promoted = try await change.rows(promoting(at: events)).map(Promoted.init(row:))
    guard !promoted.isEmpty else { return }
    // A guest who is promoted at several events gets the notices in a fixed order.
    let guests = promoted.sorted { ($0.event, $0.id) < ($1.event, $1.id) }
    let moved = try await change.rows(
      """
      UPDATE events AS e
      SET waitlisted_count = e.waitlisted_count - promoted.places, going_count = e.going_count + promoted.places
      FROM (
        SELECT event_id, sum(1 + plus_ones) AS places
        FROM unnest(\(guests.map(\.event)), \(guests.map { Int32($0.plusOnes) })) AS guest (event_id, plus_ones)
        GROUP BY event_id
      ) AS promoted
      WHERE e.id = promoted.event_id
      RETURNING e.id, e.title, ARRAY(SELECT user_id FROM event_hosts WHERE event_id = e.id) AS hosts
      """)
    let plans = try Dictionary(
      uniqueKeysWithValues: moved.map { row -> (Event.ID, (title: String, hosts: [User.ID])) in
        (try row["id"], (try row["title"], try row["hosts"]))
      })
    for guest in guests {
      guard let (title, hosts) = plans[guest.event] else { continue }
      notify(guest, title, hosts, by: cause, in: change)
    }
    touchWhoSeesCounts(of: events, in: change)
  }

  /// A guest who has got a place.
  private struct Promoted {
    let event: Event.ID
    let id: Guest.ID
    let plusOnes: Int
    /// Nil for a visitor.
    let person: Person?
    let name: String

    init(row: Row) throws {
      event = try row["event_id"]
      id = try row["guest_id"]
      plusOnes = try row["plus_ones"]
      let user: User.ID? = try row["id"]
      person = try user.map { _ in try Person(row: row) }
      name = try row["name"]
    }
  }

  private static func notify(
    _ guest: Promoted, _ title: String, _ hosts: [User.ID], by cause: Cause, in change: Change
  ) {
    let (event, plusOnes) = (guest.event, guest.plusOnes)
    var actor: User.ID?
    if case .user(let user) = cause { actor = user }
    if let person = guest.person {
      change.touch(.events, .invitations, of: person.id)
      // A guest who brings fewer people than before, and so finds room, sees it in the response.
      if person.id != actor {
        change.notify(person.id, about: .waitlistPromoted(event, title, guest: person.id, with: plusOnes))
      }
    } else {
      change.mail(.visitors(.promoted, at: event, only: Visitor.ID(rawValue: guest.id.rawValue)))
    }
    if case .block = cause { return }
    change.notify(
      hosts,
      about: guest.person.map { .guestPromoted(event, title, guest: $0, with: plusOnes, by: actor) }
        ?? .visitorPromoted(event, title, guest: guest.id, named: guest.name, with: plusOnes, by: actor))
  }

  /// A statement that promotes, and returns the promoted.
  private static func promoting(at events: [Event.ID]) -> SQL {
    """
    WITH promoted AS MATERIALIZED (
      SELECT e.id AS event_id, first.id, first.user_id
      FROM events AS e
      CROSS JOIN LATERAL (
        SELECT id, user_id, sum(places) OVER (ORDER BY answered_at, id) AS places
        FROM (
          SELECT id, user_id, answered_at, 1 + plus_ones AS places FROM event_guests
          WHERE event_id = e.id AND status = 'waitlisted' AND (e.capacity IS NULL OR plus_ones < e.capacity)
          ORDER BY answered_at, id
          -- Each group needs a place at least, so a long list is read only as far as it can matter.
          LIMIT greatest(coalesce(e.capacity - e.going_count, e.waitlisted_count), 0)
        ) AS line
      ) AS first
      -- An event stays live for a day after its end.
      WHERE e.id = ANY(\(events)) AND e.live_until > clock_timestamp() + interval '24 hours'
        AND (e.capacity IS NULL OR e.going_count + first.places <= e.capacity)
    ),
    invitees AS (
      UPDATE invitations AS i SET status = 'going'
      FROM promoted
      WHERE i.event_id = promoted.event_id AND i.user_id = promoted.user_id
      RETURNING i.event_id, i.user_id, i.plus_ones
    ),
    visiting AS (
      UPDATE visitors AS v SET status = 'going'
      FROM promoted
      WHERE promoted.user_id IS NULL AND v.id = promoted.id
      RETURNING v.event_id, v.id, v.name, v.plus_ones
    )
    SELECT g.event_id, g.guest_id, g.plus_ones, coalesce(g.name, u.display_name) AS name, \(Person.columns("u"))
    FROM (
      SELECT event_id, user_id AS guest_id, user_id, NULL AS name, plus_ones FROM invitees
      UNION ALL
      SELECT event_id, id, NULL, name, plus_ones FROM visiting
    ) AS g
    LEFT JOIN users AS u ON u.id = g.user_id
    """
  }
}
