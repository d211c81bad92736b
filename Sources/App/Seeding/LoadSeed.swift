import Foundation
import Postgres

/// Synthetic users and events for load tests: names in many scripts, overlapping circles of friends, events on evenings
/// and weekends, and answers of every kind. The same seed produces the same data.
public struct LoadSeed: Sendable {
  /// The password of all users.
  public static let password = "load-test-password"

  /// The friendships that each user begins. With those that other users begin, a user has about 50 friends.
  private static let friendsForward = 25
  private static let eventsEach = 2
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
      let tokens = try await dependencies.database.change {
        try await Session.start(for: user, device: "load", from: nil, keys: dependencies.refreshTokenKeys, in: $0)
      }
      let token = try await dependencies.accessTokens.sign(
        user: user, session: tokens.refresh.session, epoch: tokens.epoch)
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
    let columns = ["user_id"] + Collection.allCases.map(\.column) + ["inbox_floor"]
    try connection.copy(into: "user_stamps", columns: columns) { rows in
      for number in 0..<users {
        var random = Random(seed, "stamps", number)
        var stamp: Timestamp {
          Timestamp(microseconds: start.microseconds - .random(in: 0..<Self.week, using: &random))
        }
        // As of a user who registers now.
        let floor = start.adding(seconds: -90 * 86_400)
        try rows.append(userID(number).rawValue, followedBy: Collection.allCases.map { _ in stamp } + [floor])
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
    let invitationColumns = ["event_id", "user_id", "status", "invited_at", "answered_at", "archived_start"]
    try connection.copy(into: "invitations", columns: invitationColumns) { rows in
      for number in 0..<total {
        let made = event(number)
        for (place, guest) in made.guests.enumerated() {
          let answered = guest.status == .invited ? nil : made.created.adding(seconds: 3600 + place)
          try rows.append(
            eventID(number).rawValue, userID(guest.user).rawValue, guest.status.rawValue, made.created, answered,
            made.plan.liveUntil <= start ? made.plan.startTime : nil)
        }
        if number % 10_000 == 0 { progress("invitations", Double(number) / Double(total)) }
      }
    }
  }

  /// Drops foreign keys and secondary indexes, because building them at once is cheaper than row by row. Triggers would
  /// look up the event of each guest.
  ///
  /// - Returns: the statements that create them again.
  private func dropKeysAndIndexes(on connection: ScriptConnection) throws -> [String] {
    let tables = ["users", "user_stamps", "friendships", "events", "invitations"]
    var drops = ["ALTER TABLE invitations DISABLE TRIGGER USER"]
    var creations = ["ALTER TABLE invitations ENABLE TRIGGER USER"]
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

/// Each row is made from its number alone.
extension LoadSeed {
  func userID(_ number: Int) -> User.ID {
    id("u", number, milliseconds: 1_600_000_000_000 + number)
  }

  func eventID(_ number: Int) -> Event.ID {
    id("e", number, milliseconds: 1_600_000_000_000 + number)
  }

  /// Rises with the number, so that rows are inserted in the order of their keys.
  private func id<Thing>(_ kind: String, _ number: Int, milliseconds: Int) -> Identifier<Thing> {
    var random = Random(seed, kind, number)
    let (high, low) = (random.next(), random.next())
    func byte(_ value: UInt64, _ place: Int) -> UInt8 { UInt8(truncatingIfNeeded: value >> (8 * UInt64(7 - place))) }
    let time = UInt64(milliseconds) << 16
    return Identifier(
      rawValue: UUID(
        uuid: (
          byte(time, 0), byte(time, 1), byte(time, 2), byte(time, 3), byte(time, 4), byte(time, 5),
          0x70 | byte(high, 6) & 0x0f, byte(high, 7), 0x80 | byte(low, 0) & 0x3f, byte(low, 1), byte(low, 2),
          byte(low, 3), byte(low, 4), byte(low, 5), byte(low, 6), byte(low, 7)
        )))
  }

  /// Most friends are in the same circle, some in neighboring circles, and a few are from anywhere. Offsets below half
  /// the number of users name each pair once.
  func friends(of number: Int) -> [Int] {
    var random = Random(seed, "friends", number)
    let furthest = max(1, (users - 1) / 2)
    var offsets: Set<Int> = []
    while offsets.count < min(Self.friendsForward, furthest) {
      let reach = offsets.count < 17 ? 40 : offsets.count < 22 ? 1000 : furthest
      offsets.insert(.random(in: 1...min(reach, furthest), using: &random))
    }
    return offsets.sorted().map { (number + $0) % users }.filter { $0 != number }
  }

  struct MadeEvent {
    let plan: Event.Plan
    let guests: [(user: Int, status: Invitation.Status)]
    let created: Timestamp
  }

  func event(_ number: Int) -> MadeEvent {
    var random = Random(seed, "event", number)
    let created = start.adding(seconds: -Int.random(in: 8 * 86_400..<30 * 86_400, using: &random))
    var plan = Event.Plan(
      title: Names.plans.randomElement(using: &random) ?? "", startTime: time(&random),
      timeZone: Names.zones.randomElement(using: &random) ?? "UTC")
    if Int.random(in: 0..<3, using: &random) > 0 { plan.note = Names.notes.randomElement(using: &random) }
    if Int.random(in: 0..<5, using: &random) > 0 {
      plan.endTime = plan.startTime.adding(seconds: 1800 * .random(in: 2...8, using: &random))
    }
    if Int.random(in: 0..<6, using: &random) > 0 {
      plan.location = Event.Location(
        name: Names.places.randomElement(using: &random) ?? "", latitude: .random(in: 36...60, using: &random),
        longitude: .random(in: -9...30, using: &random))
    }
    let candidates = friends(of: number / Self.eventsEach).shuffled(using: &random)
    let invited = candidates.prefix(.random(in: 4...16, using: &random))
    if Int.random(in: 0..<8, using: &random) == 0 { plan.capacity = .random(in: 2...6, using: &random) }
    var going = 0
    let guests = invited.map { user -> (user: Int, status: Invitation.Status) in
      switch Int.random(in: 0..<100, using: &random) {
      case ..<35: return (user, .invited)
      case ..<70:
        if let capacity = plan.capacity, going >= capacity { return (user, .waitlisted) }
        going += 1
        return (user, .going)
      case ..<83: return (user, .maybe)
      default: return (user, .declined)
      }
    }
    return MadeEvent(plan: plan, guests: guests, created: created)
  }

  /// From a week ago to two months ahead: evenings on weekdays, any time of the day on weekends.
  private func time(_ random: inout Random) -> Timestamp {
    let today = start.microseconds / 86_400_000_000
    let day = today + .random(in: -7...60, using: &random)
    // January 1, 1970 was a Thursday.
    let isWeekend = [2, 3].contains(day % 7)
    let hour = isWeekend ? Int64.random(in: 9...20, using: &random) : .random(in: 17...20, using: &random)
    let minute = [0, 0, 15, 30, 30, 45].randomElement(using: &random) ?? 0
    return Timestamp(microseconds: (day * 86_400 + hour * 3600 + Int64(minute) * 60) * 1_000_000)
  }
}

extension LoadSeed {
  /// The names of synthetic users and their events.
  enum Names {
    static func pick(_ random: inout Random) -> (display: String, ascii: String) {
      let people = people.randomElement(using: &random) ?? people[0]
      let given = people.given.randomElement(using: &random) ?? people.given[0]
      let family = people.family.randomElement(using: &random) ?? ""
      return (people.familyFirst ? "\(family) \(given.0)" : "\(given.0) \(family)", given.1)
    }

    /// Given names with a spelling for usernames, and family names.
    private static let people: [(given: [(String, String)], family: [String], familyFirst: Bool)] = [
      (
        [("Ana", "ana"), ("Inês", "ines"), ("João", "joao"), ("Rui", "rui"), ("Beatriz", "beatriz")],
        ["Carvalho", "Duarte", "Gonçalves", "Araújo"], false
      ),
      (
        [("Ben", "ben"), ("Grace", "grace"), ("Oluwaseun", "seun"), ("Niamh", "niamh"), ("Zoë", "zoe")],
        ["Okafor", "O’Brien", "Smith", "Walker-Jones"], false
      ),
      (
        [("Jürgen", "juergen"), ("Käthe", "kaethe"), ("Mika", "mika"), ("Søren", "soeren"), ("Åsa", "asa")],
        ["Müller", "Lindqvist", "Østergaard", "Weiß"], false
      ),
      (
        [("Горан", "goran"), ("Ольга", "olga"), ("Надія", "nadiia"), ("Дмитрий", "dmitri")],
        ["Илић", "Кузнецова", "Шевченко", "Петров"], false
      ),
      (
        [("Ελένη", "eleni"), ("Γιώργος", "giorgos"), ("Νίκος", "nikos")], ["Παπαδόπουλος", "Γεωργίου", "Νικολάου"],
        false
      ),
      ([("花", "hana"), ("翔太", "shota"), ("さくら", "sakura")], ["佐藤", "鈴木", "高橋"], true),
      ([("민준", "minjun"), ("서연", "seoyeon"), ("지우", "jiwoo")], ["김", "이", "박"], true),
      ([("伟", "wei"), ("芳", "fang"), ("小龙", "xiaolong")], ["王", "李", "欧阳"], true),
      ([("فاطمة", "fatima"), ("أحمد", "ahmad"), ("ليلى", "layla")], ["الإدريسي", "حسن", "المصري"], false),
      ([("देव", "dev"), ("प्रिया", "priya"), ("अनन्या", "ananya")], ["पटेल", "शर्मा", "गुप्ता"], false),
      ([("Emre", "emre"), ("Işıl", "isil"), ("Çağla", "cagla")], ["Yılmaz", "Şahin", "Öztürk"], false),
      ([("נועה", "noa"), ("דוד", "david")], ["כהן", "לוי"], false),
    ]

    static let bios = [
      "Always up for a walk.", "Coffee first.", "写真と喫茶店。", "Liest zu viel.", "🎸 🧗 🍜", "На связи после шести.",
    ]
    static let plans = [
      "Pasta night", "Board games", "Trail run", "Film & pizza", "Geburtstag!", "Café da manhã", "飲み会",
      "Picnic by the lake",
      "Книжный клуб", "Climbing", "Five-a-side", "Karaoke", "Flohmarkt", "Concert", "Study group",
    ]
    static let notes = [
      "Bring snacks.", "Meet at the entrance, the \"small\" one.", "Wir warten 10 Minuten.", "Kids welcome 🎈",
      "BYO everything; we have a grill.\nAnd a dog.", "遅れても大丈夫です。",
    ]
    static let places = [
      "Ana's kitchen", "Café Spielwiese", "Tempelhofer Feld", "代々木公園", "Парк Горького", "The Old Quarry", "Πλάκα",
    ]
    static let zones = [
      "Europe/Lisbon", "Europe/Berlin", "Europe/London", "America/New_York", "Asia/Tokyo", "Asia/Kolkata", "UTC",
    ]
  }
}

extension LoadSeed {
  /// SplitMix64, seeded for each row, so that a row can be made without the rows before it.
  struct Random: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: UInt64, _ kind: StaticString, _ number: Int) {
      self.init(seed, kind.description, number)
    }

    init(_ seed: UInt64, _ kind: String, _ number: Int) {
      state = kind.utf8.reduce(seed &* 0x9e37_79b9_7f4a_7c15) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
      state ^= UInt64(bitPattern: Int64(number)) &* 0xd1b5_4a32_d192_ed03
      _ = next()
    }

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var mixed = state
      mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
      mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
      return mixed ^ (mixed >> 31)
    }
  }
}
