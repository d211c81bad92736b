import Postgres

/// The waiting list, which invitees and visitors share.
extension Guest {
  /// Who caused a promotion.
  enum Cause {
    case user(User.ID)
    /// A visitor, or the end of a visitor's answer. No user needs to be left out.
    case visitor
    /// A block, which hosts must not notice.
    case block
  }

  /// Promotes after a guest's answer, if it may have freed places. A party that waited and leaves or shrinks may have
  /// been the one that did not fit.
  ///
  /// - Parameter places: as they were before the answer.
  static func promoteWaiting(
    at event: Event.ID, after old: Party, _ places: Event.Places, by cause: Cause, in change: Change
  ) async throws {
    guard places.waiting > 0, old.status == .going || old.status == .waitlisted else { return }
    try await promoteWaiting(at: [event], by: cause, in: change)
  }

  /// Gives the free places of events to the parties that have waited longest, up to the first party that does not fit.
  /// Parties that are larger than the whole event are skipped. An event that is over promotes no one: a notice after the
  /// event would be wrong. The caller holds the locks on the events.
  ///
  /// - Parameter cause: hosts are notified of promotions that they did not cause.
  static func promoteWaiting(at events: [Event.ID], by cause: Cause, in change: Change) async throws {
    let promoted = try await change.rows(promoting(at: events))
    guard !promoted.isEmpty else { return }
    var actor: User.ID?
    if case .user(let user) = cause { actor = user }
    for row in promoted {
      let guest = Notice.NamedGuest(id: try row["id"], user: try row["user_id"], name: try row["name"])
      let (event, title): (Event.ID, String) = (try row["event_id"], try row["title"])
      let plusOnes: Int = try row["plus_ones"]
      if let user = guest.user {
        change.touch(.events, .invitations, of: user)
        // A guest who brings fewer people than before, and so finds room, sees it in the response.
        if user != actor { change.notify(user, about: .waitlistPromoted(event, title, guest: user, with: plusOnes)) }
      } else {
        change.mail(.visitors(.promoted, at: event, only: guest.id))
      }
      if case .block = cause { continue }
      change.notify(
        try row["hosts"] as [User.ID], about: .guestPromoted(event, title, guest, with: plusOnes, by: actor))
    }
    Invitation.touchWhoSeesCounts(of: events, in: change)
  }

  /// A statement that promotes, and returns the promoted in the order of their notices.
  private static func promoting(at events: [Event.ID]) -> SQL {
    """
    WITH promoted AS MATERIALIZED (
      SELECT e.id AS event_id, e.title, first.id, first.user_id, first.name, first.plus_ones
      FROM events AS e
      CROSS JOIN LATERAL (
        SELECT id, user_id, name, plus_ones, sum(1 + plus_ones) OVER (ORDER BY answered_at, id) AS places
        FROM (
          SELECT id, user_id, name, plus_ones, answered_at FROM event_guests
          WHERE event_id = e.id AND status = 'waitlisted' AND (e.capacity IS NULL OR plus_ones < e.capacity)
          ORDER BY answered_at, id
          -- Each party needs a place at least, so a long list is read only as far as it can matter.
          LIMIT greatest(coalesce(e.capacity - e.going_count, e.waitlisted_count), 0)
        ) AS line
      ) AS first
      WHERE e.id = ANY(\(events)) AND NOT \(Event.Phase.isOver("e"))
        AND (e.capacity IS NULL OR e.going_count + first.places <= e.capacity)
    ),
    invitees AS (
      UPDATE invitations AS i SET status = 'going'
      FROM promoted AS p
      WHERE i.event_id = p.event_id AND i.user_id = p.user_id
    ),
    visiting AS (
      UPDATE visitors AS v SET status = 'going'
      FROM promoted AS p
      WHERE p.user_id IS NULL AND v.id = p.id
    ),
    counted AS (
      UPDATE events AS e
      SET waitlisted_count = e.waitlisted_count - sums.places, going_count = e.going_count + sums.places
      FROM (SELECT event_id, sum(1 + plus_ones) AS places FROM promoted GROUP BY event_id) AS sums
      WHERE e.id = sums.event_id
    )
    SELECT p.event_id, p.title, p.id, p.user_id, coalesce(p.name, u.display_name) AS name, p.plus_ones,
      ARRAY(SELECT user_id FROM event_hosts WHERE event_id = p.event_id) AS hosts
    FROM promoted AS p
    LEFT JOIN users AS u ON u.id = p.user_id
    ORDER BY p.event_id, p.id
    """
  }
}
