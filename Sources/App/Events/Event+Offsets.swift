import Postgres

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
