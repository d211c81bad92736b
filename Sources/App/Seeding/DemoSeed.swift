import Foundation
import Postgres

/// The small cast of `Seeds/`: the same ids every time, dates relative to today. Putting it in again moves its events
/// to their days and changes nothing else that anybody did.
public struct DemoSeed: Sendable {
  /// All of the cast log in with it.
  public static let password = "plans-with-friends"
  /// Who the demo is seen as.
  public static let login = "ana"

  private let people: [PersonSeed]
  private let friends: FriendsSeed
  private let events: [EventSeed]

  private struct PersonSeed: Decodable {
    let id: UUID
    let username: String
    let displayName: String
    let bio: String?
  }

  private struct FriendsSeed: Decodable {
    struct Friendship: Decodable {
      let between: [String]
      let days: Int
    }
    struct Request: Decodable {
      let id: UUID
      let from: String
      let to: String
      let days: Int
    }
    let friendships: [Friendship]
    let requests: [Request]
  }

  private struct EventSeed: Decodable {
    struct Place: Decodable {
      let name: String
      let latitude: Double?
      let longitude: Double?
    }
    let id: UUID
    let creator: String
    let title: String
    let note: String?
    /// From today, in the event's zone.
    let day: Int
    /// `HH:mm`
    let time: String
    let minutes: Int?
    let timeZone: String
    let location: Place?
    let capacity: Int?
    let status: String?
    let guests: [String: String]
  }

  public init() throws {
    func read<Value: Decodable>(_ name: String, as: Value.Type = Value.self) throws -> Value {
      try JSONDecoder().decode(Value.self, from: Data((Resources.seeds[name] ?? "").utf8))
    }
    people = try read("people.json")
    friends = try read("friends.json")
    events = try read("events.json")
  }

  /// Puts the cast into the database, in one transaction.
  ///
  /// - Throws: ``AppError`` if a username of the cast belongs to somebody else.
  public func plant(in dependencies: Dependencies, now: Date = Date()) async throws {
    let hash = try await dependencies.passwords.hash(Self.password)
    try await dependencies.database.change { change in
      for person in people { try await plant(person, passwordHash: hash, in: change) }
      try await change.lock(users: people.map { User.ID(rawValue: $0.id) }, for: .share)
      for friendship in friends.friendships { try await plant(friendship, now: now, in: change) }
      for request in friends.requests { try await plant(request, now: now, in: change) }
      for event in events { try await plant(event, now: now, in: change) }
      let ids = people.map(\.id)
      for collection in Collection.allCases { change.touch(collection, ofUsersIn: "SELECT unnest(\(ids))") }
      // Others whom the cast has invited.
      change.touch(
        .events, .invitations,
        ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(events.map(\.id)))")
    }
  }

  private func id(_ username: String) throws -> UUID {
    guard let person = people.first(where: { $0.username == username }) else { throw AppError.userNotFound }
    return person.id
  }

  private func plant(_ person: PersonSeed, passwordHash: String, in change: Change) async throws {
    do {
      try await change.pipeline(
        """
        INSERT INTO users (id, username, email, display_name, bio, password_hash)
        VALUES (
          \(person.id), \(person.username), \(person.username + "@demo.example"), \(person.displayName), \(person.bio),
          \(passwordHash)
        )
        ON CONFLICT (id) DO NOTHING
        """,
        "INSERT INTO user_stamps (user_id) VALUES (\(person.id)) ON CONFLICT DO NOTHING")
    } catch let error as PostgresError where error.constraint == "username_taken" || error.constraint == "email_taken" {
      throw AppError(
        .conflict, "username-taken", "The name \(person.username) of the demo cast belongs to somebody else.")
    }
  }

  private func plant(_ friendship: FriendsSeed.Friendship, now: Date, in change: Change) async throws {
    let pair = try friendship.between.map { try id($0) }
    let since = Timestamp(now).adding(seconds: friendship.days * 86_400)
    // Somebody who ended a friendship of the demo gets it back, unless it was by a block.
    try await change.rows(
      """
      INSERT INTO friendships (user_a, user_b, since)
      SELECT least(\(pair[0]), \(pair[1])), greatest(\(pair[0]), \(pair[1])), \(since)
      WHERE \(User.visible("\(pair[0])", to: User.ID(rawValue: pair[1])))
      ON CONFLICT DO NOTHING
      """)
  }

