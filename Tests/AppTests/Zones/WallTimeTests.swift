import Foundation
import Postgres
import Testing

@testable import App

/// Times without an offset are readings of the clocks in the event's time zone.
@Suite struct WallTimeTests {
  private func create(_ phone: Phone, _ times: String, in zone: String = "America/New_York") async throws -> APIResponse
  {
    try await phone.send("POST", "events", #"{"title": "Walk", "timeZone": "\#(zone)", \#(times)}"#)
  }

  private func offsets(of event: JSON, in app: TestApp) async throws -> [Int?] {
    let id = try #require(event["id"].string.flatMap { Event.ID($0) })
    let row = try #require(
      try await app.database.first("SELECT start_offset, end_offset, answer_by_offset FROM events WHERE id = \(id)"))
    return [try row["start_offset"], try row["end_offset"], try row["answer_by_offset"]]
  }

  @Test func `names and links of the IANA database are accepted, and nothing else`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for zone in [
        "Japan", "EST5EDT", "NZ", "US/Pacific", "Asia/Calcutta", "Etc/GMT-14", "GMT", "Zulu", "Europe/Kyiv",
        "America/Argentina/ComodRivadavia", "EST", "UTC", "Pacific/Kiritimati", "Africa/Casablanca",
      ] {
        let response = try await create(ana, #""startTime": "2030-05-01T18:00:00Z""#, in: zone)
        #expect(response.status == 201 && response.json["timeZone"].string == zone, "\(zone): \(response.body)")
        let file = try await ana.send("GET", "events/\(response.json["id"].string ?? "")/calendar.ics")
        #expect(file.status == 200 && file.body.contains("DTEND"), "\(zone)")
      }
      for zone in [
        "SystemV/PST8PDT", "Mars/Olympus", "GMT+2x", "posix/Europe/Berlin", "right/Europe/Berlin", "localtime",
        "posixrules", "../etc/passwd", "/etc/localtime", "Europe/../Europe/Berlin", "europe/berlin", "EUROPE/BERLIN",
        "Europe", "Europe/", "/Europe/Berlin", "Europe//Berlin", "Europe/Berlin/Mitte", "", "CEST", "+02:00", "GMT+2",
        "tzdata.zi", "zone.tab", "leapseconds", "PST", "UTC+1",
        "Europe/Berlin\\u0000", "Europe/Berlin\\u200b", "Europe/Bérlin",
      ] {
        let response = try await create(ana, #""startTime": "2030-05-01T18:00:00Z""#, in: zone)
        #expect(response.status == (zone.contains("u0000") ? 400 : 422), "\(zone): \(response.body)")
        if response.status == 422 { #expect(response.badFields == ["timeZone"], "\(zone): \(response.body)") }
      }
    }
  }

  @Test func `a time without an offset is local, and times on the wire stay instants`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (zone, start, instant, offset) in [
        ("America/New_York", "2030-05-01T18:00:00", "2030-05-01T22:00:00Z", -14_400),
        ("America/New_York", "2030-01-15T18:00", "2030-01-15T23:00:00Z", -18_000),
        ("Asia/Kathmandu", "2030-05-01T18:00:00.999", "2030-05-01T12:15:00Z", 20_700),
        // A repeated hour: the first time around. A skipped one: by the offset before.
        ("America/New_York", "2030-11-03T01:30:00", "2030-11-03T05:30:00Z", -14_400),
        ("America/New_York", "2030-03-10T02:30:00", "2030-03-10T07:30:00Z", -18_000),
        ("Asia/Tokyo", "1971-01-01T00:00:00", "1970-12-31T15:00:00Z", 32_400),
        ("UTC", "9998-12-31T23:59:59", "9998-12-31T23:59:59Z", 0),
      ] {
        let response = try await create(ana, #""startTime": "\#(start)""#, in: zone)
        #expect(response.status == 201 && response.json["startTime"].string == instant, "\(start): \(response.body)")
        #expect(try await offsets(of: response.json, in: app) == [offset, nil, nil], "\(start)")
      }
      for start in [
        "2030-05-01", "2030-05-01T18", "2030-05-01T24:00:00", "2030-02-30T18:00:00", "2030-05-01T18:00:61",
        "1970-12-31T18:00",
        "9999-01-01T00:00", "2030-05-01T18:00:", "2030-05-01T18:00:00.", "2030-05-01T18:00:00[Europe/Berlin]",
        "2030-05-01T18:00+2", "18:00",
      ] {
        let response = try await create(ana, #""startTime": "\#(start)""#)
        #expect(response.badFields == ["startTime"], "\(start): \(response.body)")
      }
      // In an unknown zone, no one can say whether it ends after it starts.
      let lost = try await create(
        ana, #""startTime": "2030-05-01T18:00:00", "endTime": "2030-05-01T17:00:00Z""#, in: "Mars/Olympus")
      #expect(lost.badFields == ["timeZone"], "\(lost.body)")
      // Both, compared as instants.
      let both = try await create(
        ana,
        #""startTime": "2030-05-01T18:00:00", "endTime": "2030-05-01T21:59:59Z", "answerBy": "2030-05-01T18:00:01""#)
      #expect(Set(both.badFields) == ["endTime", "answerBy"], "\(both.body)")
    }
  }

  @Test func `both half past ones of a repeated hour stay distinct`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await create(
        ana,
        #""startTime": "2030-11-03T05:30:00Z", "endTime": "2030-11-03T06:30:00Z", "answerBy": "2030-11-03T05:30:00Z""#
      ).json
      #expect(event["startTime"].string == "2030-11-03T05:30:00Z" && event["endTime"].string == "2030-11-03T06:30:00Z")
      #expect(try await offsets(of: event, in: app) == [-14_400, -18_000, -14_400])
      // Calendars could not tell them apart.
      let file = try await ana.send("GET", "events/\(event["id"].string ?? "")/calendar.ics").body
      #expect(file.contains("DTSTART:20301103T053000Z") && file.contains("DTEND:20301103T063000Z"))
    }
  }

  @Test func `an edit takes readings of the zone that results from it`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await create(
        ana, #""startTime": "2030-07-01T18:00", "endTime": "2030-07-01T20:00", "answerBy": "2030-06-30T12:00""#
      ).json
      let id = event["id"].string ?? ""
      func edit(_ body: String, _ times: [String?], _ expected: [Int?]) async throws {
        let edited = try await ana.edit(id, body)
        #expect(edited.status == 200, "\(body): \(edited.body)")
        let read = ["startTime", "endTime", "answerBy"].map { edited.json[$0].string }
        #expect(read == times, "\(body)")
        #expect(try await offsets(of: event, in: app) == expected, "\(body)")
      }
      // A new zone alone keeps the instants.
      try await edit(
        #"{"timeZone": "Europe/Berlin"}"#, ["2030-07-01T22:00:00Z", "2030-07-02T00:00:00Z", "2030-06-30T16:00:00Z"],
        [7200, 7200, 7200])
      try await edit(
        #"{"startTime": "2030-07-01T19:00", "endTime": "2030-07-01T22:00:00Z", "answerBy": null}"#,
        ["2030-07-01T17:00:00Z", "2030-07-01T22:00:00Z", nil], [7200, 7200, nil])
      try await edit(
        #"{"timeZone": "Asia/Tokyo", "startTime": "2030-07-01T19:00"}"#,
        ["2030-07-01T10:00:00Z", "2030-07-01T22:00:00Z", nil], [32_400, 32_400, nil])
      // A time that was planned for a skipped hour keeps its reading until a host moves it.
      try await edit(
        #"{"timeZone": "America/New_York", "startTime": "2030-03-10T02:30", "endTime": null}"#,
        ["2030-03-10T07:30:00Z", nil, nil], [-18_000, nil, nil])
      try await edit(
        #"{"startTime": "2030-03-10T07:30:00Z", "title": "Same"}"#, ["2030-03-10T07:30:00Z", nil, nil],
        [-18_000, nil, nil])
      let early = try await ana.edit(id, #"{"endTime": "2030-03-10T03:30"}"#, expecting: 422)
      #expect(early.badFields == ["endTime"], "\(early.body)")
    }
  }

