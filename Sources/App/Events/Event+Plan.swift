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
    var capacity: Int?
    /// Guests can answer until then. Hosts can set answers at any time.
    var answerBy: Timestamp?
    /// The number of people whom each guest may bring.
    var maxPlusOnes = 0

    /// The time when the event leaves the live lists: a day after its end. Without an end, the event counts as 6 hours
    /// long.
    var liveUntil: Timestamp { (endTime ?? startTime.adding(seconds: 6 * 3600)).adding(seconds: 86_400) }

    /// The time of the reminder, an hour before the start. Nil if it has passed.
    func remindAt(now: Timestamp = .now()) -> Timestamp? {
      let time = startTime.adding(seconds: -Event.reminderLead)
      return time > now ? time : nil
    }

    /// The parts of a plan, with their API names and their words in messages.
    static let parts: [(field: String, word: String)] = [
      ("title", "the title"), ("note", "the note"), ("startTime", "the time"), ("endTime", "the end"),
      ("timeZone", "the time zone"), ("location", "the place"), ("capacity", "the number of places"),
      ("answerBy", "the time to answer by"),
      ("maxPlusOnes", "the number of plus-ones"),
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
        change("capacity", \.capacity), change("answerBy", \.answerBy), change("maxPlusOnes", \.maxPlusOnes),
      ].compactMap { $0 }
    }
  }
}

extension Event.Plan: SQLRecord {
  /// - Parameter events: the alias of a row of `events`.
  static func record(_ events: SQL) -> SQL { "ROW(\(columns(events)))" }

  /// The fields of ``record(_:)``, as a part of another record.
  static func columns(_ events: SQL) -> SQL {
    """
    \(events).title, \(events).note, \(events).start_time, \(events).end_time, \(events).time_zone,
    \(events).location_name, \(events).latitude, \(events).longitude, \(events).capacity, \(events).answer_by,
    \(events).max_plus_ones
    """
  }

  init(fields: inout SQLFields) throws {
    title = try fields.next()
    note = try fields.next()
    startTime = try fields.next()
    endTime = try fields.next()
    timeZone = try fields.next()
    let (name, latitude, longitude): (String?, Double?, Double?) =
      (try fields.next(), try fields.next(), try fields.next())
    location = name.map { Event.Location(name: $0, latitude: latitude, longitude: longitude) }
    capacity = try fields.next()
    answerBy = try fields.next()
    maxPlusOnes = try fields.next()
  }
}
