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
