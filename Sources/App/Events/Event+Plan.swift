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
    /// Reads the member of a POST or a PATCH.
    let read: @Sendable (inout PlanEdit, inout Fields, Fields.Use, ZoneDatabase) -> Void

    fileprivate init(_ word: String, _ setting: Setting<Event.Plan>) {
      self.word = word
      self.setting = setting
      read = { edit, fields, use, _ in
        if let change = setting.read(&fields, use) { edit.changes.append(change) }
      }
    }

    /// A field whose value depends on the time zone: ``PlanEdit`` sets it.
    fileprivate init<Value: JSONWritable & Equatable & SQLValue>(
      _ word: String, _ name: String, _ column: String, _ path: any WritableKeyPath<Event.Plan, Value> & Sendable,
      _ read: @escaping @Sendable (inout PlanEdit, inout Fields, Fields.Use, ZoneDatabase) -> Void
    ) {
      self.word = word
      setting = Setting(name, path, in: [Column(column) { $0[keyPath: path] }]) { _, _ in .keep }
      self.read = read
    }
  }

  /// What the hosts set, in the order of errors, messages and columns. Requests, statements, notifications and exports
  /// follow from a row. Rows are read by ``init(fields:)``, in the same order.
  static let fields: [Field] = [
    Field("the title", .required("title", "title", \.title, .line(1...200))),
    Field("the note", .optional("note", "note", \.note, .text(0...2000))),
    Field("the time", "startTime", "start_time", \.startTime) { edit, fields, use, _ in
      edit.startTime = fields.edit("startTime", .plannedTime, in: use, isRequired: true)
    },
    Field("the end", "endTime", "end_time", \.endTime) { edit, fields, use, _ in
      edit.endTime = fields.clearableEdit("endTime", .plannedTime, in: use)
    },
    Field("the time zone", "timeZone", "time_zone", \.timeZone) { edit, fields, use, zones in
      edit.timeZone = fields.edit("timeZone", .timeZone(in: zones), in: use, isRequired: true)
    },
    Field(
      "the place",
      Setting(
        "location", \.location,
        in: [
          Column("location_name") { $0.location?.name }, Column("latitude") { $0.location?.latitude },
          Column("longitude") { $0.location?.longitude },
        ]
      ) { $0.clearableEdit("location", .location, in: $1) }),
    Field("the number of places", .optional("capacity", "capacity", \.capacity, .capacity)),
    Field("the time to answer by", "answerBy", "answer_by", \.answerBy) { edit, fields, use, _ in
      edit.answerBy = fields.clearableEdit("answerBy", .plannedTime, in: use)
    },
    Field("the number of plus-ones", .defaulted("maxPlusOnes", "max_plus_ones", \.maxPlusOnes, .maxPlusOnes)),
  ]

  static let columns = Columns(fields.flatMap(\.setting.columns))
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
    capacity = try fields.next()
    answerBy = try fields.next()
    maxPlusOnes = try fields.next()
  }
}
