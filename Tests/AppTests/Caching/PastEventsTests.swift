import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Validations of past events, which have no stamp. ``TouchTests`` keeps a copy through all verbs.
@Suite struct PastEventsTests {
  private static func archive(_ app: TestApp) async throws {
    let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
    _ = try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
  }

  @Test func `a copy is right until something changes that it shows, and a verdict then corrects it`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      let dev = try await app.signUp("dev")
      for friend in [ben, cleo, dev] { try await app.befriend(ana, friend) }
      let event = try await ana.createEvent("Swim", inviting: [ben, cleo])["id"].string ?? ""
      try await ana.addHost(dev, to: event)
      let other = try await dev.createEvent("Run")["id"].string ?? ""
      _ = try await ben.createEvent("Own")
      try await Self.archive(app)
      let changes: [(String, @Sendable () async throws -> Void)] = [
        ("the name of the creator", { try await ana.editProfile(#"{"displayName": "Anita"}"#) }),
        ("the picture of the creator", { try await ana.putPicture(Sample.png()) }),
        ("the name of a co-host", { try await dev.editProfile(#"{"displayName": "Devika"}"#) }),
        ("the own name", { try await ben.editProfile(#"{"displayName": "Benjamin"}"#) }),
        ("a co-host's block", { try await dev.block(ben) }),
        ("its end", { try await dev.unblock(ben) }),
        ("the own block", { try await ben.block(ana) }),
        ("its end", { try await ben.unblock(ana) }),
        ("a guest who is gone", { try await cleo.deleteAccount() }),
        (
          "a new past event",
          {
            try await ben.createEvent("Dive")
            try await Self.archive(app)
          }
        ),
        ("an event that is deleted", { try await app.database.execute("DELETE FROM events WHERE title = 'Dive'") }),
        ("a creator who is gone", { try await ana.deleteAccount() }),
        ("a co-host who is gone", { try await dev.deleteAccount() }),
      ]
      var copy = PastCopy()
      #expect(try await copy.validate(for: ben) == false)
      #expect(copy.items.count == 2)
      for (what, change) in changes {
        #expect(try await copy.validate(for: ben), "before \(what)")
        try await change()
        let isCalledRight = try await copy.validate(for: ben)
        #expect(!isCalledRight, "\(what)")
        try await copy.expectRight(for: ben, what)
      }
      #expect(!copy.array.contains(other))
      try await app.takeNotifications()
    }
  }

  @Test func `others' events and names are no part of a copy`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo, _) = try await app.hostAndGuests()
      try await Self.archive(app)
      var copy = PastCopy()
      try await copy.validate(for: ben)
      #expect(copy.items.count == 1)
      try await cleo.editProfile(#"{"displayName": "Cleopatra"}"#)
      try await ana.createEvent("Live", inviting: [ben])
      #expect(try await copy.validate(for: ben))
      var hers = PastCopy()
      try await hers.validate(for: cleo)
      try await hers.expectRight(for: cleo)
      // Digests of one reader's items tell nothing about those of another reader.
      let stranger = try await app.signUp("dev")
      #expect(try await hers.validate(for: stranger) == false)
      #expect(hers.items.isEmpty)
      try await app.takeNotifications()
    }
  }

  @Test func `of a long past, a verdict has the latest, and the list continues at its cursor`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.plan(700, by: ana, note: String(repeating: "x", count: 200))
      try await app.database.execute("UPDATE events SET archived_at = now() WHERE creator_id = \(ana.userID)")
      var copy = PastCopy()
      // What is longer than a response comes with the next ones.
      var requests = 1
      while try await !copy.validate(for: ana, limit: 500) {
        requests += 1
        guard requests < 6 else { break }
      }
      #expect(copy.items.count == 500 && requests < 6)
      let all = try await ana.pages(of: "events?when=past", limit: 100)
      #expect(try JSON(parsing: copy.array.utf8).array == Array(all.prefix(500)))
      let cursor = try #require(copy.cursor)
      let rest = try await ana.get("events?when=past&limit=100&cursor=\(cursor)")["items"].array
      #expect(rest == Array(all[500..<600]))
      // A new one sends only itself.
      _ = try await ana.createEvent("Latest", startTime: "2031-05-01T18:00:00Z", endTime: nil)
      try await Self.archive(app)
      let held = copy.items.map(\.digest).joined()
      let claim = #"{"pastEvents":{"held":"\#(held)","limit":500}}"#
      let verdict = try #require(try await ana.changes(since: claim)["pastEvents"])
      #expect(try RawJSON.elements(of: try #require(verdict["parts"])).count == 2)
    }
  }

  @Test func `past events are read after the other lists of a response, in one statement`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let (_, ben, _, _) = try await app.hostAndGuests()
      let claims = #"{"pastEvents": {"held": ""}, "events": {"held": ""}, "friends": {"held": ""}}"#
      let statements = try await log.statements { _ = try await ben.changes(since: claims) }
      #expect(statements.count == 4)
      #expect(statements.last?.contains("archived_start IS NOT NULL") == true)
      // Without digests, there is nothing to compare.
      for claim in [#""2026-05-01T09:30:00.123456Z""#, "null", #"{"timestamp": null}"#] {
        let verdict = try await ben.changes(since: #"{"pastEvents": \#(claim)}"#)["pastEvents"]
        #expect(verdict == ["invalidate": "true", "timestamp": "null"])
      }
      let wrong = try await ben.send(
        "POST", "cache/validate/\(ben.id)?include=changes", #"{"pastEvents": {"held": "?"}}"#)
      #expect(wrong.status == 422 && wrong.body.contains("pastEvents.held"))
      try await app.takeNotifications()
    }
  }

  @Test func `a short claim reads no long list`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.crowd(1100, around: ana)
      let claim = #"{"friends": {"held": "", "limit": 2000}}"#
      let verdict = try #require(try await ana.changes(since: claim)["friends"])
      #expect(try RawJSON.elements(of: try #require(verdict["parts"])).count == 500)
      #expect(verdict["nextCursor"] != "null")
      // With the digests of those, the next claim reaches further.
      var copies: [App.Collection: PartsCopy] = [:]
      #expect(try await ana.catchUp(&copies, of: [.friends], limit: 2000) == 3)
    }
  }
}
