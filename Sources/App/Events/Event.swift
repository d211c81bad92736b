import Foundation
import Postgres

/// Something that somebody plans and invites friends to.
public struct Event: Sendable {
  public typealias ID = Identifier<Event>

  enum Status: String, SQLValue {
    case scheduled, cancelled
  }

  struct Location: Sendable, Equatable {
    let name: String
    let latitude: Double?
    let longitude: Double?
  }

  /// What its creator decides.
  struct Plan: Sendable, Equatable {
    var title: String
    var note: String?
    var startTime: Timestamp
    var endTime: Timestamp?
    var timeZone: String
    var location: Location?
    var capacity: Int?

    /// A day after its end, when it leaves the live lists. Without an end it counts six hours.
    var liveUntil: Timestamp { (endTime ?? startTime.adding(seconds: 6 * 3600)).adding(seconds: 86_400) }

    /// An hour before the start, when who is going is reminded of it; nil if that has passed.
    func remindAt(now: Timestamp = .now()) -> Timestamp? {
      let time = startTime.adding(seconds: -Event.reminderLead)
      return time > now ? time : nil
    }

    /// Its parts: the API's names, and words for people.
    static let parts: [(field: String, word: String)] = [
      ("title", "the title"), ("note", "the note"), ("startTime", "the time"), ("endTime", "the end"),
      ("timeZone", "the time zone"), ("location", "the place"), ("capacity", "the number of places"),
    ]

    /// The parts in which this plan differs from an older one.
    func differences(from old: Plan) -> [Notice.FieldChange] {
      func change(
        _ field: String, _ part: KeyPath<Plan, some Equatable & JSONWritable & Sendable>
      ) -> Notice.FieldChange? {
        let (before, after) = (old[keyPath: part], self[keyPath: part])
        return before == after ? nil : Notice.FieldChange(field: field, old: before, new: after)
      }
      return [
        change("title", \.title), change("note", \.note), change("startTime", \.startTime),
        change("endTime", \.endTime), change("timeZone", \.timeZone), change("location", \.location),
        change("capacity", \.capacity),
      ].compactMap { $0 }
    }
  }

  /// How many invitations are in each state.
  struct Counts: Sendable, Equatable {
    var invited = 0
    var going = 0
    var maybe = 0
    var declined = 0
    var waitlisted = 0

    var total: Int { invited + going + maybe + declined + waitlisted }
  }

  /// Up to so many invitations, lists show the counts, and an answer therefore touches everybody's lists. Beyond it one
  /// answer would mean thousands of stamps.
  static let maximumCounted = 200
  static let participantsShown = 20
  /// So many seconds before the start, who is going is reminded of it.
  static let reminderLead = 3600

  let id: ID
  let plan: Plan
  let status: Status
  /// Nil once the account is gone, and for whoever does not see them.
  let creator: Person?
  let version: Int
  let counts: Counts
  let createdAt: Timestamp
  let updatedAt: Timestamp
  /// `creator`, or the state of the reader's invitation.
  let myStatus: String

  init(row: Row) throws {
    id = try row["id"]
    plan = try Plan(row: row)
    status = try row["status"]
    let creatorID: User.ID? = try row["creator_id"]
    creator = try creatorID.map { _ in try Person(row: row, prefix: "creator_") }
    version = try row["version"]
    counts = Counts(
      invited: try row["invited_count"], going: try row["going_count"], maybe: try row["maybe_count"],
      declined: try row["declined_count"], waitlisted: try row["waitlisted_count"])
    createdAt = try row["created_at"]
    updatedAt = try row["updated_at"]
    myStatus = try row["my_status"]
  }

  /// The columns of `events AS e`, of its creator as `users AS c`, and `my_status` of a relation `m`.
  static let columns: SQL = """
    e.id, e.title, e.note, e.start_time, e.end_time, e.time_zone, e.location_name, e.latitude, e.longitude, e.capacity,
    e.status, e.version, e.invited_count, e.going_count, e.maybe_count, e.declined_count, e.waitlisted_count,
    e.created_at, e.updated_at, m.my_status,
    \(Person.columns("c", prefix: "creator_"))
    """

  /// How many are invited, of columns of `events`.
  static let total: SQL = "(invited_count + going_count + maybe_count + declined_count + waitlisted_count)"

