import Foundation
import Postgres
import Testing

@testable import App

/// The promise of the lists, for the calendar feed: no stale copy is called fresh. Each verb runs once, and a feed
/// whose bytes change has another ETag.
@Suite struct CalendarFeedPromiseTests {
  /// The feeds of some users.
  private struct Watch {
    let app: TestApp
    private let paths: [String: String]
    private var copies: [String: CalendarCopy] = [:]

    init(_ phones: [Phone], in app: TestApp) async throws {
      self.app = app
      var paths: [String: String] = [:]
      for phone in phones { paths[phone.username] = try await phone.makeCalendarLink() }
      self.paths = paths
      copies = try await read()
    }

    private func read() async throws -> [String: CalendarCopy] {
      var found: [String: CalendarCopy] = [:]
      for (name, path) in paths { found[name] = try await app.calendarFeed(path) }
      return found
    }

    /// - Parameter changed: the users whose feeds change.
    mutating func expect(
      _ what: String, changes changed: Set<String>, sourceLocation: SourceLocation = #_sourceLocation,
      _ action: () async throws -> Void
    ) async throws {
      try await action()
      // Before the feeds are read again: whether the service calls a calendar's copy current.
      var fresh: Set<String> = []
      for (name, copy) in copies {
        let response = try await app.send("GET", copy.path, headers: [("If-None-Match", copy.tag)])
        #expect([200, 304].contains(response.status), "\(what): \(name)", sourceLocation: sourceLocation)
        if response.status == 304 { fresh.insert(name) }
      }
      let old = copies
      copies = try await read()
      var found: Set<String> = []
      for (name, copy) in copies {
        guard copy.text != old[name]?.text else { continue }
        found.insert(name)
        #expect(copy.tag != old[name]?.tag, "\(what): \(name)", sourceLocation: sourceLocation)
        #expect(!fresh.contains(name), "\(what): \(name) has a stale copy", sourceLocation: sourceLocation)
      }
      #expect(found == changed, "\(what)", sourceLocation: sourceLocation)
    }
  }