  private func plant(_ request: FriendsSeed.Request, now: Date, in change: Change) async throws {
    let sent = Timestamp(now).adding(seconds: request.days * 86_400)
    let (sender, receiver) = (try id(request.from), try id(request.to))
    try await change.rows(
      """
      INSERT INTO friend_requests (id, sender_id, receiver_id, created_at)
      SELECT \(request.id), \(sender), \(receiver), \(sent)
      WHERE \(User.visible("\(receiver)", to: User.ID(rawValue: sender)))
      ON CONFLICT DO NOTHING
      """)
  }

  private func plant(_ event: EventSeed, now: Date, in change: Change) async throws {
    let creator = try id(event.creator)
    let start = try Self.start(of: event, now: now)
    let plan = Event.Plan(
      title: event.title, note: event.note, startTime: start,
      endTime: event.minutes.map { start.adding(seconds: $0 * 60) }, timeZone: event.timeZone)
    let archivedAt = plan.liveUntil <= Timestamp(now) ? plan.liveUntil : nil
    let remindAt = event.status == Event.Status.cancelled.rawValue ? nil : plan.remindAt(now: Timestamp(now))
    let invitedAt = Timestamp(now).adding(seconds: min(event.day, 0) * 86_400 - 14 * 86_400)
    try await change.rows(
      """
      INSERT INTO events (
        id, creator_id, title, note, start_time, end_time, time_zone, location_name, latitude, longitude, capacity,
        status, live_until, remind_at, archived_at, created_at, updated_at
      )
      VALUES (
        \(event.id), \(creator), \(plan.title), \(plan.note), \(plan.startTime), \(plan.endTime), \(plan.timeZone),
        \(event.location?.name), \(event.location?.latitude), \(event.location?.longitude),
        \(event.capacity.map(Int32.init)), \(event.status ?? "scheduled"), \(plan.liveUntil), \(remindAt),
        \(archivedAt), \(invitedAt), \(invitedAt)
      )
      ON CONFLICT (id) DO UPDATE
      SET start_time = excluded.start_time, end_time = excluded.end_time, live_until = excluded.live_until,
        remind_at = CASE WHEN events.status = 'scheduled' THEN excluded.remind_at END,
        archived_at = excluded.archived_at
      """)
    // It may have been over when its host blocked a guest, who stayed.
    let gone = try await change.rows(
      """
      DELETE FROM invitations
      WHERE event_id = \(event.id) AND user_id IN (SELECT hidden_id FROM hidden WHERE user_id = \(creator))
      RETURNING user_id
      """)
    for row in gone { change.touch(.events, .invitations, of: try row["user_id"]) }
    for (guest, status) in event.guests.sorted(by: { $0.key < $1.key }) {
      let answeredAt = status == "invited" ? nil : invitedAt.adding(seconds: 86_400)
      let guestID = try id(guest)
      try await change.rows(
        """
        INSERT INTO invitations (event_id, user_id, status, invited_at, answered_at)
        SELECT \(event.id), \(guestID), \(status), \(invitedAt), \(answeredAt)
        WHERE \(User.visible("\(creator)", to: User.ID(rawValue: guestID)))
        ON CONFLICT DO NOTHING
        """)
    }
    try await change.rows(
      """
      UPDATE events
      SET (invited_count, going_count, maybe_count, declined_count, waitlisted_count) = (
        SELECT count(*) FILTER (WHERE status = 'invited'), count(*) FILTER (WHERE status = 'going'),
          count(*) FILTER (WHERE status = 'maybe'), count(*) FILTER (WHERE status = 'declined'),
          count(*) FILTER (WHERE status = 'waitlisted')
        FROM invitations WHERE event_id = \(event.id)
      )
      WHERE id = \(event.id)
      """)
  }

  private static func start(of event: EventSeed, now: Date) throws -> Timestamp {
    let clock = event.time.split(separator: ":").compactMap { Int($0) }
    var calendar = Calendar(identifier: .gregorian)
    guard let zone = TimeZone(identifier: event.timeZone), clock.count == 2 else {
      throw AppError(.invalid, "invalid-seed", "The event \(event.title) has no valid time.")
    }
    calendar.timeZone = zone
    let today = calendar.startOfDay(for: now)
    guard let day = calendar.date(byAdding: .day, value: event.day, to: today),
      let start = calendar.date(bySettingHour: clock[0], minute: clock[1], second: 0, of: day)
    else { throw AppError(.invalid, "invalid-seed", "The event \(event.title) has no valid time.") }
    return Timestamp(start)
  }
}
