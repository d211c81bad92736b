import Foundation
import Postgres

/// The rows of the demo. Verbs could write them only for new accounts, and no one would gain: planting with them took 141
/// instead of 50 ms, before any row was old. A verb takes place now, so each time in `Seeds/` needs an UPDATE as long as
/// its INSERT here. A verb notifies people. And planting again must do what verbs refuse: bring back a deleted user's name
/// and the id of their event, invite users who are no longer friends, and leave a blocked user out instead of failing.
extension DemoSeed {
  func person(_ username: String?) throws -> PersonSeed {
    guard let person = people.first(where: { $0.username == username }) else { throw AppError.userNotFound }
    return person
  }

  private func id(_ username: String) throws -> UUID { try person(username).id }

  /// - Returns: whether the account is new.
  func plant(_ person: PersonSeed, passwordHash: String, in change: Change) async throws -> Bool {
    do {
      return try await change.pipeline(
        """
        INSERT INTO users (id, username, email, email_verified_at, display_name, bio, password_hash)
        VALUES (
          \(person.id), \(person.username), \(person.email), now(), \(person.displayName), \(person.bio),
          \(passwordHash)
        )
        ON CONFLICT (id) DO NOTHING
        """,
        "INSERT INTO user_stamps (user_id) VALUES (\(person.id)) ON CONFLICT DO NOTHING"
      )[0].affected == 1
    } catch let error as PostgresError where error.constraint == "username_taken" {
      throw AppError(
        .conflict, "username-taken",
        "Another account has the username of the demo user \(person.username). Rename or delete that account.")
    } catch let error as PostgresError where error.constraint == "email_taken" {
      throw AppError(
        .conflict, "email-taken",
        "Another account has the e-mail address of the demo user \(person.username). Use --reset to delete it.")
    }
  }

  func plant(_ block: FriendsSeed.Block, now: Date, in change: Change) throws {
    let since = Timestamp(now).adding(seconds: block.days * 86_400)
    try change.write(
      """
      INSERT INTO blocks (blocker_id, blocked_id, created_at)
      VALUES (\(try id(block.blocker)), \(try id(block.blocked)), \(since))
      ON CONFLICT DO NOTHING
      """)
  }

  func plant(_ friendship: FriendsSeed.Friendship, now: Date, in change: Change) throws {
    let pair = try friendship.between.map { try id($0) }
    let since = Timestamp(now).adding(seconds: friendship.days * 86_400)
    try change.write(
      """
      INSERT INTO friendships (user_a, user_b, since)
      SELECT least(\(pair[0]), \(pair[1])), greatest(\(pair[0]), \(pair[1])), \(since)
      WHERE \(User.visible("\(pair[0])", to: User.ID(rawValue: pair[1])))
      ON CONFLICT DO NOTHING
      """)
  }

  func plant(_ request: FriendsSeed.Request, now: Date, in change: Change) throws {
    let sent = Timestamp(now).adding(seconds: request.days * 86_400)
    let (sender, receiver) = (try id(request.from), try id(request.to))
    try change.write(
      """
      INSERT INTO friend_requests (id, sender_id, receiver_id, created_at)
      SELECT \(request.id), \(sender), \(receiver), \(sent)
      WHERE \(User.visible("\(receiver)", to: User.ID(rawValue: sender)))
      ON CONFLICT DO NOTHING
      """)
  }

  func plant(
    _ event: EventSeed, linkKey: String, zones: ZoneDatabase, now: Date, in change: Change
  ) async throws {
    let creator = try id(event.creator)
    let plan = try plan(of: event, zones: zones, now: now)
    let offsets = Event.Offsets(plan, in: try Self.zone(of: event, in: zones), rules: zones.version)
    let archivedAt = plan.liveUntil <= Timestamp(now) ? plan.liveUntil : nil
    let remindAt = event.status == Event.Status.cancelled.rawValue ? nil : plan.remindAt(now: Timestamp(now))
    let invitedAt = invitedAt(event, now: now)
    let results = try await change.pipeline(
      """
      UPDATE events
      SET start_time = \(plan.startTime), end_time = \(plan.endTime), live_until = \(plan.liveUntil),
        answer_by = answer_by + (\(plan.startTime)::timestamptz - start_time),
        start_offset = \(Int32(offsets.start)), end_offset = \(offsets.end.map(Int32.init)),
        answer_by_offset = CASE WHEN answer_by IS NOT NULL THEN \(Int32(offsets.answerBy ?? offsets.start)) END,
        zone_rules = \(offsets.rules),
        remind_at = CASE WHEN status = 'scheduled' THEN \(remindAt) END, archived_at = \(archivedAt)
      WHERE id = \(event.id)
      """,
      """
      INSERT INTO events (
        id, creator_id, \(Event.Plan.columns.list), status, live_until, remind_at, archived_at, created_at, updated_at,
        \(Event.Offsets.columns.list)
      )
      VALUES (
        \(event.id), \(creator), \(Event.Plan.columns.values(of: plan)), \(event.status ?? "scheduled"),
        \(plan.liveUntil), \(remindAt), \(archivedAt), \(invitedAt), \(invitedAt),
        \(Event.Offsets.columns.values(of: offsets))
      )
      ON CONFLICT (id) DO NOTHING
      """)
    if results[1].affected == 1 {
      try plantGuests(of: event, linkKey: linkKey, now: now, in: change)
      try plantHosts(of: event, invitedAt: invitedAt, linkKey: linkKey, in: change)
    }
    // Users who have blocked each other get no places and roles, and lose those that they kept while the event was
    // over.
    let eventID = Event.ID(rawValue: event.id)
    try await Event.partHosts(of: [eventID], in: change)
    try await Guest.leave(
      invitees: "i.event_id = \(eventID) AND \(Event.hides("i.user_id", fromHostsOf: eventID))", by: .block, in: change)
  }

