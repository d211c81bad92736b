import Foundation
import Postgres

/// Synthetic users and events for load tests: names in many scripts, overlapping circles of friends, events on evenings
/// and weekends, and answers of every kind. The same seed produces the same data.
public struct LoadSeed: Sendable {
  /// The password of all users.
  public static let password = "load-test-password"

  /// The friendships that each user begins. With those that other users begin, a user has about 50 friends.
  static let friendsForward = 25
  static let eventsEach = 2
  /// In microseconds.
  private static let week: Int64 = 7 * 86_400_000_000
  private static let tokenLines = 2000

  let users: Int
  let seed: UInt64
  let start: Timestamp

  public init(users: Int, seed: UInt64, now: Timestamp = .now()) {
    self.users = users
    self.seed = seed
    start = now
  }

  /// Fills an empty database in one transaction.
  ///
  /// - Parameters:
  ///   - isForced: whether to fill a database that already has users.
  ///   - progress: called with the name of the current step and the finished part of it, from 0 to 1.
  /// - Throws: ``AppError`` if there are users and `isForced` is false.
  public func plant(
    in configuration: MusterConfiguration, isForced: Bool, progress: @escaping @Sendable (String, Double) -> Void
  ) async throws {
    let zones = try configuration.zones()
    let hash = try await Passwords(cost: configuration.scrypt).hash(Self.password)
    try await ScriptConnection.run(configuration.databaseURL, applicationName: "muster seed load") { connection in
      let taken: Bool? = try connection.rows("SELECT EXISTS (SELECT 1 FROM users)").first?[0]
      guard isForced || taken == false else { throw AppError.databaseNotEmpty }
      try connection.script("BEGIN; SET LOCAL maintenance_work_mem = '256MB'")
      let rebuild = try dropKeysAndIndexes(on: connection)
      try plantUsers(on: connection, hash, progress)
      try plantFriendships(on: connection, progress)
      try plantEvents(on: connection, zones, progress)
      for (index, statement) in rebuild.enumerated() {
        progress("keys and indexes", Double(index) / Double(rebuild.count))
        try connection.script(statement)
      }
      try connection.script("COMMIT")
      progress("statistics", 0)
      try connection.script("VACUUM ANALYZE")
    }
  }

  /// Lines of `userId eventId accessToken`, for load generators.
  public func tokens(_ dependencies: Dependencies) async throws -> String {
    var lines = ""
    var count = 0
    for index in 0..<users where count < Self.tokenLines {
      let number = (index * 7919 + 11) % users
      let user = userID(number)
      // An event that can still be edited.
      let own = (0..<Self.eventsEach).map { number * Self.eventsEach + $0 }
      guard let open = own.first(where: { event($0).plan.liveUntil > start }) else { continue }
      count += 1
      let pass = try await dependencies.database.change {
        try await Session.start(for: user, device: "load", from: nil, keys: dependencies.refreshTokenKeys, in: $0)
      }
      let token = try await dependencies.accessTokens.sign(
        user: user, session: pass.token.session, epoch: pass.epoch)
      lines += "\(user) \(eventID(open)) \(token)\n"
    }
    return lines
  }

  // MARK: Tables

  private func plantUsers(
    on connection: ScriptConnection, _ hash: String, _ progress: (String, Double) -> Void
  ) throws {
    let userColumns = [
      "id", "username", "email", "display_name", "bio", "password_hash", "created_at", "updated_at",
      "email_verified_at",
    ]
    try connection.copy(into: "users", columns: userColumns) { rows in
      for number in 0..<users {
        var random = Random(seed, "user", number)
        let name = Names.pick(&random)
        let username = "\(name.ascii).\(number)"
        let bio = Int.random(in: 0..<3, using: &random) == 0 ? Names.bios.randomElement(using: &random) : nil
        let created = start.adding(seconds: -Int.random(in: 0..<400 * 86_400, using: &random))
        try rows.append(
          userID(number).rawValue, username, "\(username)@load.example", name.display, bio, hash, created, created,
          created)
        if number % 10_000 == 0 { progress("people", Double(number) / Double(users)) }
      }
    }
    let columns = ["user_id"] + Collection.allCases.map(\.column)
    try connection.copy(into: "user_stamps", columns: columns) { rows in
      for number in 0..<users {
        var random = Random(seed, "stamps", number)
        var stamp: Timestamp {
          Timestamp(microseconds: start.microseconds - .random(in: 0..<Self.week, using: &random))
        }
        try rows.append(userID(number).rawValue, followedBy: Collection.allCases.map { _ in stamp })
        if number % 10_000 == 0 { progress("stamps", Double(number) / Double(users)) }
      }
    }
  }

