import Postgres

extension Event {
  struct Location: Sendable, Equatable {
    let name: String
    let latitude: Double?
    let longitude: Double?
  }

  /// The properties that the hosts set.
  struct Plan: Sendable, Equatable {
    var title: String
    var note: String?
    var startTime: Timestamp
    var endTime: Timestamp?
    var timeZone: String
    var location: Location?
    /// Tickets, the video call, or the menu.
    var url: String?
    var capacity: Int?
    /// Guests can answer until then. Hosts can set answers at any time.
    var answerBy: Timestamp?
    /// The number of people whom each guest may bring.
    var maxPlusOnes = 0

    /// The time when the event leaves the live lists: a day after its end. Without an end, the event counts as 6 hours
    /// long.
    var liveUntil: Timestamp {
      (endTime ?? startTime.adding(seconds: 6 * 3600)).adding(seconds: Event.Phase.hoursLive * 3600)
    }

    /// The time of the reminder, an hour before the start. Nil if it has passed.
    func remindAt(now: Timestamp = .now()) -> Timestamp? {
      let time = startTime.adding(seconds: -Event.reminderLead)
      return time > now ? time : nil
    }

    /// The fields in which this plan differs from an older one.
    func differences(from old: Plan) -> [Notice.FieldChange] {
      Self.fields.compactMap { field in
        let setting = field.setting
        guard setting.differs(old, self) else { return nil }
        return Notice.FieldChange(field: setting.name, old: setting.value(old), new: setting.value(self))
      }
    }
  }
}

// MARK: Fields

extension Event.Plan {
  /// A property that the hosts set, with its word in messages.
  struct Field: Sendable {
    let word: String
    let setting: Setting<Event.Plan>
    /// Whether it is erased with the creator's account.
    let isPersonal: Bool
    /// Reads the member of a POST or a PATCH.
    let read: @Sendable (inout PlanEdit, inout Fields, Fields.Use, ZoneDatabase) -> Void

    fileprivate init(_ word: String, _ setting: Setting<Event.Plan>, isPersonal: Bool = false) {
      self.word = word
      self.setting = setting
      self.isPersonal = isPersonal
      read = { edit, fields, use, _ in
        if let change = setting.read(&fields, use) { edit.changes.append(change) }
      }
    }

    /// A field whose value depends on the time zone: ``PlanEdit`` sets it.
    fileprivate init<Value: JSONWritable & Equatable & SQLValue, Given>(
      _ word: String, _ member: Fields.Member<Given>, _ column: String,
      _ path: any WritableKeyPath<Event.Plan, Value> & Sendable,
      _ read:
        @escaping @Sendable (
          inout PlanEdit, inout Fields, Fields.Member<Given>, Fields.Use, ZoneDatabase
        ) -> Void
    ) {
      self.word = word
      isPersonal = false
      setting = Setting(member, path, in: [Column(column) { $0[keyPath: path] }]) { _, _, _ in .keep }
      self.read = { read(&$0, &$1, member, $2, $3) }
    }
  }

  /// The settings of the hosts, in the order of errors, messages and columns. Requests, statements, notifications and
  /// exports follow from a row, and names and rules from the document. Rows are read by ``init(fields:)``, in the same
  /// order.
  static let fields: [Field] = [
    Field("the title", .required(Body.EventDraft.title, "title", \.title)),
    Field("the note", .optional(Body.EventDraft.note, "note", \.note), isPersonal: true),
    Field("the time", Body.EventDraft.startTime, "start_time", \.startTime) { edit, fields, member, use, _ in
      edit.startTime = fields.edit(member, in: use, isRequired: true)
    },
    Field("the end", Body.EventDraft.endTime, "end_time", \.endTime) { edit, fields, member, use, _ in
      edit.endTime = fields.clearableEdit(member, in: use)
    },
    Field("the time zone", Body.EventDraft.timeZone, "time_zone", \.timeZone) { edit, fields, member, use, zones in
      edit.timeZone = fields.edit(member.zone(in: zones), in: use, isRequired: true)
    },
    Field(
      "the place",
      Setting(
        Body.EventDraft.location, \.location,
        in: [
          Column("location_name") { $0.location?.name }, Column("latitude") { $0.location?.latitude },
          Column("longitude") { $0.location?.longitude },
        ]
      ) { $0.clearableEdit($1, in: $2) }, isPersonal: true),
    Field("the web address", .optional(Body.EventDraft.url, "url", \.url), isPersonal: true),
    Field("the number of places", .optional(Body.EventDraft.capacity, "capacity", \.capacity)),
    Field("the time to answer by", Body.EventDraft.answerBy, "answer_by", \.answerBy) { edit, fields, member, use, _ in
      edit.answerBy = fields.clearableEdit(member, in: use)
    },
    Field("the number of plus-ones", .defaulted(Body.EventDraft.maxPlusOnes, "max_plus_ones", \.maxPlusOnes)),
  ]

