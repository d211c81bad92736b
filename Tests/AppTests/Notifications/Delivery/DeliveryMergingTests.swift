import Foundation
import Postgres
import Testing

@testable import App

/// Which waiting deliveries merge into one, and what the merged delivery says.
@Suite struct DeliveryMergingTests {
  private struct Waiting: Equatable {
    let id: UUID
    let payload: JSON
    let isDue: Bool
  }

  /// The deliveries that wait about an event, oldest first.
  private func waiting(_ event: String, in app: TestApp) async throws -> [Waiting] {
    try await app.database.rows(
      """
      SELECT notification_id, payload::text, due_at <= now() AS is_due FROM deliveries
      WHERE subject_id = \(try #require(Event.ID(event))) ORDER BY id
      """
    ).map { row in
      let payload: String = try row["payload"]
      return Waiting(
        id: try row["notification_id"], payload: try JSON(parsing: payload.utf8), isDue: try row["is_due"])
    }
  }

  /// Ana's event with ben as a guest, whose phone is registered. Nothing waits.
  private func run(
    _ body: @escaping @Sendable (_ app: TestApp, _ ana: Phone, _ ben: Phone, _ event: String) async throws -> Void
  ) async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent("Swim", inviting: [ben])["id"].string ?? ""
      try await ana.register(token: "anas")
      try await ben.register(token: "bens")
      try await app.takeNotifications()
      try await body(app, ana, ben, event)
      try await app.takeNotifications()
    }
  }

  @Test func `waiting edits of an event become one with the newest id, the first old and the last new values`()
    async throws
  {
    try await run { app, ana, ben, event in
      try await ana.edit(event, #"{"title": "Dive"}"#)
      try await app.fanOut()
      try await ana.edit(event, #"{"title": "Sail", "note": "Warm"}"#)
      try await app.fanOut()
      // The last two are fanned out in one step.
      try await ana.edit(event, #"{"note": "Cold"}"#)
      try await ana.edit(event, #"{"title": "Row"}"#)
      try await app.fanOut()
      let deliveries = try await waiting(event, in: app)
      #expect(deliveries.count == 1)
      let changes = deliveries.first?.payload["changes"].array ?? []
      let texts = changes.map { [$0["field"].string, $0["old"].string, $0["new"].string] }
      #expect(texts.count == 2 && texts.contains(["title", "Swim", "Row"]))
      #expect(texts.first { $0[0] == "note" }?[2] == "Cold")
      let newest = try await ben.get("notifications")["items"][0]["id"].string
      #expect(deliveries.first?.id.uuidString.lowercased() == newest)
    }
  }

  @Test func `an edit does not merge into a delivery that was claimed, nor across another type`() async throws {
    try await run { app, ana, ben, event in
      try await ana.edit(event, #"{"title": "Dive"}"#)
      try await app.fanOut()
      // A worker is sending it.
      try await app.database.execute(
        "UPDATE deliveries SET worker_id = gen_random_uuid(), lease = gen_random_uuid(), attempts = 1")
      try await ana.edit(event, #"{"title": "Sail"}"#)
      try await app.fanOut()
      #expect(try await waiting(event, in: app).count == 2)
      try await ana.edit(event, #"{"title": "Row"}"#)
      try await app.fanOut()
      #expect(try await waiting(event, in: app).count == 2)
      try await ana.cancelEvent(event)
      try await app.fanOut()
      let types = try await waiting(event, in: app).map { $0.payload["type"].string }
      #expect(types == ["event-updated", "event-updated", "event-cancelled"])
      try await app.database.execute("UPDATE deliveries SET worker_id = NULL, lease = NULL")
    }
  }

  @Test func `a guest's answers that wait become one with the last answer`() async throws {
    try await run { app, ana, ben, event in
      for answer in ["going", "maybe", "going", "declined"] {
        try await ben.answer(answer, to: event)
        try await app.fanOut()
      }
      let deliveries = try await waiting(event, in: app)
      #expect(deliveries.map { $0.payload["status"].string } == ["declined"])
    }
  }

  @Test func `a delivery behind one in backoff is due no earlier`() async throws {
    try await run { app, ana, ben, event in
      try await ana.edit(event, #"{"title": "Dive"}"#)
      try await app.fanOut()
      try await app.database.execute("UPDATE deliveries SET attempts = 1, due_at = now() + interval '1 hour'")
      try await ana.edit(event, #"{"title": "Sail"}"#)
      try await app.fanOut()
      #expect(try await waiting(event, in: app).map(\.isDue) == [false, false])
      #expect(try await app.value("SELECT count(DISTINCT due_at) FROM deliveries") == 1)
    }
  }
}
