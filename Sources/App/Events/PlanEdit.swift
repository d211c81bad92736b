import Postgres

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
