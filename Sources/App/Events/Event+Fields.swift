import Foundation

extension Event.Plan {
  static let endRule = "must be after startTime"

  static let answerByRule = "must not be after startTime"

  var endsAfterStart: Bool { endTime.map { $0 > startTime } ?? true }
  var asksBeforeStart: Bool { answerBy.map { $0 <= startTime } ?? true }
}

extension Fields.Rule where Value == String {
  /// A name of the IANA database, such as `Europe/Berlin`, or an alias. Foundation accepts more, and those are refused:
  /// offsets such as GMT+2, which have no daylight saving time, and abbreviations, which are ambiguous.
  static var timeZone: Self {
    text(1...64).and("must be an IANA time zone such as Europe/Berlin") { name in
      if knownTimeZones.contains(name) { return true }
      let isWord = name.utf8.allSatisfy {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_+-".utf8.contains($0)
      }
      return isWord && name.contains("/") && TimeZone(identifier: name) != nil
    }
  }
}

private let knownTimeZones = Set(TimeZone.knownTimeZoneIdentifiers).union(["UTC"])

extension Fields.Rule where Value == Int {
  static var capacity: Self { integer(1...10_000) }
  static var maxPlusOnes: Self { integer(0...Event.maximumPlusOnes) }
}

extension Fields.Rule where Value == Event.Location {
  static var location: Self {
    object(Event.Location(name: "", latitude: nil, longitude: nil)) { fields in
      let location = Event.Location(
        name: fields.required("name", .line(1...200)), latitude: fields.optional("latitude", .number(-90...90)),
        longitude: fields.optional("longitude", .number(-180...180)))
      if (location.latitude == nil) != (location.longitude == nil) {
        fields.note(
          location.latitude == nil ? "latitude" : "longitude", .required,
          "latitude and longitude must be given together")
      }
      return location
    }
  }
}
