import Foundation
import Postgres
import Testing

@testable import App

@Suite struct CalendarTests {
  @Test func `the calendar file has one VEVENT with all properties of the event`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.makeEvent(
        """
        {"title": "Picnic", "note": "Bring a blanket", "startTime": "2030-05-01T18:00:00Z",
         "endTime": "2030-05-01T20:00:00Z", "timeZone": "UTC", "inviteeIds": ["\(ben.id)"],
         "location": {"name": "Tempelhof", "latitude": 52.4731, "longitude": -0.0000004},
         "url": "https://x.org/a,b;c"}
        """)
      try await app.takeNotifications()
      let response = try await ana.send("GET", "events/\(id)/calendar.ics")
      #expect(response.status == 200)
      #expect(response.header("Content-Type") == "text/calendar; charset=utf-8")
      #expect(response.header("Content-Disposition") == "attachment; filename=\"event-\(id).ics\"")
      let file = try CalendarFile(response)
      let event = try await ana.get("events/\(id)")
      let stamps = ["DTSTAMP", "CREATED", "LAST-MODIFIED"]
      #expect(
        file.lines.filter { line in !stamps.contains { line.hasPrefix($0) } } == [
          "BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Muster//Muster//EN", "METHOD:PUBLISH", "BEGIN:VEVENT",
          "UID:\(id)",
          "SEQUENCE:0", "STATUS:CONFIRMED", "TRANSP:OPAQUE", "DTSTART:20300501T180000Z", "DTEND:20300501T200000Z",
          "SUMMARY:Picnic", "DESCRIPTION:Bring a blanket", "URL:https://x.org/a,b;c", "LOCATION:Tempelhof",
          "GEO:52.473100;-0.000000",
          "ORGANIZER;CN=\"Ana\":urn:uuid:\(ana.id)", "END:VEVENT", "END:VCALENDAR",
        ])
      for (name, member) in [("CREATED", "createdAt"), ("LAST-MODIFIED", "updatedAt")] {
        let instant = try file.instant(name).rfc3339()
        #expect(instant == event[member].string)
      }
      let made = try file.instant("DTSTAMP")
      #expect(made <= .now() && made.adding(seconds: 60) > .now())
    }
  }

  @Test func `for a guest the event is the same after any answer, but takes up time only if the guest is going`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      for (status, transparency) in [
        (nil, "TRANSPARENT"), ("maybe", "TRANSPARENT"), ("going", "OPAQUE"), ("declined", "TRANSPARENT"),
      ] {
        if let status { try await ben.answer(status, to: id) }
        let file = try await ben.calendar(of: id)
        #expect(file.value("STATUS") == "CONFIRMED")
        #expect(file.value("TRANSP") == transparency)
        #expect(file.value("SEQUENCE") == "0")
        #expect(!file.text.contains("@"), "an address")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `editing and cancelling make a later version of the same event`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      try await ana.edit(id, #"{"title": "Dinner", "startTime": "2030-05-01T19:00:00Z", "endTime": null}"#)
      let edited = try await ben.calendar(of: id)
      #expect(edited.value("UID") == id)
      #expect(edited.value("SEQUENCE") == "1")
      #expect(edited.value("SUMMARY") == "Dinner")
      #expect(edited.value("DTSTART") == "20300501T210000")
      // An hour, as in calendar apps.
      #expect(edited.value("DTEND") == "20300501T220000")
      #expect(edited.value("DESCRIPTION") == nil && edited.value("LOCATION") == nil && edited.value("GEO") == nil)

      try await ana.deleteAccount()
      let cancelled = try await ben.calendar(of: id)
      #expect(cancelled.value("UID") == id)
      #expect(cancelled.value("SEQUENCE") == "2")
      #expect(cancelled.value("STATUS") == "CANCELLED")
      #expect(cancelled.lines.contains("ORGANIZER:urn:uuid:00000000-0000-0000-0000-000000000000"))
      try await app.takeNotifications()
    }
  }

  // MARK: Time zones

  @Test func `start and end are in local time, and the file describes the zone`() async throws {
    let cases = [
      // The hour that Berlin skips in spring, and around the hour that it repeats in autumn.
      ("Europe/Berlin", "2026-03-29T00:59:00Z", "20260329T015900", "2026-03-29T01:00:00Z", "20260329T030000"),
      ("Europe/Berlin", "2026-10-24T23:59:59Z", "20261025T015959", "2026-10-25T02:00:00Z", "20261025T030000"),
      ("Europe/Berlin", "2037-07-01T18:00:00Z", "20370701T200000", "2037-12-31T18:00:00Z", "20371231T190000"),
      ("America/New_York", "2026-03-08T06:59:00Z", "20260308T015900", "2026-03-08T07:00:00Z", "20260308T030000"),
      // Offsets that are not whole hours, with and without daylight saving time, and one that changes by half an hour.
      ("Asia/Kolkata", "2026-05-01T18:00:00Z", "20260501T233000", "2026-05-01T18:45:00Z", "20260502T001500"),
      ("America/St_Johns", "2026-07-10T12:00:00Z", "20260710T093000", "2026-07-10T13:00:00Z", "20260710T103000"),
      ("Australia/Lord_Howe", "2026-04-04T14:00:00Z", "20260405T010000", "2026-04-04T15:30:00Z", "20260405T020000"),
      // Morocco sets its clocks back for Ramadan.
      ("Africa/Casablanca", "2024-03-10T00:59:00Z", "20240310T015900", "2024-03-10T03:00:00Z", "20240310T030000"),
      ("Africa/Casablanca", "2024-04-14T01:00:00Z", "20240414T010000", "2024-04-14T02:00:00Z", "20240414T030000"),
      // On the Friday before the last Sunday, at two; the last Thursday's midnight; and an hour before Sunday.
      ("Asia/Jerusalem", "2024-03-28T23:59:00Z", "20240329T015900", "2024-03-29T00:00:00Z", "20240329T030000"),
      ("Africa/Cairo", "2024-10-31T12:00:00Z", "20241031T150000", "2024-11-01T12:00:00Z", "20241101T140000"),
      ("America/Nuuk", "2025-03-30T00:00:00Z", "20250329T220000", "2025-03-30T02:00:00Z", "20250330T010000"),
      ("EST5EDT", "2026-07-01T12:00:00Z", "20260701T080000", "2026-07-01T13:00:00Z", "20260701T090000"),
      // Ireland's standard time is its summer time. In winter the clocks are set back from it.
      ("Europe/Dublin", "2026-01-10T12:00:00Z", "20260110T120000", "2026-01-10T13:00:00Z", "20260110T130000"),
      ("Europe/Dublin", "2026-07-10T12:00:00Z", "20260710T130000", "2026-07-10T13:00:00Z", "20260710T140000"),
      // An old offset with seconds.
      ("Africa/Monrovia", "1971-06-01T12:00:00Z", "19710601T111530", "1971-06-01T13:00:00Z", "19710601T121530"),
    ]
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (zone, start, localStart, end, localEnd) in cases {
        let file = try await ana.calendar(from: start, to: end, in: zone)
        #expect(file.lines.contains("DTSTART;TZID=\(zone):\(localStart)"), "\(zone) \(start)")
        #expect(file.lines.contains("DTEND;TZID=\(zone):\(localEnd)"), "\(zone) \(start)")
        #expect(file.lines.filter { $0 == "TZID:\(zone)" }.count == 1)
        let (first, last) = (try file.instant("DTSTART").rfc3339(), try file.instant("DTEND").rfc3339())
        #expect(first == start && last == end, "\(zone): \(first) to \(last)")
      }
    }
  }

  @Test func `a zone with a yearly rule is two recurring observances, and others list their changes`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      func zone(_ zone: String, _ start: String = "2026-05-01T18:00:00Z") async throws -> [String] {
        let file = try await ana.calendar(from: start, to: start.replacing("18:00:00Z", with: "18:30:00Z"), in: zone)
        let lines = file.lines.drop { $0 != "TZID:\(zone)" }.dropFirst()
        return Array(lines.prefix { $0 != "END:VTIMEZONE" })
      }
      #expect(
        try await zone("Europe/Berlin") == [
          "BEGIN:STANDARD", "DTSTART:20241027T030000", "TZOFFSETFROM:+0200", "TZOFFSETTO:+0100",
          "RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU", "END:STANDARD", "BEGIN:DAYLIGHT", "DTSTART:20250330T020000",
          "TZOFFSETFROM:+0100", "TZOFFSETTO:+0200", "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", "END:DAYLIGHT",
        ])
      for (name, rules) in [
        ("America/New_York", ["BYMONTH=3;BYDAY=2SU", "BYMONTH=11;BYDAY=1SU"]),
        ("Australia/Lord_Howe", ["BYMONTH=10;BYDAY=1SU", "BYMONTH=4;BYDAY=1SU"]),
        // Ireland's winter is its daylight saving time to some, but not to calendars.
        ("Europe/Dublin", ["BYMONTH=3;BYDAY=-1SU", "BYMONTH=10;BYDAY=-1SU"]),
        // Two in the morning after the fourth Thursday.
        ("Asia/Jerusalem", ["BYMONTH=3;BYMONTHDAY=23,24,25,26,27,28,29;BYDAY=FR", "BYMONTH=10;BYDAY=-1SU"]),
        ("Asia/Kolkata", []), ("Japan", []), ("Africa/Casablanca", []),
        // Midnight after the last Thursday may be in November.
        ("Africa/Cairo", []),
      ] {
        let lines = try await zone(name)
        let found = lines.filter { $0.hasPrefix("RRULE:") }
        #expect(Set(found) == Set(rules.map { "RRULE:FREQ=YEARLY;\($0)" }), "\(name)")
        if !rules.isEmpty {
          #expect(lines.count { $0.hasPrefix("BEGIN:") } == 2, "\(name)")
          let summer = try #require(lines.firstIndex(of: "BEGIN:DAYLIGHT"))
          #expect(lines[(summer + 1)...].first { $0.hasPrefix("RRULE") } == "RRULE:FREQ=YEARLY;\(rules[0])", "\(name)")
        }
      }
      #expect(
        try await zone("Asia/Kolkata").filter { $0.hasPrefix("TZOFFSET") } == [
          "TZOFFSETFROM:+0530", "TZOFFSETTO:+0530",
        ])
      #expect(try await zone("Africa/Casablanca").count { $0.hasPrefix("BEGIN:") } > 3)
      // In the year before the rule of today: its changes, and then the rule.
      let before = try await zone("America/New_York", "2006-08-01T18:00:00Z")
      #expect(before.contains("DTSTART:20061029T020000") && before.contains("RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=2SU"))
    }
  }

  @Test func `times that local time cannot express are given in UTC`() async throws {
    let cases = [
      // Half past two in Berlin, the first and the second, as the start of one event and the end of another.
      ("Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T05:00:00Z"),
      ("Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T05:00:00Z"),
      ("Europe/Berlin", "2026-10-24T20:00:00Z", "2026-10-25T01:59:59Z"),
      ("Australia/Lord_Howe", "2026-04-04T15:00:00Z", "2026-04-04T17:00:00Z"),
      ("UTC", "2026-05-01T18:00:00Z", "2026-05-01T19:00:00Z"),
      ("Etc/GMT+5", "2026-05-01T18:00:00Z", "2026-05-01T19:00:00Z"),
      // The longest and latest events.
      ("Europe/Berlin", "2037-12-31T18:00:00Z", "2038-01-01T00:00:00Z"),
      ("Europe/Berlin", "2026-05-01T18:00:00Z", "2028-05-01T18:00:00Z"),
      ("Europe/Berlin", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"),
      ("Europe/Berlin", "9999-12-31T23:00:00Z", "9999-12-31T23:59:59Z"),
    ]
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (zone, start, end) in cases {
        let file = try await ana.calendar(from: start, to: end, in: zone)
        let digits = [start, end].map { $0.filter { $0 != "-" && $0 != ":" } }
        #expect(file.lines.contains("DTSTART:\(digits[0])"), "\(zone) \(start)")
        #expect(file.lines.contains("DTEND:\(digits[1])"), "\(zone) \(end)")
        #expect(!file.text.contains("TZ"), "\(zone) \(start)")
      }
    }
  }

  // MARK: Text

  @Test func `long lines are folded between characters`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", displayName: String(repeating: "é", count: 100))
      for shift in 0..<8 {
        // Characters of 1, 2, 3 and 4 octets, and some that consist of several code points.
        let title = String(repeating: "x", count: shift) + String(repeating: "🧗‍♀️é日🎉", count: 20)
        let id = try await ana.makeEvent(
          #"{"title": "\#(title)", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#)
        let file = try await ana.calendar(of: id)
        #expect(file.value("SUMMARY") == title.precomposedStringWithCanonicalMapping)
        #expect(file.foldedLines.count > file.lines.count + 5)
        for line in file.foldedLines {
          #expect(line.count <= 75)
          // The first octet must not be a continuation octet of a character.
          #expect(line.first.map { $0 & 0b1100_0000 == 0b1000_0000 } != true, "a character is split")
        }
        #expect(!file.text.contains("\u{fffd}"), "a character is split")
      }
    }
  }

  @Test func `text cannot inject a property`() async throws {
    let texts = [
      (#"a\\b;c,d:e\"f"#, #"a\\b\;c\,d:e"f"#), (#"\\n"#, #"\\n"#),
      (#"Innocent\r\nATTENDEE:mailto:eve@example.com"#, #"Innocent\nATTENDEE:mailto:eve@example.com"#),
      (#"A\nEND:VEVENT\rBEGIN:VEVENT"#, #"A\nEND:VEVENT\nBEGIN:VEVENT"#), (#"A\n\rB\r\n\r\nC"#, #"A\n\nB\n\nC"#),
      (#"A\u2028STATUS:X\u2029B\u0085C\u000bD\u000cE"#, #"A\nSTATUS:X\nB\nC\nD\nE"#),
      (#"tab\tbell\u0007escape\u001bdelete\u007f."#, "tab\tbellescapedelete."),
    ]
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let plain = try await ana.calendar(
        of: ana.makeEvent(
          """
          {"title": "A", "note": "B", "location": {"name": "C"}, "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}
          """))
      for (text, written) in texts {
        let id = try await ana.makeEvent(
          """
          {"title": "T", "note": "\(text)", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC",
           "location": {"name": "L"}}
          """)
        // An older release accepted such text.
        try await app.database.execute("UPDATE events SET title = note, location_name = note WHERE title = 'T'")
        let file = try await ana.calendar(of: id)
        for name in ["SUMMARY", "DESCRIPTION", "LOCATION"] { #expect(file.value(name) == written, "\(name): \(text)") }
        #expect(file.names == plain.names, "\(text)")
      }
    }
  }

  @Test func `a host's name cannot inject a property either`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      // An older release accepted such names.
      try await app.database.execute(
        "UPDATE users SET display_name = \("Ana \"A\"; D,\r\nX: é\u{2028}\u{7}")")
      let id = try await ana.createEvent()["id"].string ?? ""
      let file = try await ana.calendar(of: id)
      #expect(file.lines.contains("ORGANIZER;CN=\"Ana 'A'; D,  X: é  \":urn:uuid:\(ana.id)"), "\(file.text)")
    }
  }
}

/// A calendar file, parsed as a calendar app does and not with the service's own code.
private struct CalendarFile {
  let text: String
  /// The lines as sent, without their CRLF.
  let foldedLines: [[UInt8]]
  /// The unfolded lines.
  let lines: [String]

  private struct Unreadable: Error {
    let text: String
  }

  init(_ response: APIResponse) throws {
    text = response.body
    let bytes = Array(text.utf8)
    var folded: [[UInt8]] = [[]]
    for (index, byte) in bytes.enumerated() {
      switch byte {
      case UInt8(ascii: "\r"): try #require(index + 1 < bytes.count && bytes[index + 1] == UInt8(ascii: "\n"))
      case UInt8(ascii: "\n"):
        try #require(index > 0 && bytes[index - 1] == UInt8(ascii: "\r"))
        folded.append([])
      default: folded[folded.count - 1].append(byte)
      }
    }
    let rest = folded.removeLast()
    try #require(rest.isEmpty, "the last line has no line break")
    foldedLines = folded
    var whole: [[UInt8]] = []
    for line in folded {
      if line.first == UInt8(ascii: " ") {
        try #require(!whole.isEmpty)
        whole[whole.count - 1] += line.dropFirst()
      } else {
        whole.append(line)
      }
    }
    lines = whole.map { String(decoding: $0, as: UTF8.self) }
  }

  /// The names of the event's properties in order, including BEGIN and END.
  var names: [String] { event.map { String($0.prefix { $0 != ":" && $0 != ";" }) } }

  private var event: ArraySlice<String> { lines.drop { $0 != "BEGIN:VEVENT" } }

  /// The value of a property of the event, without its parameters. Nil if there is none.
  func value(_ name: String) -> String? {
    let line = event.first { $0.hasPrefix("\(name):") || $0.hasPrefix("\(name);") }
    return line.map { String($0.drop { $0 != ":" }.dropFirst()) }
  }

  /// The instant of a time property, by the zone in the file.
  func instant(_ name: String) throws -> Timestamp {
    let text = try #require(value(name))
    let time = try Self.time(text)
    if text.hasSuffix("Z") { return time }
    let observances = try self.observances
    // A repeated local time means its first occurrence.
    let candidates = observances.map { time.adding(seconds: -$0.offset) }.sorted()
    let instant = candidates.first { candidate in
      let current = observances.last { $0.onset <= candidate }
      return current.map { candidate.adding(seconds: $0.offset) == time } ?? false
    }
    return try #require(instant, "\(name)")
  }

  /// Sorted by onset.
  private var observances: [(onset: Timestamp, offset: Int)] {
    get throws {
      var found: [(onset: Timestamp, offset: Int)] = []
      for (index, line) in lines.enumerated() where line == "BEGIN:STANDARD" || line == "BEGIN:DAYLIGHT" {
        let properties = lines[(index + 1)...].prefix { !$0.hasPrefix("END:") }
        func property(_ name: String) throws -> String {
          let line = try #require(properties.first { $0.hasPrefix("\(name):") })
          return String(line.dropFirst(name.count + 1))
        }
        let before = try Self.offset(try property("TZOFFSETFROM"))
        let offset = try Self.offset(try property("TZOFFSETTO"))
        let first = try Self.time(try property("DTSTART"))
        let rule = properties.first { $0.hasPrefix("RRULE:") }
        for onset in try rule.map({ try Self.occurrences(of: $0, from: first) }) ?? [first] {
          found.append((onset.adding(seconds: -before), offset))
        }
      }
      return found.sorted { $0.onset < $1.onset }
    }
  }

  /// The first times of a yearly rule, which must include the start itself.
  private static func occurrences(of rule: String, from first: Timestamp) throws -> [Timestamp] {
    guard
      let match = rule.wholeMatch(
        of: /RRULE:FREQ=YEARLY;BYMONTH=(\d+);(?:BYMONTHDAY=([\d,]+);)?BYDAY=(-1|\d)?([A-Z]{2})/)
    else { throw Unreadable(text: rule) }
    let weekdays: [Substring] = ["TH", "FR", "SA", "SU", "MO", "TU", "WE"]
    let seconds = Int(first.microseconds / 1_000_000)
    let (start, time) = (Day(days: seconds / 86_400), seconds % 86_400)
    var found: [Timestamp] = []
    for year in start.calendar.year..<start.calendar.year + 60 {
      let days = (1...31).compactMap { Day(year: year, month: Int(match.1) ?? 0, day: $0) }
        .filter { weekdays[$0.days % 7] == match.4 }
      let allowed = match.2?.split(separator: ",").compactMap { Int($0) }
      let day: Day? =
        if let allowed { days.first { allowed.contains($0.calendar.day) } } else if match.3 == "-1" { days.last } else {
          match.3.flatMap { Int($0) }.map { days[$0 - 1] }
        }
      guard let day else { throw Unreadable(text: rule) }
      found.append(Timestamp(microseconds: Int64(day.days * 86_400 + time) * 1_000_000))
    }
    guard found.first == first else { throw Unreadable(text: "\(rule) does not begin with DTSTART") }
    return found
  }

  /// A date and time, parsed as if it were in UTC.
  private static func time(_ text: String) throws -> Timestamp {
    guard let match = text.wholeMatch(of: /(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z?/)?.output,
      let time = Timestamp(rfc3339: "\(match.1)-\(match.2)-\(match.3)T\(match.4):\(match.5):\(match.6)Z")
    else { throw Unreadable(text: text) }
    return time
  }

  private static func offset(_ text: String) throws -> Int {
    guard let match = text.wholeMatch(of: /([+-])(\d\d)(\d\d)(\d\d)?/)?.output else {
      throw Unreadable(text: text)
    }
    let parts = [match.2, match.3, match.4 ?? "0"].map { Int($0) ?? 0 }
    return (match.1 == "-" ? -1 : 1) * (parts[0] * 3600 + parts[1] * 60 + parts[2])
  }
}

extension Phone {
  fileprivate func calendar(
    of event: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> CalendarFile {
    let response = try await send("GET", "events/\(event)/calendar.ics")
    #expect(response.status == 200, "\(response.body)", sourceLocation: sourceLocation)
    return try CalendarFile(response)
  }

  /// Creates an event and reads its calendar file.
  fileprivate func calendar(from start: String, to end: String, in zone: String) async throws -> CalendarFile {
    try await calendar(
      of: makeEvent(#"{"title": "A", "startTime": "\#(start)", "endTime": "\#(end)", "timeZone": "\#(zone)"}"#))
  }

  /// - Returns: the event's id.
  fileprivate func makeEvent(_ body: String, sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
    let response = try await send("POST", "events", body)
    #expect(response.status == 201, "\(response.body)", sourceLocation: sourceLocation)
    return try #require(response.json["id"].string, sourceLocation: sourceLocation)
  }
}