  /// Only for a new event. Guests who have left an existing one stay away, and others may have their places.
  private func plantGuests(
    of event: EventSeed, linkKey: String, now: Date, in change: Change
  ) throws {
    let creator = try id(event.creator)
    let invitedAt = invitedAt(event, now: now)
    // A day later, or halfway to now if they were invited less than two days ago.
    let halfway = Int(Timestamp(now).microseconds - invitedAt.microseconds) / 2_000_000
    for (guest, status) in event.guests.sorted(by: { $0.key < $1.key }) {
      let answeredAt = status == "invited" ? nil : invitedAt.adding(seconds: min(86_400, halfway))
      let guestID = try id(guest)
      try change.write(
        """
        INSERT INTO invitations (event_id, user_id, status, plus_ones, invited_at, answered_at)
        SELECT \(event.id), \(guestID), \(status), \(Int32(event.plusOnes?[guest] ?? 0)), \(invitedAt), \(answeredAt)
        WHERE \(User.visible("\(creator)", to: User.ID(rawValue: guestID)))
        """)
    }
    try plantVisitors(of: event, invitedAt: invitedAt, linkKey: linkKey, in: change)
    try change.write(
      """
      UPDATE events AS e
      SET \(Invitation.Status.allCases.map { "\($0.count) = sums.\($0.count)" as SQL }.joined(separator: ", ")),
        plus_ones_count = sums.plus_ones, visitor_count = sums.visitors
      FROM (
        SELECT \(Invitation.Status.sums), coalesce(sum(plus_ones), 0) AS plus_ones,
          count(*) FILTER (WHERE user_id IS NULL) AS visitors
        FROM event_guests WHERE event_id = \(event.id)
      ) AS sums
      WHERE e.id = \(event.id)
      """)
  }

  func invitedAt(_ event: EventSeed, now: Date) -> Timestamp {
    Timestamp(now).adding(seconds: (event.invited ?? min(event.day, 0) - 14) * 86_400)
  }

  /// - Parameter time: `HH:mm`; nil for the event's own.
  func plan(
    of event: EventSeed, at time: String? = nil, zones: ZoneDatabase, now: Date
  ) throws -> Event.Plan {
    let zone = try Self.zone(of: event, in: zones)
    let start = try Self.time(of: event, on: event.day, at: time ?? event.time, in: zone, now: now)
    return Event.Plan(
      title: event.title, note: event.note, startTime: start,
      endTime: event.minutes.map { start.adding(seconds: $0 * 60) }, timeZone: event.timeZone,
      location: event.location.map { Event.Location(name: $0.name, latitude: $0.latitude, longitude: $0.longitude) },
      url: event.url, capacity: event.capacity,
      answerBy: try event.answerDay.map { try Self.time(of: event, on: $0, at: event.time, in: zone, now: now) },
      maxPlusOnes: event.maxPlusOnes ?? 0)
  }

  private static func zone(of event: EventSeed, in zones: ZoneDatabase) throws -> Zone {
    guard let zone = zones[event.timeZone] else {
      throw AppError.invalidSeed("The time zone of the event \(event.title) is unknown.")
    }
    return zone
  }

  private static func time(
    of event: EventSeed, on day: Int, at time: String, in zone: Zone, now: Date
  ) throws -> Timestamp {
    let clock = time.split(separator: ":").compactMap { Int($0) }
    guard clock.count == 2, (0..<24).contains(clock[0]), (0..<60).contains(clock[1]) else {
      throw AppError.invalidSeed("The event \(event.title) has no valid time.")
    }
    let today = zone.reading(at: Timestamp(now)).day
    let seconds = (today.days + day) * 86_400 + clock[0] * 3600 + clock[1] * 60
    return zone.time(showing: LocalTimestamp(microseconds: Int64(seconds) * 1_000_000)).time
  }
}

extension AppError {
  static func invalidSeed(_ message: String) -> AppError { AppError(.invalid, "invalid-seed", message) }
}
