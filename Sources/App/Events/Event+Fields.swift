import Postgres

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