  @Test func `a copy takes readings of the event's zone`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await create(ana, #""startTime": "2030-07-01T18:00", "endTime": "2030-07-01T20:00""#).json
      let path = "events/\(event["id"].string ?? "")/duplicate"
      let winter = try await ana.send("POST", path, #"{"startTime": "2030-12-01T18:00"}"#).json
      #expect(
        winter["startTime"].string == "2030-12-01T23:00:00Z" && winter["endTime"].string == "2030-12-02T01:00:00Z")
      #expect(try await offsets(of: winter, in: app) == [-18_000, -18_000, nil])
      let long = try await ana.send("POST", path, #"{"startTime": "2030-11-03T01:30", "endTime": "2030-11-03T02:30"}"#)
        .json
      #expect(long["startTime"].string == "2030-11-03T05:30:00Z" && long["endTime"].string == "2030-11-03T07:30:00Z")
      let wrong = try await ana.send("POST", path, #"{"startTime": "2030-11-03T01:30", "endTime": "2030-11-03T01:30"}"#)
      #expect(wrong.badFields == ["endTime"])
    }
  }

  /// The rules are those of the files, whatever the release was built with.
  @Test func `pages and calendars show what the installed rules say`() async throws {
    let summer: Int64 = 1_772_964_000
    let made = try MadeZones(
      version: "2026a",
      [
        // Daylight saving time without an end.
        "America/Vancouver": .init(
          first: (-28_800, false), changes: [(summer, -25_200, true)], rule: "<-07>7"),
        "America/Edmonton": .init(first: (-25_200, false), changes: [(summer, -21_600, true)], rule: "<-06>6"),
        "America/Winnipeg": .init(first: (-21_600, false), rule: "<-06>6"),
        "America/Havana": .init(first: (-18_000, false), changes: [(summer, -14_400, true)], rule: "<-04>4"),
        "Africa/Casablanca": .init(first: (3600, false), changes: [(summer, 0, false)], rule: "<+00>0"),
      ])
    defer { made.remove() }
    try await TestApp.run([Variable.table.zoneFolder.name: made.folder.path], isShared: false) { app in
      let ana = try await app.signUp("ana")
      for (zone, start, local, day, clock) in [
        ("America/Vancouver", "2027-01-16T02:00:00Z", "20270115T190000", "Friday, January 15, 2027", "7:00 PM"),
        ("America/Edmonton", "2027-01-16T02:00:00Z", "20270115T200000", "Friday, January 15, 2027", "8:00 PM"),
        ("America/Winnipeg", "2027-07-16T02:00:00Z", "20270715T200000", "Thursday, July 15, 2027", "8:00 PM"),
        ("America/Havana", "2027-01-16T02:00:00Z", "20270115T220000", "Friday, January 15, 2027", "10:00 PM"),
        ("Africa/Casablanca", "2027-07-16T12:00:00Z", "20270716T120000", "Friday, July 16, 2027", "12:00 PM"),
      ] {
        let event = try await create(ana, #""startTime": "\#(start)""#, in: zone).json["id"].string ?? ""
        let file = try await ana.send("GET", "events/\(event)/calendar.ics").body
        #expect(file.contains("DTSTART;TZID=\(zone):\(local)\r\n"), "\(file)")
        let link = try await ana.createLink(to: event, #"{"kind": "view"}"#)
        let page = try await app.send("GET", "/e/\(link.token)").body
        #expect(page.contains("\(day), \(clock)"), "\(zone): \(page)")
      }
      let unknown = try await create(ana, #""startTime": "2027-01-16T02:00:00Z""#, in: "Europe/Berlin")
      #expect(unknown.badFields == ["timeZone"])
    }
  }
}
