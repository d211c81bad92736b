import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// `GET /events/{id}?include=guests`. ``TouchTests`` compares its stamp with all verbs.
@Suite struct EventSnapshotTests {
  @Test func `an event comes with the first page of its guests, as the list has them`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(60, around: ana)
      let event = try await ana.createEvent(inviting: guests, capacity: 3)["id"].string ?? ""
      try await guests[0].answer("going", to: event)
      let whole = try await ana.get("events/\(event)?include=guests")
      let list = try await ana.get("events/\(event)/invitations?limit=50")
      #expect(whole["guests"] == list)
      #expect(whole["guests"]["items"].array.count == 50)
      let cursor = try #require(whole["guests"]["nextCursor"].string)
      #expect(try await ana.get("events/\(event)/invitations?cursor=\(cursor)")["items"].array.count == 10)
      let plain = try await ana.get("events/\(event)")
      for member in ["id", "title", "counts", "participants", "version"] { #expect(whole[member] == plain[member]) }
      #expect(plain["guests"] == .null)
      try await app.takeNotifications()
    }
  }

  @Test func `a copy is fresh until someone changes what it shows`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      for friend in [ben, cleo] { try await app.befriend(ana, friend) }
      let event = try await ana.createEvent("Swim", inviting: [ben, cleo])["id"].string ?? ""
      let other = try await ana.createEvent("Run", inviting: [ben])["id"].string ?? ""
      let changes: [@Sendable () async throws -> Void] = [
        { try await cleo.answer("going", to: event) },
        { try await ana.edit(event, #"{"title": "Dive"}"#) },
        { try await cleo.editProfile(#"{"displayName": "Cleopatra"}"#) },
        { try await cleo.putPicture(Sample.png()) },
        { try await cleo.block(ben) },
        { try await cleo.unblock(ben) },
        { try await ben.block(cleo) },
        { try await ben.unblock(cleo) },
        { try await cleo.deleteAccount() },
      ]
      for (number, change) in changes.enumerated() {
        let copy = try await OpenedEvent(event, of: ben)
        #expect(try await copy.isCalledFresh())
        // His list changes, and this event does not.
        try await ana.edit(other, #"{"note": "\#(number)"}"#)
        #expect(try await copy.isCalledFresh(), "\(number)")
        try await change()
        #expect(try await copy.isCalledFresh() == false, "\(number)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a tag opens nothing for someone who does not see the event`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      try await app.befriend(ana, ben)
      let event = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let (hers, his) = (try await OpenedEvent(event, of: ana), try await OpenedEvent(event, of: ben))
      let path = "events/\(event)?include=guests"
      // Each reader has tags of their own.
      #expect(try await ben.send("GET", path, headers: [hers.ifNoneMatch]).status == 200)
      #expect(try await cleo.send("GET", path, headers: [hers.ifNoneMatch]).status == 404)
      #expect(try await cleo.send("GET", path, headers: [("If-None-Match", "*")]).status == 404)
      try await ana.withdraw(ben, from: event)
      #expect(try await ben.send("GET", path, headers: [his.ifNoneMatch]).status == 404)
      try await app.takeNotifications()
    }
  }

  @Test func `a block moves nothing for a third person, not even for a host`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo"))
      for friend in [ben, cleo] { try await app.befriend(ana, friend) }
      let event = try await ana.createEvent(inviting: [ben, cleo])["id"].string ?? ""
      let copies = [try await OpenedEvent(event, of: ana), try await OpenedEvent(event, of: ben)]
      try await ben.block(cleo)
      #expect(try await copies[0].isCalledFresh())
      #expect(try await copies[1].isCalledFresh() == false)
      try await ben.unblock(cleo)
      #expect(try await copies[0].isCalledFresh())
      try await app.takeNotifications()
    }
  }

  @Test func `an archived event has no tag`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      let copy = try await OpenedEvent(event, of: ana)
      let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
      _ = try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
      let response = try await ana.send("GET", "events/\(event)?include=guests", headers: [copy.ifNoneMatch])
      #expect(response.status == 200)
      #expect(response.header("ETag") == nil)
    }
  }

  @Test func `an operator who moves the stamps of events moves these too`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let copy = try await OpenedEvent(try await ana.createEvent()["id"].string ?? "", of: ana)
      try await Stamps.move([.friends], in: app.database)
      #expect(try await copy.isCalledFresh())
      try await Stamps.move([.events], in: app.database)
      #expect(try await copy.isCalledFresh() == false)
    }
  }

  @Test func `stamps rise although the clock was set back`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent()["id"].string ?? ""
      try await app.database.batch(
        "ALTER TABLE events DISABLE TRIGGER event_changes", "UPDATE events SET stamp = '2090-01-01'",
        "ALTER TABLE events ENABLE TRIGGER event_changes")
      let first = try #require(try await app.database.value("SELECT stamp FROM events") as Timestamp?)
      try await ana.edit(event, #"{"title": "Dive"}"#)
      let second = try #require(try await app.database.value("SELECT stamp FROM events") as Timestamp?)
      #expect(first < second && second < first.adding(seconds: 1), "\(first), \(second)")
    }
  }
}
