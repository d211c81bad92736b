import Postgres

/// An event that a user plans and invites friends to.
public struct Event: Sendable {
  public typealias ID = Identifier<Event>

  enum Status: String, SQLValue {
    case scheduled, cancelled
  }

  /// The number of places in each state: one for each guest, and one for each of the guest's plus-ones.
  struct Counts: Sendable, Equatable {
    var invited = 0
    var going = 0
    var maybe = 0
    var declined = 0
    var waitlisted = 0
    /// Parties that wait for a host's approval.
    var pending = 0
    /// The plus-ones in all states.
    var plusOnes = 0

    /// The number of guests.
    var total: Int { invited + going + maybe + declined + waitlisted + pending - plusOnes }
  }

  /// The maximum number of guests with which lists show the counts. Up to it, an answer touches the lists of all
  /// guests. Beyond it, one answer would write thousands of stamps.
  static let maximumCounted = 200
  /// The time from the reminder to the start, in seconds.
  static let reminderLead = 3600

  let id: ID
  let plan: Plan
  let status: Status
  /// Nil if the creator's account is deleted, or if the reader does not see the creator.
  let creator: Person?
  /// The co-hosts whom the reader sees.
  let coHosts: [Person]
  let version: Int
  let counts: Counts
  let createdAt: Timestamp
  let updatedAt: Timestamp
  /// `creator`, `host`, or the state of the reader's invitation.
  let myStatus: String
  let myRole: Role
  /// The number of people whom the reader brings.
  let myPlusOnes: Int
  /// The first guests. Nil in lists, unless the reader asks for them.
  var participants: [Guest]?
  /// The first page of the guest list. Nil unless the reader asks for it.
  var guests: Guest.FirstPage?

  /// Reads the column `event` of ``columns``.
  init(row: Row) throws {
    self = try row["event"]
  }

  /// `id`, `my_status` and `event`: a record of a row `events AS e`, of its creator as `users AS c`, `my_status` and
  /// `my_plus_ones` of a relation `m`, and ``coHosts(seenBy:)``.
  static let columns: SQL = """
    e.id, m.my_status, ROW(
      e.id, \(Plan.columns.list(of: "e")), e.status, \(Person.columns("c")), co.co_hosts, e.version, e.invited_count,
      e.going_count, e.maybe_count, e.declined_count, e.waitlisted_count, e.pending_count, e.plus_ones_count,
      e.created_at, e.updated_at, m.my_status, m.my_plus_ones
    ) AS event
    """

  /// The number of guests, from columns of `events`.
  static let total: SQL = """
    (invited_count + going_count + maybe_count + declined_count + waitlisted_count + pending_count - plus_ones_count)
    """

  /// The live events that a user hosts or is invited to.
  private static func live(for user: User.ID) -> SQL { live(user) }

  private static let live = CompiledSQL { (user: SQLArgument<User.ID>) in
    shown("(\(memberships(of: user, where: isLive)))", to: user)
  }

  /// An event, if a user hosts it or is invited to it.
  private static func one(_ id: some SQLExpression<ID>, for user: some SQLExpression<User.ID>) -> SQL {
    shown("(\(memberships(of: user, where: "event_id = \(id)")))", to: user)
  }

  /// A SQL condition on an event, or on a row of a guest or co-host: whether the event is live. The index of such rows
  /// has these first, so that a read costs as much as a user has live events, whatever their past.
  static let isLive: SQL = "archived_start IS NULL"

  /// A query of `event_id`, `my_status` and `my_plus_ones` of events that a user hosts or is invited to.
  ///
  /// - Parameter condition: on `event_id` or `archived_start`. Without one, the query reads a user's whole past.
  static func memberships(of user: some SQLExpression<User.ID>, where condition: SQL) -> SQL {
    """
    SELECT event_id, role AS my_status, 0 AS my_plus_ones FROM event_hosts WHERE user_id = \(user) AND \(condition)
    UNION ALL
    SELECT event_id, status, plus_ones FROM invitations WHERE user_id = \(user) AND \(condition)
    """
  }

  /// The relations of ``columns``, for a reader.
  ///
  /// `OFFSET 0` keeps the planner from reading all events instead of these: it takes a user with a long past for one
  /// with many live events.
  ///
  /// - Parameter memberships: a relation of `event_id`, `my_status` and `my_plus_ones`.
  static func shown(_ memberships: SQL, to user: some SQLExpression<User.ID>) -> SQL {
    """
    \(memberships) AS m
    CROSS JOIN LATERAL (SELECT * FROM events WHERE id = m.event_id OFFSET 0) AS e
    LEFT JOIN users AS c ON c.id = e.creator_id AND \(User.visible("c.id", to: user))
    CROSS JOIN \(coHosts(seenBy: user))
    """
  }

