import Postgres
import Testing

@testable import App

/// Time zones, daylight saving time, and lists sorted by time.
@Suite struct EventTimeTests {
  private func create(
    _ phone: Phone, from start: String, to end: String? = nil, in zone: String = "Europe/Berlin"
  ) async throws -> APIResponse {
    try await phone.send(
      "POST", "events",
      """
      {"title": "Walk", "startTime": "\(start)", "endTime": \(end.map { "\"\($0)\"" } ?? "null"),
       "timeZone": "\(zone)"}
      """)
  }

  @Test func `times are instants, even around daylight saving changes`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (zone, start, end, startUTC, endUTC) in [
        // Spring: three o'clock follows one second before two o'clock.
        (
          "Europe/Berlin", "2030-03-31T01:59:59+01:00", "2030-03-31T03:00:00+02:00", "2030-03-31T00:59:59Z",
          "2030-03-31T01:00:00Z"
        ),
        // Autumn: half past two happens twice, and a quarter past two can be later.
        (
          "Europe/Berlin", "2030-10-27T02:30:00+02:00", "2030-10-27T02:15:00+01:00", "2030-10-27T00:30:00Z",
          "2030-10-27T01:15:00Z"
        ),
        (
          "America/New_York", "2030-11-03T01:30:00-04:00", "2030-11-03T01:30:00-05:00", "2030-11-03T05:30:00Z",
          "2030-11-03T06:30:00Z"
        ),
        // Daylight saving time of half an hour.
        (
          "Australia/Lord_Howe", "2030-04-07T01:45:00+11:00", "2030-04-07T01:45:00+10:30", "2030-04-06T14:45:00Z",
          "2030-04-06T15:15:00Z"
        ),
      ] {
        let response = try await create(ana, from: start, to: end, in: zone)
        #expect(response.status == 201, "\(response.body)")
        #expect(response.json["startTime"].string == startUTC)
        #expect(response.json["endTime"].string == endUTC)
        #expect(response.json["timeZone"].string == zone)
      }
      // The end is later in local time, but earlier in fact.
      let order = try await create(ana, from: "2030-10-27T02:15:00+01:00", to: "2030-10-27T02:30:00+02:00")
      #expect(order.badFields == ["endTime"])
    }
  }

  @Test func `changing the time zone does not change the times`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent(inviting: [ben])
      let id = event["id"].string ?? ""
      try await app.takeNotifications()
      let edited = try await ana.edit(id, #"{"timeZone": "Asia/Tokyo"}"#).json
      #expect(edited["timeZone"].string == "Asia/Tokyo")
      #expect(edited["startTime"] == event["startTime"] && edited["endTime"] == event["endTime"])
      let received = try await app.takeNotifications()
      #expect(received.map { $0.payload["changes"].array.compactMap { $0["field"].string } } == [["timeZone"]])
    }
  }

  @Test func `an event stays live for 24 hours after its end, even across a daylight saving change`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (start, end, last) in [
        // The clocks go back in between, so the local time is an hour earlier.
        ("2019-10-26T20:00:00+02:00", "2019-10-26T22:00:00+02:00", "2019-10-27T21:00:00+01:00"),
        ("2020-03-28T20:00:00+01:00", "2020-03-28T22:00:00+01:00", "2020-03-29T23:00:00+02:00"),
        // Without an end, the event counts as six hours long.
        ("2020-06-01T12:00:00+02:00", nil, "2020-06-02T18:00:00+02:00"),
      ] {
        let id = try await create(ana, from: start, to: end).json["id"].string ?? ""
        let time = try #require(Timestamp(rfc3339: last))
        for (now, archived) in [(time.adding(seconds: -1), 0), (time, 1)] {
          let count = try await app.service.change { try await Event.archive(endedBefore: now, atMost: 10, in: $0) }
          #expect(count == archived, "\(last)")
        }
        #expect(try await ana.get("events?when=past")["items"][0]["id"].string == id)
      }
    }
  }

  // MARK: Pages

  private func archive(_ app: TestApp) async throws {
    _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 100, in: $0) }
  }

  @Test func `pages of the archive neither repeat nor skip an event while others are archived`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      func past(_ title: String, _ start: String) async throws {
        try await ana.createEvent(title, inviting: [ben], startTime: start, endTime: nil)
      }
      // Each two events have the same start.
      for day in 1...12 { try await past("Day \(day)", "2020-01-\(10 + (day + 1) / 2)T10:00:00Z") }
      try await archive(app)
      let all = try await ana.get("events?when=past")["items"].array.compactMap { $0["title"].string }
      #expect(Set(all.prefix(2)) == ["Day 11", "Day 12"] && Set(all.suffix(2)) == ["Day 1", "Day 2"])
      for phone in [ana, ben] {
        let items = try await phone.pages(of: "events?when=past", limit: 5) { page in
          try await past("Later", "2020-02-0\(page % 9 + 1)T10:00:00Z")
          try await past("Between", "2020-01-13T1\(page % 10):00:00Z")
          try await past("Together", "2020-01-14T10:00:00Z")
          try await past("Earlier", "2019-12-0\(page % 9 + 1)T10:00:00Z")
          try await archive(app)
        }
        let titles = items.compactMap { $0["title"].string }.filter { $0.hasPrefix("Day") }
        #expect(titles == all)
        #expect(Set(items.compactMap { $0["id"].string }).count == items.count)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `pages of live events neither repeat nor skip an event that keeps its start`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      func create(_ title: String, _ start: String) async throws -> String {
        try await ana.createEvent(title, inviting: [ben], startTime: start, endTime: nil)["id"].string ?? ""
      }
      for phone in [ana, ben] {
        var staying: [String] = []
        var moving: [String] = []
        for day in 10...21 {
          staying.append(try await create("Stays", "2030-01-\(day)T10:00:00Z"))
          if day % 3 == 0 { moving.append(try await create("Moves", "2030-01-\(day)T12:00:00Z")) }
        }
        let items = try await phone.pages(of: "events", limit: 4) { page in
          _ = try await create("New", "2030-01-1\(page % 10)T11:00:00Z")
          _ = try await create("New", "2030-01-01T10:00:00Z")
          if page % 2 == 0, let id = moving.popLast() {
            try await ana.edit(id, #"{"startTime": "2030-01-09T10:00:00Z"}"#)
          }
          // Changes that do not move the event in the list.
          let id = staying[page % staying.count]
          try await ana.edit(id, #"{"title": "Stays \#(page)", "capacity": \#(page)}"#)
          try await ben.answer("going", to: id)
          if page == 3 { try await ana.cancelEvent(staying[0]) }
        }
        let seen = items.compactMap { $0["id"].string }
        #expect(seen.filter { staying.contains($0) } == staying)
        try await app.database.execute("DELETE FROM events")
      }
      try await app.takeNotifications()
    }
  }
}