  private func plantFriendships(on connection: ScriptConnection, _ progress: (String, Double) -> Void) throws {
    try connection.copy(into: "friendships", columns: ["user_a", "user_b", "since"]) { rows in
      for number in 0..<users {
        var random = Random(seed, "since", number)
        for other in friends(of: number) {
          let since = start.adding(seconds: -Int.random(in: 0..<300 * 86_400, using: &random))
          try rows.append(userID(min(number, other)).rawValue, userID(max(number, other)).rawValue, since)
        }
        if number % 10_000 == 0 { progress("friendships", Double(number) / Double(users)) }
      }
    }
  }

  private func plantEvents(
    on connection: ScriptConnection, _ zones: ZoneDatabase, _ progress: (String, Double) -> Void
  ) throws {
    let total = users * Self.eventsEach
    let eventColumns = [
      "id", "creator_id", "title", "note", "start_time", "end_time", "time_zone", "location_name", "latitude",
      "longitude", "capacity", "live_until", "remind_at", "archived_at", "invited_count", "going_count",
      "maybe_count", "declined_count", "waitlisted_count", "created_at", "updated_at", "start_offset", "end_offset",
      "zone_rules",
    ]
    try connection.copy(into: "events", columns: eventColumns) { rows in
      for number in 0..<total {
        let made = event(number)
        let plan = made.plan
        let offsets = Event.Offsets(plan, in: zones[plan.timeZone] ?? .utc, rules: zones.version)
        func count(_ status: Invitation.Status) -> Int32 { Int32(made.guests.count { $0.status == status }) }
        try rows.append(
          eventID(number).rawValue, userID(number / Self.eventsEach).rawValue, plan.title, plan.note, plan.startTime,
          plan.endTime, plan.timeZone, plan.location?.name, plan.location?.latitude, plan.location?.longitude,
          plan.capacity.map(Int32.init), plan.liveUntil, plan.remindAt(now: start),
          plan.liveUntil <= start ? plan.liveUntil : nil, count(.invited), count(.going), count(.maybe),
          count(.declined), count(.waitlisted), made.created,
          made.created, Int32(offsets.start), offsets.end.map(Int32.init), offsets.rules)
        if number % 10_000 == 0 { progress("events", Double(number) / Double(total)) }
      }
    }
    let invitationColumns = ["event_id", "user_id", "status", "invited_at", "answered_at"]
    try connection.copy(into: "invitations", columns: invitationColumns) { rows in
      for number in 0..<total {
        let made = event(number)
        for (place, guest) in made.guests.enumerated() {
          let answered = guest.status == .invited ? nil : made.created.adding(seconds: 3600 + place)
          try rows.append(
            eventID(number).rawValue, userID(guest.user).rawValue, guest.status.rawValue, made.created, answered)
        }
        if number % 10_000 == 0 { progress("invitations", Double(number) / Double(total)) }
      }
    }
  }

  /// Drops foreign keys and secondary indexes, because building them at once is cheaper than row by row.
  ///
  /// - Returns: the statements that create them again.
  private func dropKeysAndIndexes(on connection: ScriptConnection) throws -> [String] {
    let tables = ["users", "user_stamps", "friendships", "events", "invitations"]
    var drops: [String] = []
    var creations: [String] = []
    for row in try connection.rows(
      """
      SELECT pg_get_indexdef(i.indexrelid) AS definition, i.indexrelid::regclass::text AS name
      FROM pg_index AS i
      WHERE i.indrelid = ANY(\(tables)::regclass[]) AND NOT i.indisprimary
        AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.indexrelid)
      """)
    {
      drops.append("DROP INDEX \(try row["name"] as String)")
      creations.append(try row["definition"])
    }
    for row in try connection.rows(
      """
      SELECT conrelid::regclass::text AS table_name, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
      FROM pg_constraint
      WHERE contype = 'f' AND conrelid = ANY(\(tables)::regclass[])
      """)
    {
      let (table, name, definition): (String, String, String) = (
        try row["table_name"], try row["name"], try row["definition"]
      )
      drops.insert("ALTER TABLE \(table) DROP CONSTRAINT \(name)", at: 0)
      creations.append("ALTER TABLE \(table) ADD CONSTRAINT \(name) \(definition)")
    }
    for statement in drops { try connection.script(statement) }
    return creations
  }
}

extension AppError {
  static let databaseNotEmpty = AppError(
    .conflict, "database-not-empty", "The database already has users. Use --force to add synthetic users anyway.")
}