  /// A relation for ``shown(_:to:)``, with `archived_start`: the latest archived events of a user, at most a page.
  ///
  /// Each part reads its index from the place of the cursor. As a subquery, the limit has no value that the planner
  /// knows, so that it never prefers to read and sort all of a user's past.
  private static func archived(of user: User.ID, _ page: PageRequest) -> SQL {
    let limit = page.limit + 1
    func part(_ columns: SQL, _ id: SQL, from table: SQL) -> SQL {
      let rest: SQL =
        page.cursor.map { cursor -> SQL in "(archived_start, \(id)) < (\(cursor.time), \(cursor.id))" }
        ?? "archived_start IS NOT NULL"
      return """
        (
          SELECT \(id) AS event_id, \(columns), archived_start FROM \(table) = \(user) AND \(rest)
          ORDER BY archived_start DESC, \(id) DESC
          LIMIT (SELECT \(limit))
        )
        """
    }
    return """
      (
        \(part("'creator' AS my_status, 0 AS my_plus_ones", "id", from: "events WHERE creator_id"))
        UNION ALL
        \(part("'host', 0", "event_id", from: "event_co_hosts WHERE user_id"))
        UNION ALL
        \(part("status, plus_ones", "event_id", from: "invitations WHERE user_id"))
        ORDER BY archived_start DESC, event_id DESC
        LIMIT (SELECT \(limit))
      )
      """
  }

  // MARK: Reading

  /// An event without its participants. Only its hosts and its guests can read it.
  static func find(withoutGuests id: ID, for user: User.ID, in database: some Querying) async throws -> Event {
    let row = try await database.first("SELECT \(columns) FROM \(one(id, for: user))")
    guard let row else { throw AppError.eventNotFound }
    return try Event(row: row)
  }

  /// A SQL condition: whether a user may see an event, as a host or as a guest.
  static func isVisible(_ id: ID, to user: User.ID) -> SQL {
    "\(myStatus(of: user, at: id)) IS NOT NULL"
  }

  /// A SQL value: `creator`, `host`, or the state of a user's invitation. NULL if the user is none of these.
  static func myStatus(of user: User.ID, at id: ID) -> SQL { myStatus(of: user, atEvent: "\(id)") }

  static func myStatus(of user: User.ID, atEvent id: SQL) -> SQL {
    """
    (
      SELECT role FROM event_hosts WHERE event_id = \(id) AND user_id = \(user)
      UNION ALL
      SELECT status FROM invitations WHERE event_id = \(id) AND user_id = \(user)
      LIMIT 1
    )
    """
  }

  /// The live events by start, or the archived events by start, latest first.
  ///
  /// - Parameter showsParticipants: adds the first participants. Phones do not keep this list, so it has no stamp.
  static func list(
    archived: Bool, of user: User.ID, showsParticipants: Bool = false, page: PageRequest, in database: some Querying
  ) async throws -> List<Event> {
    let query =
      archived
      ? Keyset(
        list: .pastEvents, columns: columns,
        source: "\(shown(Self.archived(of: user, page), to: user)) WHERE true", time: "m.archived_start",
        id: "m.event_id", order: .descending, isCut: true)
      : Keyset(
        list: .events, columns: columns, source: "\(live(for: user)) WHERE true", time: "e.start_time", id: "e.id",
        order: .ascending)
    if showsParticipants {
      return try await List.read(page: page, query: query, in: database) {
        withParticipants($0, order: $1, atMost: participantsListed, for: user)
      } item: {
        try Event(withParticipants: $0)
      }
    }
    if archived { return try await List.read(page: page, query: query, in: database, item: Event.init(row:)) }
    return try await List.read(.events, of: user, page: page, query: query, in: database, item: Event.init(row:))
  }