  static let columns = Columns(fields.flatMap(\.setting.columns))
  /// The properties that are erased with the creator's account.
  static let personal = fields.filter(\.isPersonal).map(\.setting)
}

extension Event.Plan: SQLRecord {
  /// - Parameter events: the alias of a row of `events`.
  static func record(_ events: String) -> SQL { "ROW(\(columns.list(of: events)))" }

  init(fields: inout SQLFields) throws {
    title = try fields.next()
    note = try fields.next()
    startTime = try fields.next()
    endTime = try fields.next()
    timeZone = try fields.next()
    let (name, latitude, longitude): (String?, Double?, Double?) =
      (try fields.next(), try fields.next(), try fields.next())
    location = name.map { Event.Location(name: $0, latitude: latitude, longitude: longitude) }
    url = try fields.next()
    capacity = try fields.next()
    answerBy = try fields.next()
    maxPlusOnes = try fields.next()
  }
}

extension Event.Plan {
  /// A rule about two fields.
  struct Rule: Sendable {
    /// The field that is at fault.
    let field: String
    /// The others that decide.
    let others: [String]
    let message: String
    let holds: @Sendable (Event.Plan) -> Bool

    var error: AppError { .invalid(field, .outOfRange, message) }
  }

  static let rules = [
    Rule(field: "endTime", others: ["startTime", "timeZone"], message: "must be after startTime") { plan in
      plan.endTime.map { $0 > plan.startTime } ?? true
    },
    Rule(field: "answerBy", others: ["startTime", "timeZone"], message: "must not be after startTime") { plan in
      plan.answerBy.map { $0 <= plan.startTime } ?? true
    },
  ]

  /// - Throws: ``AppError`` for the first rule that the plan breaks.
  func checkRules() throws {
    for rule in Self.rules where !rule.holds(self) { throw rule.error }
  }
}

extension Fields {
  /// Records the rules that a plan breaks, except where a field has an error already.
  mutating func check(_ plan: Event.Plan) {
    for rule in Event.Plan.rules where !rule.holds(plan) && !hasError(in: [rule.field] + rule.others) {
      note(rule.field, .outOfRange, rule.message)
    }
  }
}

extension Fields.Member where Value == String {
  /// A name of the IANA database, such as `Europe/Berlin`, or that of a link to one, such as `Japan`.
  func zone(in zones: ZoneDatabase) -> Fields.Member<Zone> {
    Fields.Member(name, rule().zone(in: zones))
  }
}

extension Fields.Rule where Value == String {
  fileprivate func zone(in zones: ZoneDatabase) -> Fields.Rule<Zone> {
    Fields.Rule<Zone>(placeholder: .utc) { json throws(Fields.Broken) in
      guard let zone = zones[try read(json)] else {
        throw Fields.Broken(.badFormat, "must be an IANA time zone such as Europe/Berlin")
      }
      return zone
    }
  }
}