  /// The events that a user has created or is invited to.
  static func visible(to user: User.ID) -> SQL {
    """
    (
      SELECT id AS event_id, 'creator' AS my_status FROM events WHERE creator_id = \(user)
      UNION ALL
      SELECT event_id, status FROM invitations WHERE user_id = \(user)
    ) AS m
    JOIN events AS e ON e.id = m.event_id
    LEFT JOIN users AS c ON c.id = e.creator_id AND \(User.visible("c.id", to: user))
    """
  }

  // MARK: Reading

  /// An event without its participants, for the same readers.
  static func find(withoutGuests id: ID, for user: User.ID, in database: some Querying) async throws -> Event {
    let row = try await database.first("SELECT \(columns) FROM \(visible(to: user)) WHERE e.id = \(id)")
    guard let row else { throw AppError.eventNotFound }
    return try Event(row: row)
  }

  /// Whether somebody may see an event, as a condition in SQL: its creator and those invited may.
  static func isVisible(_ id: ID, to user: User.ID) -> SQL {
    """
    EXISTS (
      SELECT 1 FROM events WHERE id = \(id) AND creator_id = \(user)
      UNION ALL
      SELECT 1 FROM invitations WHERE event_id = \(id) AND user_id = \(user)
    )
    """
  }

  /// The live ones by start, or the archived ones, latest first.
  static func list(
    archived: Bool, of user: User.ID, page: Page, in database: some Querying
  ) async throws -> List<Event> {
    let query = Keyset(
      list: archived ? .pastEvents : .events, columns: columns,
      source: "\(visible(to: user)) WHERE e.archived_at IS \(unescaped: archived ? "NOT NULL" : "NULL")",
      time: "e.start_time", id: "e.id", order: archived ? .descending : .ascending)
    if archived { return try await List.read(page: page, query: query, in: database, item: Event.init(row:)) }
    return try await List.read(.events, of: user, page: page, query: query, in: database, item: Event.init(row:))
  }

  // MARK: Writing

  /// Makes an event and invites friends to it, all or none.
  static func create(
    _ id: ID, _ plan: Plan, inviting guests: [User.ID], by creator: User.ID, in change: Change
  ) async throws {
    // The host's name enters the guests' lists, and theirs the guest list.
    guard try await change.lock(users: guests + [creator], for: .share).contains(creator) else {
      throw AppError.sessionEnded
    }
    try change.write(
      """
      INSERT INTO events (
        id, creator_id, title, note, start_time, end_time, time_zone, location_name, latitude, longitude, capacity,
        live_until, remind_at
      )
      VALUES (
        \(id), \(creator), \(plan.title), \(plan.note), \(plan.startTime), \(plan.endTime), \(plan.timeZone),
        \(plan.location?.name), \(plan.location?.latitude), \(plan.location?.longitude), \(plan.capacity.map(Int32.init)),
        \(plan.liveUntil), \(plan.remindAt())
      )
      """)
    change.touch(.events, of: creator)
    try await Invitation.invite(
      guests, named: "inviteeIds", to: id, titled: plan.title, beside: 0, by: creator, in: change)
  }