  /// Those of some events that a user may see, in the given order.
  static func these(
    _ ids: [ID], for user: User.ID, showsParticipants: Bool = false, in database: some Querying
  ) async throws -> [Event] {
    // Each is looked up by both ids.
    let memberships = memberships(of: user, where: "event_id = wanted.id")
    let wanted: SQL = """
      (
        SELECT m.* FROM (SELECT DISTINCT unnest(\(ids)) AS id) AS wanted CROSS JOIN LATERAL (\(memberships)) AS m
      )
      """
    let events: SQL = "SELECT \(columns) FROM \(shown(wanted, to: user))"
    guard showsParticipants else {
      return try await database.rows("\(events) ORDER BY array_position(\(ids), e.id)").map(Event.init(row:))
    }
    let rows = try await database.pipeline(
      readingInOrder,
      withParticipants(events, order: "array_position(\(ids), event.id)", atMost: participantsListed, for: user))[1]
    return try rows.map { try Event(withParticipants: $0) }
  }

  // MARK: Writing

  /// Creates an event and invites friends to it, all or none.
  ///
  /// - Returns: false if the user has created an event with this id before. Nothing happens then.
  /// - Throws: ``AppError/idTaken`` if another event has the id, or had it.
  static func create(
    _ id: NewID<Event>, _ plan: Plan, _ offsets: Offsets, inviting guests: [User.ID], by creator: User.ID,
    in change: Change
  ) async throws -> Bool {
    // The locks keep names from changing: the host's name enters the guests' lists, and the guests' names enter the
    // guest list.
    guard try await change.lock(users: guests + [creator], for: .share).contains(creator) else {
      throw AppError.sessionEnded
    }
    return try await insert(id, plan, offsets, inviting: guests, by: creator, in: change)
  }

  /// Inserts an event and invites friends to it. The caller holds the locks on all these users.
  ///
  /// - Returns: false if the user has created an event with this id before.
  static func insert(
    _ id: NewID<Event>, _ plan: Plan, _ offsets: Offsets, inviting guests: [User.ID], by creator: User.ID,
    in change: Change
  ) async throws -> Bool {
    let insertion: SQL = """
      INSERT INTO events (
        id, creator_id, \(Plan.columns.list), live_until, remind_at, \(Offsets.columns.list)
      )
      VALUES (
        \(id.value), \(creator), \(Plan.columns.values(of: plan)), \(plan.liveUntil), \(plan.remindAt()),
        \(Offsets.columns.values(of: offsets))
      )
      """
    if id.isGiven {
      // A request with the same id may run at this moment. The insert waits for it at the primary key.
      while true {
        let results = try await change.pipeline(
          "\(insertion) ON CONFLICT (id) DO NOTHING", SpentID.finding(id.value, .event))
        // The error also rolls the event back.
        guard results[1].isEmpty else { throw AppError.idTaken }
        if results[0].affected == 1 { break }
        if try await isCreated(id.value, by: creator, in: change) { return false }
      }
    } else {
      try change.write(insertion)
    }
    change.touch(.events, of: creator)
    try await Invitation.invite(
      guests, named: "inviteeIds", to: id.value, titled: plan.title, beside: 0, by: creator, in: change)
    return true
  }

  /// Whether a user has created the event with an id that the user's client has made.
  ///
  /// - Returns: false if there is no such event.
  /// - Throws: ``AppError/idTaken`` if it is not the user's.
  static func isCreated(_ id: ID, by creator: User.ID, in database: some Querying) async throws -> Bool {
    guard let row = try await database.first("SELECT creator_id FROM events WHERE id = \(id)") else {
      try await SpentID.check(id, .event, by: creator, in: database)
      return false
    }
    guard try (row["creator_id"] as User.ID?) == creator else { throw AppError.idTaken }
    return true
  }

  /// Invites friends of a host to an open event, all or none. Existing invitations stay unchanged.
  static func invite(_ guests: [User.ID], to id: ID, by host: User.ID, in change: Change) async throws {
    // The locks keep names from changing: the host's name enters the guests' lists, and the guests' names enter the
    // guest list.
    guard try await change.lock(users: guests + [host], for: .share).contains(host) else {
      throw AppError.sessionEnded
    }
    let row = try await lock(id, by: host, in: change)
    try Phase(row: row).checkIsOpen()
    try await Invitation.invite(
      guests, named: "userIds", to: id, titled: try row["title"], beside: try row["total"], by: host, in: change)
  }
}

extension Event: SQLRecord {
  public init(fields: inout SQLFields) throws {
    id = try fields.next()
    plan = try Plan(fields: &fields)
    status = try fields.next()
    creator = try Person.orNil(&fields)
    coHosts = try fields.next()
    version = try fields.next()
    counts = Counts(
      invited: try fields.next(), going: try fields.next(), maybe: try fields.next(), declined: try fields.next(),
      waitlisted: try fields.next(), pending: try fields.next(), plusOnes: try fields.next())
    createdAt = try fields.next()
    updatedAt = try fields.next()
    myStatus = try fields.next()
    myRole = Role(status: myStatus)
    myPlusOnes = try fields.next()
  }
}