extension Fields.Rule where Value == GivenTime {
  /// RFC 3339 with any offset, or without an offset: then it is a reading of the clocks in the event's time zone. Cut to
  /// whole seconds.
  static var plannedTime: Self {
    Self(placeholder: .instant(Timestamp(microseconds: 0))) { json throws(Fields.Broken) in
      if case .string(let text) = json, let reading = LocalTimestamp(rfc3339: text) {
        // No offset moves it out of the years from 1970 to 9999.
        guard (1971...9998).contains(reading.day.calendar.year) else {
          throw Fields.Broken(.badFormat, "must be a time like 2026-05-01T18:00:00, from 1971 to 9998")
        }
        return .reading(LocalTimestamp(microseconds: reading.microseconds / 1_000_000 * 1_000_000))
      }
      return .instant(try Fields.Rule<Timestamp>.time.read(json))
    }
  }
}

extension Fields.Rule where Value == String {
  /// A web address that every client can open as it is: https, in ASCII, with a domain name by the rules of
  /// IDNA, and without a user, whose name could pass for that of the host.
  var webAddress: Self {
    and("must begin with https:// and a domain name, and have no user, no spaces and no letters outside of ASCII") {
      let form =
        #/
        https://(?<host>[A-Za-z0-9.-]+\.[A-Za-z][A-Za-z0-9-]*)(:(?<port>[0-9]{1,5}))?
        ([/?]([!$&'()*+,.\/0-9:;=?@A-Z_a-z~-]|%[0-9A-Fa-f]{2})*)?
        (\#([!$&'()*+,.\/0-9:;=?@A-Z_a-z~-]|%[0-9A-Fa-f]{2})*)?
        /#
      guard let match = $0.wholeMatch(of: form) else { return false }
      let host = String(match.host).lowercasedASCII
      return (try? EmailAddress.domain(host))?.hasSameBytes(as: host) == true
        && match.port.map { UInt16($0) != nil } ?? true
    }
  }
}

extension Fields.Rule where Value == Event.Location {
  static var location: Self {
    object(Event.Location(name: "", latitude: nil, longitude: nil)) { fields in
      let place = Body.LocationInput(&fields)
      if (place.latitude == nil) != (place.longitude == nil) {
        fields.note(
          place.latitude == nil ? "latitude" : "longitude", .required, "latitude and longitude must be given together")
      }
      return Event.Location(name: place.name, latitude: place.latitude, longitude: place.longitude)
    }
  }
}

/// The values of a plan in a POST or a PATCH.
struct PlanEdit: Sendable {
  /// Of the fields that do not depend on the time zone.
  var changes: [Setting<Event.Plan>.Change] = []
  var startTime = Edit<GivenTime>.keep
  var endTime = Edit<GivenTime?>.keep
  var answerBy = Edit<GivenTime?>.keep
  var timeZone = Edit<Zone>.keep

  init(from fields: inout Fields, in use: Fields.Use, zones: ZoneDatabase) {
    for field in Event.Plan.fields { field.read(&self, &fields, use, zones) }
  }

  /// The plan that a POST makes. It must have given the required fields, if only by their placeholders.
  func made(in zones: ZoneDatabase) throws -> (Event.Plan, Event.Offsets) {
    try applied(
      to: Event.Plan(title: "", startTime: Timestamp(microseconds: 0), timeZone: ""),
      Event.Offsets(start: 0, rules: zones.version), in: zones)
  }

  /// A new time zone alone keeps the times. A reading is one of the clocks in the zone that results from the edit.
  ///
  /// - Throws: ``AppError`` if a time changes and this host does not know the event's zone. With a made-up offset, a
  ///   worker that knows the zone would move the event.
  func applied(
    to old: Event.Plan, _ offsets: Event.Offsets, in zones: ZoneDatabase
  ) throws -> (Event.Plan, Event.Offsets) {
    let zone: Zone? = if case .set(let zone) = timeZone { zone } else { zones[old.timeZone] }
    let isMoved = zone.map { $0.name != old.timeZone } ?? false

    /// - Parameter offset: with which `old` was planned.
    func time(_ given: GivenTime?, _ old: Timestamp?, _ offset: Int?) throws -> ZonedTime? {
      guard let given = given ?? old.map(GivenTime.instant) else { return nil }
      if case .instant(let time) = given, time == old, !isMoved, let offset {
        return ZonedTime(time: time, offset: offset)
      }
      guard let zone else {
        throw AppError.invalid("timeZone", .required, "is unknown to this server: set another one")
      }
      return zone.time(given)
    }
    func clearable(_ edit: Edit<GivenTime?>, _ old: Timestamp?, _ offset: Int?) throws -> ZonedTime? {
      switch edit {
      case .keep: try time(nil, old, offset)
      case .set(nil): nil
      case .set(let given?): try time(given, old, offset)
      }
    }
    let givenStart: GivenTime? = if case .set(let given) = startTime { given } else { nil }
    let start =
      try time(givenStart, old.startTime, offsets.start) ?? ZonedTime(time: old.startTime, offset: offsets.start)
    let end = try clearable(endTime, old.endTime, offsets.end)
    let answer = try clearable(answerBy, old.answerBy, offsets.answerBy)
    var plan = old
    for change in changes { change(&plan) }
    (plan.startTime, plan.endTime, plan.answerBy) = (start.time, end?.time, answer?.time)
    if isMoved, let zone { plan.timeZone = zone.name }
    var new = Event.Offsets(start: start.offset, end: end?.offset, answerBy: answer?.offset, rules: offsets.rules)
    // An older version: a worker with a later one then looks at the times again. Even if the offset stays, the later
    // rules may have another one at the new time.
    let isReplanned =
      new != offsets || plan.startTime != old.startTime || plan.endTime != old.endTime || plan.answerBy != old.answerBy
    if isReplanned || isMoved { new.rules = isMoved ? zones.version : min(offsets.rules, zones.version) }
    return (plan, new)
  }
}

extension Event {
  /// The offsets from UTC with which an event's times were planned, in seconds. An event's time and its offset are what
  /// the clocks in its zone show then. That reading stays when a government changes the rules, and the time moves.
  struct Offsets: Sendable, Equatable {
    var start: Int
    var end: Int?
    var answerBy: Int?
    /// The version of the time zone database by whose rules the times are those of the readings.
    var rules: String
  }
}

extension Event.Offsets {
  /// The offsets at a plan's times.
  init(_ plan: Event.Plan, in zone: Zone, rules: String) {
    self.init(
      start: zone.offset(at: plan.startTime), end: plan.endTime.map { zone.offset(at: $0) },
      answerBy: plan.answerBy.map { zone.offset(at: $0) }, rules: rules)
  }

  /// The plan with the times at which the zone's clocks now show what they were to show.
  func kept(_ plan: Event.Plan, in zone: Zone, rules: String) -> (Event.Plan, Event.Offsets) {
    func kept(_ time: Timestamp, _ offset: Int?) -> ZonedTime {
      let offset = offset ?? zone.offset(at: time)
      return zone.time(showing: ZonedTime(time: time, offset: offset).reading, preferring: offset)
    }
    let start = kept(plan.startTime, self.start)
    var end = plan.endTime.map { kept($0, self.end) }
    var answerBy = plan.answerBy.map { kept($0, self.answerBy) }
    // A start and an end in the first and the second of two equal hours, when only one is left.
    if let oldEnd = plan.endTime, let newEnd = end, newEnd.time <= start.time {
      let length = Int(oldEnd.microseconds - plan.startTime.microseconds) / 1_000_000
      end = zone.time(.instant(start.time.adding(seconds: length)))
    }
    if let deadline = answerBy, deadline.time > start.time { answerBy = start }
    var new = plan
    (new.startTime, new.endTime, new.answerBy) = (start.time, end?.time, answerBy?.time)
    return (new, Event.Offsets(start: start.offset, end: end?.offset, answerBy: answerBy?.offset, rules: rules))
  }
}

extension Event.Offsets: SQLRecord {
  static let columns = Columns<Self>([
    Column("start_offset") { $0.start }, Column("end_offset") { $0.end }, Column("answer_by_offset") { $0.answerBy },
    Column("zone_rules") { $0.rules },
  ])

  /// Of a row of `events`.
  static let record: SQL = "ROW(\(columns.list))"

  /// For the SET of an UPDATE of `events`.
  var assignments: SQL { Self.columns.assignments(from: self) }

  init(fields: inout SQLFields) throws {
    start = try fields.next()
    end = try fields.next()
    answerBy = try fields.next()
    rules = try fields.next()
  }
}