  @Test func `the tag moves with the bytes, whatever the verb`() async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"]) { app in
      let people = try await Neighbours.gather(in: app)
      let (ana, ben, emre, gil, hugo) = (people.ana, people.ben, people.emre, people.gil, people.hugo)
      for friend in [emre, gil, hugo] { try await app.befriend(ana, friend) }
      // Recently archived, with everything that a deletion of its creator removes.
      let start = Timestamp.now().adding(seconds: -5 * 86_400).rfc3339()
      let response = try await ana.send(
        "POST", "events",
        """
        {"title": "Past", "note": "Secret", "startTime": "\(start)", "timeZone": "Europe/Berlin",
         "location": {"name": "Home", "latitude": 1, "longitude": 2}, "inviteeIds": ["\(hugo.id)", "\(gil.id)"]}
        """)
      #expect(response.status == 201, "\(response.body)")
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 20, in: $0) }
      var watch = try await Watch([ana] + people.others, in: app)
      var event = ""
      try await watch.expect("creating", changes: ["ana", "ben", "gil"]) {
        event = try await ana.createEvent("Swim", inviting: [ben, gil], capacity: 1)["id"].string ?? ""
      }
      try await watch.expect("inviting", changes: ["emre", "hugo"]) { try await ana.invite([emre, hugo], to: event) }
      let all: Set = ["ana", "ben", "gil", "emre", "hugo"]
      for edit in [
        #"{"title": "Dive"}"#, #"{"note": "Deep"}"#, #"{"location": {"name": "Lake"}}"#, #"{"url": "https://a.org"}"#,
        #"{"capacity": 2}"#,
        #"{"timeZone": "Asia/Tokyo"}"#, #"{"startTime": "2031-05-01T18:00:00Z", "endTime": null}"#,
      ] {
        try await watch.expect(edit, changes: all) { try await ana.edit(event, edit) }
      }
      try await watch.expect("editing nothing", changes: []) { try await ana.edit(event, #"{"title": "Dive"}"#) }
      try await watch.expect("going", changes: ["ben"]) { try await ben.answer("going", to: event) }
      try await watch.expect("also going", changes: ["gil"]) { try await gil.answer("going", to: event) }
      try await watch.expect("waiting", changes: []) { try await emre.answer("going", to: event) }
      try await watch.expect("moving up", changes: ["ben", "emre"]) { try await ben.answer("maybe", to: event) }
      try await watch.expect("declining", changes: ["ben"]) { try await ben.answer("declined", to: event) }
      try await watch.expect("coming back", changes: ["ben"]) { try await ben.answer("maybe", to: event) }
      try await watch.expect("withdrawing", changes: ["gil"]) { try await ana.withdraw(gil, from: event) }
      try await watch.expect("no reminders", changes: ["ana"]) {
        _ = try await ana.send("PUT", "notification-preferences", #"{"event-reminder": false}"#)
      }
      try await watch.expect("reminders", changes: ["ana"]) {
        _ = try await ana.send("PUT", "notification-preferences", #"{"event-reminder": true}"#)
      }
      try await watch.expect("another name", changes: ["ana", "ben", "emre", "hugo"]) {
        try await ana.editProfile(#"{"displayName": "Anita"}"#)
      }
      try await watch.expect("a picture", changes: []) { try await ana.putPicture(Sample.png()) }
      try await watch.expect("blocking", changes: ["hugo"]) { try await ana.block(hugo) }
      try await watch.expect("unblocking", changes: []) { try await ana.unblock(hugo) }
      try await watch.expect("being blocked", changes: ["emre"]) { try await emre.block(ana) }
      try await watch.expect("cancelling", changes: ["ana", "ben"]) { try await ana.cancelEvent(event) }
      try await watch.expect("unfriending", changes: []) { try await ana.unfriend(ben) }
      try await watch.expect("archiving", changes: ["ana", "ben", "gil"]) {
        // The event stays in the feeds, because its end is ahead.
        let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
        _ = try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
      }
      try await watch.expect("a new name after archiving", changes: []) {
        try await ana.editProfile(#"{"displayName": "Ana"}"#)
      }
      watch = try await Watch(people.others, in: app)
      try await watch.expect("deleting an account", changes: ["ben", "gil", "hugo"]) { try await ana.deleteAccount() }
      try await app.takeNotifications()
    }
  }

  @Test func `time alone moves the tag, because archived events leave`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let start = Timestamp.now().adding(seconds: -10 * 86_400).rfc3339()
      _ = try await ana.createEvent("Past", inviting: [ben], startTime: start, endTime: nil)
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 20, in: $0) }
      let path = try await ben.makeCalendarLink()
      let file = String(path.dropFirst("/calendars/".count))
      let link = try #require(CalendarLink.id(of: file, keys: app.dependencies.refreshTokenKeys))
      let today = CalendarFeed.Tag.today(at: .now())
      var tags: Set<String> = []
      var shown: [Bool] = []
      for day in [today, today + 1, today + 78, today + 82] {
        let (user, tag) = try await CalendarFeed.check(
          link, today: day, zones: app.dependencies.zones, in: app.service)
        let feed = try await CalendarFeed.read(
          link, of: user, today: day, zones: app.dependencies.zones, in: app.service)
        #expect(feed.tag == tag)
        tags.insert(tag.eTag)
        shown.append(String(decoding: feed.bytes, as: UTF8.self).contains("SUMMARY:Past"))
      }
      #expect(tags.count == 4 && shown == [true, true, true, false])
      try await app.takeNotifications()
    }
  }

  @Test func `an unchanged feed costs one statement, a changed one two, whatever the number of events`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      for size in [1, 40] {
        let ana = try await app.signUp("ana\(size)")
        for number in 0..<size { _ = try await ana.createEvent("\(number)") }
        let path = try await ana.makeCalendarLink()
        var feed = try await app.calendarFeed(path)
        #expect(try await log.statements { feed = try await app.calendarFeed(path) }.count == 2)
        let unchanged = try await log.statements {
          _ = try await app.send("GET", path, headers: [("If-None-Match", feed.tag)])
        }
        #expect(unchanged.count == 1 && !unchanged[0].contains("FROM events"), "\(unchanged)")
        #expect(try await ana.send("DELETE", "users/me/calendar").status == 204)
        #expect(try await log.statements { _ = try await app.send("GET", path) }.count == 1)
      }
    }
  }
}
