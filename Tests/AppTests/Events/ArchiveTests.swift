import Foundation
import Postgres
import Testing

@testable import App

/// The copies of an archived event's start in the rows of its guests and co-hosts, by which lists find events. Each test
/// with a database also ends with a comparison of all copies.
@Suite struct ArchiveTests {
  private static func archive(_ app: TestApp) async throws -> Int {
    let later = Timestamp.now().adding(seconds: 10 * 365 * 86_400)
    return try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
  }

  private static func starts(_ app: TestApp) async throws -> [Timestamp?] {
    try await app.database.rows(
      """
      SELECT archived_start FROM invitations
      UNION ALL
      SELECT archived_start FROM event_co_hosts
      """
    ).map { try $0[0] }
  }

  @Test func `archiving writes the start into the rows of guests and co-hosts, and no edit does`() async throws {
    try await TestApp.run { app in
      let (ana, ben, _, event) = try await app.hostAndGuests()
      let dev = try await app.signUp("dev")
      try await app.befriend(ana, dev)
      try await ana.addHost(dev, to: event)
      try await ana.edit(event, #"{"startTime": "2031-05-01T19:00:00Z", "endTime": null}"#)
      try await ben.answer("going", to: event)
      #expect(try await Self.starts(app) == [nil, nil, nil])
      #expect(try await Self.archive(app) == 1)
      let start = try #require(Timestamp(rfc3339: "2031-05-01T19:00:00Z"))
      #expect(try await Self.starts(app) == [start, start, start])
      for phone in [ana, ben, dev] {
        #expect(try await phone.get("events")["items"].array.isEmpty)
        #expect(try await phone.get("events?when=past")["items"].array.map { $0["id"].string } == [event])
      }
      #expect(try await ben.get("invitations")["items"].array.isEmpty)
      try await app.takeNotifications()
    }
  }

  @Test func `a guest who is added while the event enters the archive gets its start`() async throws {
    try await TestApp.run { app in
      let (_, ben, _, event) = try await app.hostAndGuests()
      let dev = try await app.signUp("dev")
      let id = try #require(Event.ID(event))
      try await app.database.execute("DELETE FROM invitations WHERE user_id = \(ben.userID)")
      let adding = try await app.database.transaction { transaction in
        try await transaction.rows("UPDATE events SET archived_at = now() WHERE id = \(id)")
        let adding = Task {
          try await app.service.batch(
            "INSERT INTO invitations (event_id, user_id) VALUES (\(id), \(ben.userID))",
            "INSERT INTO event_co_hosts (event_id, user_id, added_at) VALUES (\(id), \(dev.userID), now())")
        }
        try await app.waitForLocks(1)
        return adding
      }
      _ = try await adding.value
      #expect(try await Self.starts(app).contains(nil) == false)
      #expect(try await ben.get("events?when=past")["items"].array.map { $0["id"].string } == [event])
      try await app.takeNotifications()
    }
  }

  @Test func `an event that is getting a guest is not archived meanwhile`() async throws {
    try await TestApp.run { app in
      let (_, ben, _, event) = try await app.hostAndGuests()
      let id = try #require(Event.ID(event))
      try await app.database.execute("DELETE FROM invitations WHERE user_id = \(ben.userID)")
      try await app.database.transaction { transaction in
        try await transaction.rows("INSERT INTO invitations (event_id, user_id) VALUES (\(id), \(ben.userID))")
        #expect(try await Self.archive(app) == 0)
      }
      #expect(try await Self.archive(app) == 1)
      #expect(try await Self.starts(app).contains(nil) == false)
      try await app.takeNotifications()
    }
  }
}