extension AppError {
  static let eventNotFound = AppError(.notFound, "event-not-found", "There is no such event.")
  static let notTheCreator = AppError(.forbidden, "not-the-creator", "Only the creator of the event may do this.")
  static let notAHost = AppError(.forbidden, "not-a-host", "Only the hosts of the event may do this.")
}

/// Events with their first participants, as the reader sees them.
extension Event {
  /// How many participants a single event has, and how many an event in a list.
  static let participantsShown = 20
  static let participantsListed = 5

  /// Adds the first participants of each event to a query of events.
  ///
  /// One statement, so that counts and participants come from one snapshot. The indexes `invitations_in_order` and
  /// `visitors_in_order` have the order, so that an event with thousands of guests costs as much as one with a few.
  ///
  /// - Parameters:
  ///   - events: a query for ``columns``.
  ///   - order: the order of the events. It calls the query `event`.
  static func withParticipants(
    _ events: SQL, order: SQL, atMost limit: Int, for user: some SQLExpression<User.ID>
  ) -> SQL {
    """
    SELECT event.*, ARRAY(
      SELECT \(Guest.record)
      FROM (
        SELECT v.id, v.user_id, v.name, v.status, v.plus_ones, v.since, v.answered_at,
          array_position(ARRAY['going', 'maybe', 'waitlisted', 'invited'], v.status) AS rank
        FROM (\(Guest.visible(at: "event.id", to: user, withStatus: "event.my_status"))) AS v
        ORDER BY rank, v.since, v.id
        LIMIT \(unescaped: "\(limit)")
      ) AS i
      LEFT JOIN users AS u ON u.id = i.user_id
      ORDER BY i.rank, i.since, i.id
    ) AS participants
    FROM (\(events)) AS event
    ORDER BY \(order)
    """
  }

  /// Makes a statement with participants, in the same transaction, read them in the order of the indexes. The planner
  /// expects few guests for an event, and would read and sort all of them.
  static let readingInOrder: SQL = """
    SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)
    """

  /// - Parameter row: a row of ``withParticipants(_:order:atMost:for:)``.
  init(withParticipants row: Row) throws {
    self = try Event(row: row)
    participants = try row["participants"]
  }

  /// A query for an event with its first participants. Only its hosts and its guests can read it. For all other users
  /// it does not exist.
  static func detail(_ id: ID, for user: User.ID) -> SQL { detail(id, user) }

  private static let detail = CompiledSQL { (id: SQLArgument<ID>, user: SQLArgument<User.ID>) in
    withParticipants(
      "SELECT \(columns) FROM \(one(id, for: user))", order: "event.id", atMost: participantsShown, for: user)
  }

  /// The ids of all users and visitors whom the event shows.
  var shownIDs: [Guest.ID] {
    hosts.map { Guest.ID($0.id) } + (participants ?? []).map(\.id)
  }

  /// - Parameter rows: the result of ``detail(_:for:)``.
  /// - Throws: ``AppError/eventNotFound``
  init(detail rows: Rows) throws {
    guard let row = rows.first else { throw AppError.eventNotFound }
    self = try Event(withParticipants: row)
  }

  static func find(_ id: ID, for user: User.ID, in database: some Querying) async throws -> Event {
    try Event(detail: try await database.rows(detail(id, for: user)))
  }
}

/// An event with the first page of its guest list: a screen that a phone keeps.
extension Event {
  /// The entity tag of an event with its guests, for this reader; nil if the user does not see the event, or if it is
  /// archived.
  static func tag(
    of id: ID, for user: User.ID, digests: ItemDigests, in database: some Querying
  ) async throws -> String? {
    let row = try await database.first(
      "SELECT \(validator(for: user)) FROM events AS e WHERE e.id = \(id) AND \(isVisible(id, to: user))")
    return try row.flatMap { try tag($0, of: id, for: user, digests) }
  }

  /// Event, guests and tag come from one statement, and so from one snapshot.
  static func find(
    withGuests id: ID, for user: User.ID, digests: ItemDigests, in database: some Querying
  ) async throws -> (event: Event, tag: String?) {
    let event = withParticipants(
      "SELECT \(columns), \(validator(for: user)) FROM \(one(id, for: user))", order: "event.id",
      atMost: participantsShown, for: user)
    let rows = try await database.rows(
      """
      SELECT *, ARRAY(\(Guest.firstPage(at: "detail.id", to: user, withStatus: "detail.my_status"))) AS guests
      FROM (\(event)) AS detail
      """)
    guard let row = rows.first else { throw AppError.eventNotFound }
    var found = try Event(withParticipants: row)
    found.guests = try Guest.FirstPage(row: row)
    return (found, try tag(row, of: id, for: user, digests))
  }