  /// Changes an event that the creator may still change; an unchanged plan changes nothing.
  ///
  /// - Parameter version: refused with 412 if the event has been edited since.
  static func edit(
    _ id: ID, by creator: User.ID, ifVersion version: Int?, in change: Change,
    _ edit: @Sendable (Plan) throws -> Plan
  ) async throws {
    let row = try await lock(id, by: creator, in: change)
    try checkIsOpen(row)
    if let version, try row["version"] != version { throw AppError.lostUpdate }
    let old = try Plan(row: row)
    let new = try edit(old)
    let differences = new.differences(from: old)
    guard !differences.isEmpty else { return }
    // Of a start that has not moved nobody is reminded twice.
    let remindAt: SQL = new.startTime == old.startTime ? "remind_at" : "\(new.remindAt())"
    try change.write(
      """
      UPDATE events
      SET title = \(new.title), note = \(new.note), start_time = \(new.startTime), end_time = \(new.endTime),
        time_zone = \(new.timeZone), location_name = \(new.location?.name), latitude = \(new.location?.latitude),
        longitude = \(new.location?.longitude), capacity = \(new.capacity.map(Int32.init)),
        live_until = \(new.liveUntil), remind_at = \(remindAt), version = version + 1, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    change.touch(.events, of: creator)
    change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: id))
    change.notify(
      usersIn: Invitation.guestsComing(to: id), about: .eventUpdated(id, new.title, differences, by: creator))
    // Nobody was promoted while it was over; put off, it is not over any more.
    if new.capacity != old.capacity || new.liveUntil > old.liveUntil {
      try await Invitation.promoteWaiting(at: [id], by: creator, in: change)
    }
  }

  /// Cancels an event that is still to be, for good: it stays readable, and nothing of it changes any more. Everybody
  /// invited who has not declined is told. Repeating it changes nothing.
  ///
  /// - Parameter version: refused with 412 if the event has been edited since.
  static func cancel(_ id: ID, by creator: User.ID, ifVersion version: Int?, in change: Change) async throws {
    let row = try await lock(id, by: creator, in: change)
    // Asked for again because the answer was lost, it names the version from before.
    if try row["status"] == Status.cancelled { return }
    try checkIsOpen(row)
    if let version, try row["version"] != version { throw AppError.lostUpdate }
    try change.write(
      """
      UPDATE events
      SET status = 'cancelled', remind_at = NULL, version = version + 1, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    change.touch(.events, of: creator)
    change.touch(.events, .invitations, ofUsersIn: Invitation.guests(of: id))
    change.notify(
      usersIn: Invitation.guestsComing(to: id), about: .eventCancelled(id, try row["title"], by: creator))
  }

  /// Invites friends to an event that its creator may still change, all or none. Who is invited already stays as they
  /// are.
  static func invite(_ guests: [User.ID], to id: ID, by creator: User.ID, in change: Change) async throws {
    // The host's name enters the guests' lists, and theirs the guest list.
    guard try await change.lock(users: guests + [creator], for: .share).contains(creator) else {
      throw AppError.sessionEnded
    }
    let row = try await lock(id, by: creator, in: change)
    try checkIsOpen(row)
    try await Invitation.invite(
      guests, named: "userIds", to: id, titled: try row["title"], beside: try row["total"], by: creator, in: change)
  }

  /// Locks an event that its creator is about to change, before anything else is read: who is invited or answers at this
  /// moment waits, or is seen from here on.
  ///
  /// - Returns: its plan's columns, `status`, `version`, `is_archived`, and `total`, the number of invitations.
  static func lock(_ id: ID, by creator: User.ID, in change: Change) async throws -> Row {
    let row = try await change.first(
      """
      SELECT creator_id, title, note, start_time, end_time, time_zone, location_name, latitude, longitude, capacity,
        status, version, archived_at IS NOT NULL AS is_archived, \(total) AS total
      FROM events WHERE id = \(id)
      FOR NO KEY UPDATE
      """)
    guard let row, try (row["creator_id"] as User.ID?) == creator else {
      throw try await refusal(id, for: creator, in: change)
    }
    return row
  }

  /// - Parameter row: a locked one, with `status` and `is_archived`.
  static func checkIsOpen(_ row: Row) throws {
    if try row["status"] == Status.cancelled { throw AppError.eventCancelled }
    if try row["is_archived"] { throw AppError.eventArchived }
  }

  /// Why somebody who is not the creator may not change an event: because it is not theirs, if they may see it at all.
  private static func refusal(_ id: ID, for user: User.ID, in change: Change) async throws -> AppError {
    let invited = try await change.first("SELECT 1 FROM invitations WHERE event_id = \(id) AND user_id = \(user)")
    return invited == nil ? AppError.eventNotFound : AppError.notTheCreator
  }

  /// Reminds who is going, and the host, of the event that is due for it the longest: of one that is still to come.
  /// Whoever is changing one at this moment is not waited for.
  ///
  /// - Returns: false if there is none.
  static func remindOfNext(in change: Change) async throws -> Bool {
    let row = try await change.first(
      """
      SELECT id, title, start_time,
        status = 'scheduled' AND archived_at IS NULL AND start_time > clock_timestamp() AS is_to_come
      FROM events
      WHERE remind_at <= now()
      ORDER BY remind_at, id
      LIMIT 1
      FOR NO KEY UPDATE SKIP LOCKED
      """)
    guard let row else { return false }
    let id: ID = try row["id"]
    try await change.rows("UPDATE events SET remind_at = NULL WHERE id = \(id)")
    if try row["is_to_come"] {
      change.notify(
        usersIn: """
          SELECT user_id FROM invitations WHERE event_id = \(id) AND status = 'going'
          UNION ALL
          SELECT creator_id FROM events WHERE id = \(id)
          """,
        about: .eventReminder(id, try row["title"], start: try row["start_time"]))
    }
    return true
  }

  /// Moves events that ended a day ago from the live lists to the archive: a write like any other, so that no list
  /// changes by the clock alone. No more at once than some 10,000 guests see: their stamps are one statement, which must
  /// end in time.
  ///
  /// - Returns: how many.
  static func archive(endedBefore now: Timestamp, atMost limit: Int, in change: Change) async throws -> Int {
    let rows = try await change.rows(
      """
      SELECT id FROM events
      WHERE archived_at IS NULL AND id IN (
        SELECT id
        FROM (
          SELECT id, sum(guests) OVER (ORDER BY live_until, id) - guests AS before
          FROM (
            SELECT id, live_until, \(total) AS guests
            FROM events
            WHERE archived_at IS NULL AND live_until <= \(now)
            ORDER BY live_until, id
            LIMIT \(limit)
          ) AS due
        ) AS counted
        WHERE before < 10000
      )
      -- Asked again of the row as it is once locked: it may just have been put off.
      AND live_until <= \(now)
      FOR NO KEY UPDATE SKIP LOCKED
      """)
    let ids: [ID] = try rows.map { try $0["id"] }
    guard !ids.isEmpty else { return 0 }
    try await change.rows("UPDATE events SET archived_at = \(now) WHERE id = ANY(\(ids))")
    change.touch(.events, ofUsersIn: "SELECT creator_id FROM events WHERE id = ANY(\(ids))")
    change.touch(.events, .invitations, ofUsersIn: "SELECT user_id FROM invitations WHERE event_id = ANY(\(ids))")
    return ids.count
  }
}

extension Event {
  /// An event with its first participants, as far as the reader sees them, for its creator and those invited; nobody else
  /// learns that it exists.
  struct Detail: Sendable {
    let event: Event
    let participants: [Guest]

