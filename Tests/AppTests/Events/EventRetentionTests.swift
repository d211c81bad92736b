import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// How long events stay in the archive: an operator may set it.
@Suite struct EventRetentionTests {
  private static let limited = ["MUSTER_EVENT_RETENTION_DAYS": "200"]

  private func age(_ event: String, days: Int, in app: TestApp) async throws {
    try await app.database.execute(
      """
      UPDATE events SET archived_at = clock_timestamp() - make_interval(days => \(Int32(days)))
      WHERE id::text = \(event)
      """)
  }

  /// An event in the archive, with a host, a guest who goes, and a link.
  private func archived(by ana: Phone, inviting ben: Phone, in app: TestApp) async throws -> String {
    let event = try await ana.createEvent("Swim", inviting: [ben])["id"].string ?? ""
    _ = try await ana.createLink(to: event, #"{"kind": "view"}"#)
    try await ben.answer("going", to: event)
    try await app.database.execute(
      """
      UPDATE events
      SET start_time = now() - interval '40 hours', end_time = NULL, end_offset = NULL,
        live_until = now() - interval '10 hours'
      """)
    await app.keepHouse()
    try await app.takeNotifications()
    return event
  }

  @Test func `an event is deleted for everyone when its days in the archive are over`() async throws {
    try await TestApp.run(Self.limited) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await archived(by: ana, inviting: ben, in: app)
      try await age(event, days: 199, in: app)
      await app.keepHouse()
      #expect(try await ben.get("events?when=past")["items"].array.count == 1)
      try await age(event, days: 201, in: app)
      let stamps = [try await ana.refreshLists(), try await ben.refreshLists()]
      await app.keepHouse()
      for (phone, stamps) in zip([ana, ben], stamps) {
        // No list with a stamp has shown it for long.
        #expect(try await phone.stale(stamps) == [])
        #expect(try await phone.get("events?when=past")["items"].array.isEmpty)
        #expect(try await phone.send("GET", "events/\(event)").status == 404)
        let export = try await phone.get("users/me/export")
        #expect(export["events"].array.isEmpty && export["invitations"].array.isEmpty)
      }
      let left: SQL = """
        SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM invitations) + (SELECT count(*) FROM share_links)
        """
      #expect(try await app.value(left) == 0)
      #expect(try await app.takeNotifications().isEmpty)
      // Its id stays taken.
      let draft = #"{"id": "\#(event)", "title": "Swim", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#
      #expect(try await ben.send("POST", "events", draft).problem == "id-taken")
    }
  }

  @Test func `by default, events stay in the archive`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await age(try await archived(by: ana, inviting: ben, in: app), days: 36_600, in: app)
      await app.keepHouse()
      #expect(try await ben.get("events?when=past")["items"].array.count == 1)
    }
  }

  @Test func `live events stay, and so does an event while it has visitors or another transaction has locked it`()
    async throws
  {
    try await TestApp.run(Self.limited) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await archived(by: ana, inviting: ben, in: app)
      try await ana.createEvent("Next")
      try await age(event, days: 201, in: app)
      try await app.database.execute("UPDATE events SET visitor_count = 1 WHERE id::text = \(event)")
      await app.keepHouse()
      #expect(try await ana.get("events?when=past")["items"].array.count == 1)
      try await app.database.execute("UPDATE events SET visitor_count = 0 WHERE id::text = \(event)")
      try await app.database.transaction { holder in
        try await holder.rows("SELECT FROM events FOR KEY SHARE")
        // Detached: in this task, the transaction is open.
        await Task.detached { await app.keepHouse() }.value
      }
      #expect(try await ana.get("events?when=past")["items"].array.count == 1)
      await app.keepHouse()
      #expect(try await ana.get("events?when=past")["items"].array.isEmpty)
      #expect(try await ana.get("events")["items"].array.map { $0["title"].string } == ["Next"])
    }
  }

  @Test func `one batch deletes the events that have been in the archive longest`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      var events: [String] = []
      for days in [300, 500, 400] {
        events.append(try await archived(by: ana, inviting: ben, in: app))
        try await age(try #require(events.last), days: days, in: app)
      }
      let deleted = try await app.service.change { try await Event.deleteArchived(keptFor: 200, atMost: 2, in: $0) }
      #expect(deleted == 2)
      #expect(try await ana.get("events?when=past")["items"].array.map { $0["id"].string } == [events[0]])
    }
  }

  @Test func `a visitor's page says how long the event is kept, if that is limited`() async throws {
    for environment in [Self.limited, [:]] {
      try await TestApp.run(environment) { app in
        let ana = try await app.signUp("ana")
        let event = try await ana.createEvent("Swim")["id"].string ?? ""
        let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
        let page = try await app.visit(link.token, "maybe").page().body
        #expect(page.contains("erased 90 days after the event"))
        #expect(page.contains("The event itself is deleted 200 days after its end") == !environment.isEmpty)
        try await app.takeNotifications()
      }
    }
  }
}