  /// Everything that an event shows moves its stamp, except blocks: a stamp that they moved would tell every reader of
  /// them. An archived event has no stamp: names and pictures that change later no longer move it.
  private static func validator(for user: User.ID) -> SQL {
    """
    CASE WHEN e.archived_at IS NULL THEN e.stamp END AS stamp,
    ARRAY(
      SELECT h.hidden_id FROM hidden AS h
      WHERE h.user_id = \(user) AND (
        EXISTS (SELECT FROM invitations AS i WHERE i.event_id = e.id AND i.user_id = h.hidden_id)
        OR EXISTS (SELECT FROM event_hosts AS o WHERE o.event_id = e.id AND o.user_id = h.hidden_id)
      )
      ORDER BY h.hidden_id
    ) AS hidden
    """
  }

  /// The stamp, and a digest of the hosts and guests whom a block hides from the reader. Without the server's key, a
  /// reader could find out who they are.
  ///
  /// - Parameter row: a row with ``validator(for:)``.
  private static func tag(_ row: Row, of id: ID, for user: User.ID, _ digests: ItemDigests) throws -> String? {
    guard let stamp: Timestamp = try row["stamp"] else { return nil }
    let hidden: [User.ID] = try row["hidden"]
    let text = "\(id) \(user) \(hidden.map(\.description).joined(separator: " "))"
    return "\"\(stamp.microseconds)-\(digests.digest(of: Array(text.utf8)))\""
  }

  /// The newest stamp in the tags of an event with its guests. Nil if there is none among them.
  static func newestStamp(in tags: EntityTags) -> Timestamp? {
    tags.values.compactMap { $0.split(separator: "-").first.flatMap { Int64($0) } }.max()
      .map(Timestamp.init(microseconds:))
  }

  /// Moves the stamps of live events that will show their hosts or guests differently. A change of an event's own row
  /// moves its stamp by itself. The caller holds the locks on the events.
  ///
  /// - Parameter events: a query of their ids.
  static func moveStamps(of events: SQL, in change: Change) throws {
    try change.write("UPDATE events SET stamp = DEFAULT WHERE id IN (\(events)) AND archived_at IS NULL")
  }

  /// Moves the stamps of all live events. See ``Stamps/move(_:in:)``.
  static func moveAllStamps(in database: Database) async throws {
    var place: ID? = ID(rawValue: .zero)
    while let after = place {
      let rows = try await database.rows(
        "SELECT id FROM events WHERE archived_at IS NULL AND id > \(after) ORDER BY id LIMIT \(Stamps.moveBatch)")
      let ids: [ID] = try rows.map { try $0["id"] }
      place = ids.last
      guard !ids.isEmpty else { break }
      try await database.change { change in
        try change.write(locking("SELECT unnest(\(ids))"))
        try moveStamps(of: "SELECT unnest(\(ids))", in: change)
        change.noteQuietWrite()
      }
    }
  }
}

extension Event: JSONWritable {
  /// With too many guests, their lists leave the counts out: each answer would have to touch all these lists. A list
  /// with participants has no stamp.
  private var showsCounts: Bool {
    participants != nil || myRole != .guest || counts.total <= Event.maximumCounted
  }

  func write(to json: inout JSONWriter) {
    json.event(
      id: id, title: plan.title, note: plan.note, startTime: plan.startTime, endTime: plan.endTime,
      timeZone: plan.timeZone, location: plan.location, url: plan.url, capacity: plan.capacity,
      maxPlusOnes: plan.maxPlusOnes,
      status: status, creator: creator, hosts: hosts, version: version, createdAt: createdAt, updatedAt: updatedAt,
      myRole: myRole, myStatus: Word(rawValue: myStatus), myPlusOnes: myPlusOnes, answerBy: plan.answerBy,
      counts: showsCounts ? counts : nil, participants: participants, guests: guests)
  }
}

extension Event.Location: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.location(name: name, latitude: latitude, longitude: longitude)
  }
}

extension Event.Counts: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.counts(
      invited: invited, going: going, maybe: maybe, declined: declined, waitlisted: waitlisted, pending: pending)
  }
}