    /// One statement: counts and participants are of one snapshot. Of thousands of guests, only those shown are looked up
    /// among the users.
    static func query(_ id: ID, for user: User.ID) -> SQL {
      """
      SELECT \(Event.columns), guest.*
      FROM \(Event.visible(to: user))
      LEFT JOIN LATERAL (
        SELECT \(Guest.columns), i.rank, i.invited_at
        FROM (
          SELECT v.user_id, v.status, v.invited_at, v.answered_at,
            array_position(ARRAY['going', 'maybe', 'waitlisted', 'invited'], v.status) AS rank
          FROM (\(Guest.visible(at: "e.id", to: user))) AS v
          ORDER BY rank, v.invited_at, v.user_id
          LIMIT \(Event.participantsShown)
        ) AS i
        JOIN users AS u ON u.id = i.user_id
      ) AS guest ON true
      WHERE e.id = \(id)
      ORDER BY guest.rank, guest.invited_at, guest.guest_id
      """
    }

    init(rows: Rows) throws {
      guard let row = rows.first else { throw AppError.eventNotFound }
      event = try Event(row: row)
      // An event without guests is one row with nothing in their columns.
      participants = try rows.filter { try ($0["guest_id"] as User.ID?) != nil }.map(Guest.init(row:))
    }
  }

  static func find(_ id: ID, for user: User.ID, in database: some Querying) async throws -> Detail {
    try Detail(rows: try await database.rows(Detail.query(id, for: user)))
  }
}

extension Event.Plan {
  fileprivate init(row: Row) throws {
    title = try row["title"]
    note = try row["note"]
    startTime = try row["start_time"]
    endTime = try row["end_time"]
    timeZone = try row["time_zone"]
    capacity = try row["capacity"]
    let name: String? = try row["location_name"]
    location = try name.map {
      Event.Location(name: $0, latitude: try row["latitude"], longitude: try row["longitude"])
    }
  }
}

extension AppError {
  static let eventNotFound = AppError(.notFound, "event-not-found", "There is no such event.")
  static let notTheCreator = AppError(.forbidden, "not-the-creator", "Only its creator may do this to an event.")
  static let eventCancelled = AppError(.conflict, "event-cancelled", "The event was cancelled and no longer changes.")
  static let eventArchived = AppError(.conflict, "event-archived", "The event is over and no longer changes.")
  static let lostUpdate = AppError(.lostUpdate, "lost-update", "The event was edited since you read it.")
}
