import Foundation
import Postgres
import Synchronization
import Testing

@testable import App

@Suite struct InboxTests {
  @Test func `unread notifications are counted on every page, and listed alone`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await file(3, for: ana, in: app)
      let all = try await ana.get("notifications?limit=1")
      #expect(all["unread"].int == 3)
      let cursor = try #require(all["nextCursor"].string)
      #expect(try await ana.get("notifications?limit=1&cursor=\(cursor)")["unread"].int == 3)
      let id = try #require(all["items"][0]["id"].string)
      try await ana.markRead(#"{"ids": ["\#(id)"]}"#)
      let unread = try await ana.pages(of: "notifications?unread=true", limit: 1)
      #expect(unread.count == 2 && !unread.contains { $0["id"].string == id })
      let response = try await ana.send("GET", "notifications?unread=true", headers: [("If-None-Match", "*")])
      #expect(response.status == 200 && response.header("ETag") == nil)
      #expect(response.json["timestamp"] == .null && response.json["unread"].int == 2)
      // A cursor belongs to its list.
      #expect(try await ana.send("GET", "notifications?unread=true&cursor=\(cursor)").badFields == ["cursor"])
      for bad in ["false", "1", ""] {
        #expect(try await ana.send("GET", "notifications?unread=\(bad)").badFields == ["unread"], "\(bad)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `unread notifications are counted up to 999`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.fileNotifications(1001, for: ana)
      let list = try await ana.get("notifications?limit=3")
      #expect(list["unread"].int == 999)
      let ids = list["items"].array.compactMap { $0["id"].string }
      func mark(_ ids: some Sequence<String>) async throws -> Int? {
        let list = ids.map { "\"\($0)\"" }.joined(separator: ",")
        return try await ana.markRead(#"{"ids": [\#(list)]}"#).json["unread"].int
      }
      #expect(try await mark(ids[..<1]) == 999)
      #expect(try await mark(ids[1...]) == 998)
      #expect(try await ana.get("notifications")["unread"].int == 998)
      #expect(try await ana.markRead(#"{"all": true}"#).json["unread"].int == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `all notifications of a user are marked at once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for phone in [ana, ben] { try await file(2, for: phone, in: app) }
      let stamps = try await ana.refreshLists()
      #expect(try await ana.markRead(#"{"all": true}"#).json["unread"].int == 0)
      #expect(try await ana.stale(stamps) == [.notifications])
      #expect(try await ana.get("notifications?unread=true")["items"].array.isEmpty)
      #expect(try await ben.get("notifications")["unread"].int == 2)
      for bad in ["{}", #"{"all": false}"#, #"{"all": true, "ids": []}"#] {
        #expect(try await ana.markRead(bad, expecting: 422).badFields == ["ids", "before", "all"], "\(bad)")
      }
      #expect(try await ana.markRead(#"{"all": "yes"}"#, expecting: 422).badFields.contains("all"))
      try await app.takeNotifications()
    }
  }

  // MARK: Contents

  @Test func `recipients get notices in the inbox, newest first, with ids derived from the notices`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ana.sendFriendRequest(to: ben)
      try await ben.accept(request)
      let event = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      try await ben.answer("going", to: event)
      try await ana.edit(event, #"{"title": "Dinner", "capacity": 5}"#)
      let rows = try await app.database.rows(
        """
        SELECT recipient.id AS recipient_id, notification_id(q.notice_id, recipient.id) AS id
        FROM notification_queue AS q
        CROSS JOIN LATERAL unnest(q.recipient_ids) AS recipient (id)
        ORDER BY q.id DESC
        """)
      let queued = try rows.map { row -> (recipient: User.ID, id: InboxItem.ID) in
        (try row["recipient_id"], try row["id"])
      }
      for phone in [ana, ben] { #expect(try await phone.get("notifications")["items"].array.isEmpty) }
      try await app.fanOut()
      let (hers, his) = (try await ana.get("notifications"), try await ben.get("notifications"))
      #expect(hers["items"].array.compactMap { $0["type"].string } == ["invitation-answered", "friend-accepted"])
      #expect(
        his["items"].array.compactMap { $0["type"].string } == ["event-updated", "event-invited", "friend-request"])
      let common: Set = ["id", "type", "message", "locKey", "locArgs", "createdAt", "readAt"]
      for (item, more) in [
        (his["items"][0], ["eventId", "title", "changes"]),
        (his["items"][1], ["eventId", "userId", "title", "actor"]),
        (his["items"][2], ["userId", "requestId", "actor"]),
        (hers["items"][0], ["eventId", "userId", "status", "title", "actor"]), (hers["items"][1], ["userId", "actor"]),
      ] {
        #expect(item.keys == common.union(more))
        #expect(item["readAt"] == .null)
        #expect(item["createdAt"].string?.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/) != nil)
      }
      #expect(his["items"][0]["message"].string == "“Dinner” has changed: the title, the number of places.")
      let changes = his["items"][0]["changes"].array
      #expect(changes.map { $0["field"].string } == ["title", "capacity"])
      #expect(changes[0]["old"].string == "Picnic" && changes[0]["new"].string == "Dinner")
      #expect(changes[1]["old"] == .null && changes[1]["new"].int == 5)
      #expect(his["items"][2]["locKey"].string == "friend-request")
      #expect(his["items"][2]["locArgs"] == .array([.string("Ana")]))
      #expect(his["items"][2]["requestId"].string == request && his["items"][2]["userId"].string == ana.id)
      #expect(hers["items"][0]["status"].string == "going")
      for (phone, list) in [(ana, hers), (ben, his)] {
        let ids = queued.filter { $0.recipient == phone.userID }.map(\.id.description)
        #expect(list["items"].array.compactMap { $0["id"].string } == ids)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `the inbox is a list in pages, and new items change none of them`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await file(23, for: ana, in: app)
      let whole = try await ana.get("notifications?limit=100")["items"].array
      #expect(whole.count == 23)
      let paged = try await ana.pages(of: "notifications", limit: 5) { _ in try await file(1, for: ana, in: app) }
      #expect(paged == whole)
      let foreign = try await ana.get("notifications?limit=2")["nextCursor"].string ?? ""
      #expect(try await ana.send("GET", "blocks?cursor=\(foreign)").badFields == ["cursor"])
      try await app.takeNotifications()
    }
  }

  @Test func `all notices of one change arrive, in its order`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let events = (0..<5).map { _ in Event.ID.new() }
      try await app.service.change { change in
        for event in events {
          change.notify(ana.userID, about: .waitlistPromoted(event, "Picnic", guest: ana.userID))
          change.notify(ben.userID, about: .invitationWithdrawn(event, "Picnic"))
        }
      }
      try await app.fanOut()
      for phone in [ana, ben] {
        let seen = try await phone.get("notifications")["items"].array.compactMap { $0["eventId"].string }
        #expect(seen == events.reversed().map(\.description))
      }
      try await app.takeNotifications()
    }
  }

  @Test func `items that name a blocked user are hidden until the block is removed`() async throws {
    try await TestApp.run { app in
      let party = try await Party.gather(in: app)
      let (ana, ben) = (party.ana, party.ben)
      func types(_ phone: Phone) async throws -> [String] {
        try await phone.get("notifications")["items"].array.compactMap { $0["type"].string }
      }
      let (hers, his) = (try await types(ana), try await types(ben))
      try await ben.block(ana)
      for (phone, other) in [(ana, ben), (ben, ana)] {
        let items = try await phone.get("notifications")["items"].array
        #expect(!items.isEmpty && items.allSatisfy { $0["userId"].string != other.id })
        // Items that are not shown are not marked as read.
        let stamp = try await phone.get("notifications")["timestamp"].string ?? ""
        let marked = try await phone.markRead(#"{"before": "\#(stamp)"}"#)
        #expect(marked.json["unread"].int == 0)
      }
      try await ben.unblock(ana)
      #expect(try await types(ana) == hers)
      #expect(try await types(ben) == his)
      for (phone, other) in [(ana, ben), (ben, ana)] {
        for item in try await phone.get("notifications")["items"].array {
          #expect((item["readAt"] == .null) == (item["userId"].string == other.id), "\(item)")
        }
      }
      try await app.takeNotifications()
    }
  }

  @Test func `an answer replaces the guest's earlier one, unless that was read`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(2, around: ana)
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      func answers() async throws -> [String] {
        try await app.fanOut()
        return try await ana.get("notifications")["items"].array.compactMap { $0["status"].string }
      }
      try await guests[0].answer("going", to: id)
      try await guests[1].answer("going", to: id)
      #expect(try await answers() == ["going", "going"])
      // One at a time, and several before a worker runs.
      try await guests[0].answer("maybe", to: id)
      #expect(try await answers() == ["maybe", "going"])
      for status in ["declined", "maybe", "declined"] { try await guests[0].answer(status, to: id) }
      #expect(try await answers() == ["declined", "going"])
      try await ana.markRead(#"{"before": "2100-01-01T00:00:00Z"}"#)
      try await guests[0].answer("going", to: id)
      #expect(try await answers() == ["going", "declined", "going"])
      try await app.takeNotifications()
    }
  }

  // MARK: Marking as read

  @Test func `items are marked as read by their ids, once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await file(3, for: ana, in: app)
      try await file(1, for: ben, in: app)
      let ids = try await ana.get("notifications")["items"].array.compactMap { $0["id"].string }
      let bens = try await ben.get("notifications")["items"][0]["id"].string ?? ""
      let body = #"{"ids": ["\#(ids[1].uppercased())", "\#(bens)", "\#(UUID().uuidString)"]}"#
      let stale = try await ana.stale {
        let unread = try await ana.markRead(body).json
        #expect(unread == .object(["unread": .number("2")]))
      }
      #expect(stale == [.notifications])
      let items = try await ana.get("notifications")["items"].array
      #expect(items.map { $0["readAt"] == .null } == [true, false, true])
      #expect(try await ben.get("notifications")["items"][0]["readAt"] == .null)
      // Repeating it, or marking another user's item, changes nothing.
      for body in [body, #"{"ids": []}"#, #"{"ids": ["\#(bens)"]}"#, #"{"before": "2020-01-01T00:00:00Z"}"#] {
        let stale = try await ana.stale {
          let response = try await ana.markRead(body)
          #expect(response.json["unread"].int == 2)
        }
        #expect(stale == [], "\(body)")
      }
      #expect(try await ana.get("notifications")["items"].array == items)
      try await app.takeNotifications()
    }
  }

  @Test func `everything shown is marked by the list's stamp, or by a coarser time`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await file(3, for: ana, in: app)
      let shown = try await ana.get("notifications")["timestamp"].string ?? ""
      try await file(2, for: ana, in: app)
      #expect(try await ana.markRead(#"{"before": "\#(shown)"}"#).json["unread"].int == 2)
      let items = try await ana.get("notifications")["items"].array
      #expect(items.map { $0["readAt"] == .null } == [true, true, false, false, false])
      // A time in whole seconds includes the whole second.
      let filedAt: Timestamp? = try await app.value("SELECT max(filed_at) FROM notifications")
      let newest: String = try #require(filedAt?.rfc3339())
      #expect(try await ana.markRead(#"{"before": "\#(newest)"}"#).json["unread"].int == 0)
      try await app.takeNotifications()
    }
  }

  @Test(arguments: [
    ("2026-05-01T18:00:00Z", "2026-05-01T18:00:00.999999Z"),
    ("2026-05-01T18:00:00.5Z", "2026-05-01T18:00:00.599999Z"),
    ("2026-05-01T20:00:00.123+02:00", "2026-05-01T18:00:00.123999Z"),
    ("2026-05-01T18:00:00.123456Z", "2026-05-01T18:00:00.123456Z"),
    ("2026-05-01T18:00:00.123456789Z", "2026-05-01T18:00:00.123456Z"),
  ])
  func `a time stands for the last moment of its precision`(text: String, moment: String) throws {
    let read = try Fields.read(.object(["before": .string(text)])) { $0.required("before", .moment) }
    #expect(read.rfc3339(microseconds: true) == moment)
  }

  @Test func `marking by a stamp marks only the items that were in the list, whatever arrives meanwhile`() async throws
  {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await app.signUp("ana")
      let shown = Shown()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 {
          group.addTask { for _ in 0..<10 { try await file(1, for: ana, in: app) } }
        }
        for number in 0..<8 {
          group.addTask {
            for _ in 0..<10 {
              let list = try await ana.get("notifications?limit=100")
              let ids = list["items"].array.compactMap { $0["id"].string }
              shown.add(ids)
              let some = ids.shuffled().map { "\"\($0)\"" }.joined(separator: ", ")
              let stamp = list["timestamp"].string ?? ""
              try await ana.markRead(number % 2 == 0 ? #"{"before": "\#(stamp)"}"# : #"{"ids": [\#(some)]}"#)
            }
          }
        }
        try await group.waitForAll()
      }
      try await app.fanOut()
      let last = try await ana.get("notifications?limit=100")
      let items = last["items"].array
      #expect(items.count == 80)
      for item in items where item["readAt"] != .null { #expect(shown.contains(item["id"].string ?? "")) }
      let stamp = last["timestamp"].string ?? ""
      #expect(try await ana.markRead(#"{"before": "\#(stamp)"}"#).json["unread"].int == 0)
      try await app.takeNotifications()
    }
  }

  @Test func `a cached copy is not called fresh after another phone has marked items as read`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<8 {
          group.addTask {
            let ana = try await app.signUp("ana\(round)")
            try await file(5, for: ana, in: app)
            try await ana.expectNoStaleCopyCalledFresh(of: "notifications") {
              async let filed: Void = file(5, for: ana, in: app)
              for item in try await ana.get("notifications")["items"].array {
                try await ana.markRead(#"{"ids": ["\#(item["id"].string ?? "")"]}"#)
              }
              try await filed
            }
          }
        }
        try await group.waitForAll()
      }
      try await app.takeNotifications()
    }
  }

  // MARK: Muting

  @Test func `every type is on until it is turned off, and omitted types stay as they are`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let all = Set(Notice.Kind.optional.map(\.rawValue))
      let first = try await ana.get("notification-preferences")
      #expect(first.keys == all.union(["timestamp"]))
      #expect(all.allSatisfy { first[$0].bool == true })
      #expect(!all.contains("session-revoked"))
      func put(_ body: String) async throws -> APIResponse {
        try await ana.send("PUT", "notification-preferences", body)
      }
      let off = try await put(#"{"event-updated": false, "friend-request": false}"#)
      #expect(off.status == 200)
      let read = try await ana.send("GET", "notification-preferences")
      #expect(off.json == read.json && off.header("ETag") == read.header("ETag"))
      #expect(Set(all.filter { read.json[$0].bool == false }) == ["event-updated", "friend-request"])
      let back = try await put(#"{"event-updated": true}"#).json
      #expect(all.filter { back[$0].bool == false } == ["friend-request"])
      // Repeating it, or sending back the response, changes nothing.
      for body in [#"{"event-updated": true}"#, "{}", try await ana.send("GET", "notification-preferences").body] {
        let stale = try await ana.stale {
          let response = try await put(body)
          #expect(response.status == 200 && response.json == back)
        }
        #expect(stale == [], "\(body)")
      }
      #expect(try await ana.stale { _ = try await put(#"{"friend-request": true}"#) } == [.notificationPreferences])
    }
  }

  @Test func `two phones that choose at once end with the choices of one of them`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let ana = try await app.signUp("ana")
      let kinds = Notice.Kind.optional.map(\.rawValue)
      let statuses = try await app.race(32) { index in
        // Every second request makes the opposite choices.
        let choices = kinds.enumerated().map { "\"\($0.element)\": \(($0.offset + index) % 2 == 0)" }
        return try await ana.send("PUT", "notification-preferences", "{\(choices.joined(separator: ", "))}")
      }
      #expect(statuses == [200: 32])
      let chosen = try await ana.get("notification-preferences")
      let isOn = kinds.enumerated().map { (chosen[$0.element].bool ?? false) == ($0.offset % 2 == 0) }
      #expect(Set(isOn).count == 1, "\(chosen)")
    }
  }

  @Test func `muted types still reach the inbox`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      _ = try await ben.send("PUT", "notification-preferences", #"{"event-invited": false}"#)
      try await ben.register(token: "bens")
      try await ana.createEvent(inviting: [ben])
      try await app.fanOut()
      #expect(try await ben.get("notifications")["items"][0]["type"].string == "event-invited")
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 0)
      try await app.takeNotifications()
    }
  }
}

/// Files `count` notifications in a user's inbox, each by a change of its own.
private func file(_ count: Int, for phone: Phone, in app: TestApp) async throws {
  let user = phone.userID
  for _ in 0..<count {
    try await app.service.change { $0.notify(user, about: .waitlistPromoted(.new(), "Picnic", guest: user)) }
    while try await FanOut.step(in: app.service).notices > 0 {}
  }
}

/// The ids that were in any of the lists.
private final class Shown: Sendable {
  private let ids = Mutex<Set<String>>([])

  func add(_ more: [String]) {
    ids.withLock { $0.formUnion(more) }
  }

  func contains(_ id: String) -> Bool {
    ids.withLock { $0.contains(id) }
  }
}

extension Phone {
  @discardableResult
  func markRead(
    _ body: String, expecting status: Int = 200, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    try await act("markNotificationsRead", [:], body: body, status, sourceLocation)
  }
}
