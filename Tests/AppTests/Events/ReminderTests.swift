import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

@Suite struct ReminderTests {
  private func time(inMinutes minutes: Int) -> String {
    Timestamp.now().adding(seconds: minutes * 60).rfc3339()
  }

  private func remindAt(_ event: String, _ app: TestApp) async throws -> String? {
    let time: Timestamp?? = try await app.value("SELECT remind_at FROM events WHERE id = \(Event.ID(event))")
    return time.flatMap { $0 }?.rfc3339()
  }

  /// Makes the reminder of an event due.
  private func makeDue(_ event: String, startingIn minutes: Int = 60, _ app: TestApp) async throws {
    try await app.database.execute(
      """
      UPDATE events
      SET remind_at = now() - interval '1 second', start_time = now() + make_interval(mins => \(Int32(minutes))),
        end_time = NULL
      WHERE id = \(Event.ID(event))
      """)
  }

  /// Sends all due reminders.
  ///
  /// - Returns: the number of events.
  @discardableResult
  private func remind(_ app: TestApp) async throws -> Int {
    var count = 0
    while try await app.service.change({ try await Event.remindOfNext(in: $0) }) { count += 1 }
    return count
  }

  /// A reminder of such an event could not be read, and would stop all others.
  @Test func `no event can have an infinite time`() async throws {
    try await TestApp.run { app in
      try await app.signUp("ana").createEvent()
      for hasEnd in [true, false] {
        if !hasEnd { try await app.database.execute("UPDATE events SET end_time = NULL") }
        for column in ["start_time", "end_time", "answer_by"] {
          for time in ["infinity", "-infinity"] {
            await #expect(throws: PostgresError.self, "\(column) \(time)") {
              try await app.database.execute("UPDATE events SET \(unescaped: column) = \(time)::timestamptz")
            }
          }
        }
      }
    }
  }

  @Test func `an hour before the start, the host and the guests who are going are reminded once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let others = try await app.crowd(3, around: ana)
      let event = try await ana.createEvent("Picnic", inviting: [ben] + others)["id"].string ?? ""
      try await ben.answer("going", to: event)
      try await others[0].answer("maybe", to: event)
      try await others[1].answer("going", to: event)
      try await others[1].answer("declined", to: event)
      try await app.takeNotifications()
      try await makeDue(event, app)
      #expect(try await remind(app) == 1)
      let received = try await app.takeNotifications()
      #expect(Set(received.map(\.recipient)) == [ana.id, ben.id])
      #expect(received.count == 2)
      for reminder in received {
        #expect(reminder.type == "event-reminder")
        #expect(reminder.payload["message"].string == "“Picnic” starts in an hour.")
        #expect(reminder.payload["eventId"].string == event)
      }
      #expect(try await app.value("SELECT count(*) FROM notifications WHERE type = 'event-reminder'") == 2)
      #expect(try await remind(app) == 0)
      #expect(try await remindAt(event, app) == nil)
    }
  }

  @Test func `the worker sends reminders on its own`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await ana.addDevice("anas")
      let event = try await ana.createEvent()["id"].string ?? ""
      let recorder = Recorder()
      let running = Task { try await app.worker(recorder).run() }
      try await makeDue(event, app)
      try await eventually { recorder.received.map(\.push.type) == ["event-reminder"] }
      running.cancel()
      try await running.value
    }
  }

  @Test func `a reminder moves with the start of the event`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let start = time(inMinutes: 180)
      let event = try await ana.createEvent(startTime: start, endTime: nil)["id"].string ?? ""
      #expect(try await remindAt(event, app) == time(of: start, minus: 3600))
      let later = time(inMinutes: 300)
      try await ana.edit(event, #"{"startTime": "\#(later)"}"#)
      #expect(try await remindAt(event, app) == time(of: later, minus: 3600))
      // Too late for a reminder.
      try await ana.edit(event, #"{"startTime": "\#(time(inMinutes: 30))"}"#)
      #expect(try await remindAt(event, app) == nil)
      try await ana.edit(event, #"{"startTime": "\#(later)"}"#)
      #expect(try await remindAt(event, app) == time(of: later, minus: 3600))
      let soon = try await ana.createEvent(startTime: time(inMinutes: 59), endTime: nil)["id"].string ?? ""
      #expect(try await remindAt(soon, app) == nil)
      // The same start gets no second reminder.
      try await makeDue(event, app)
      #expect(try await remind(app) == 1)
      try await ana.edit(event, #"{"title": "Another"}"#)
      #expect(try await remindAt(event, app) == nil)
      try await ana.edit(event, #"{"startTime": "\#(later)"}"#)
      #expect(try await remindAt(event, app) == time(of: later, minus: 3600))
      #expect(try await app.takeNotifications().map(\.type) == ["event-reminder"])
    }
  }

  private func time(of text: String, minus seconds: Int) -> String? {
    Timestamp(rfc3339: text)?.adding(seconds: -seconds).rfc3339()
  }

  @Test func `no reminder is sent for a cancelled event, or for one whose host deleted the account`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cancelled = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      let orphaned = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      for event in [cancelled, orphaned] { try await ben.answer("going", to: event) }
      try await ana.cancelEvent(cancelled)
      #expect(try await remindAt(cancelled, app) == nil)
      // The same if the reminder is already due.
      try await makeDue(cancelled, app)
      try await ana.deleteAccount()
      #expect(try await remindAt(orphaned, app) == nil)
      try await app.takeNotifications()
      #expect(try await remind(app) == 1)
      #expect(try await app.takeNotifications().isEmpty)
      #expect(try await remindAt(cancelled, app) == nil)
    }
  }

  @Test func `a late reminder says soon, and a reminder after the start is dropped`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let cases: [(minutes: Int, message: String?)] = [
        (51, "“Picnic” starts in an hour."), (49, "“Picnic” starts soon."), (-1, nil),
      ]
      for (minutes, message) in cases {
        let event = try await ana.createEvent()["id"].string ?? ""
        try await makeDue(event, startingIn: minutes, app)
        #expect(try await remind(app) == 1)
        #expect(try await app.takeNotifications().first?.payload["message"].string == message)
        #expect(try await remindAt(event, app) == nil)
      }
    }
  }

  @Test func `only one of many workers sends the reminder of an event, even during concurrent answers`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(12, around: ana)
      var events: [String] = []
      for _ in 0..<6 {
        let event = try await ana.createEvent(inviting: guests)["id"].string ?? ""
        for guest in guests { try await guest.answer("going", to: event) }
        events.append(event)
      }
      try await app.takeNotifications()
      for event in events { try await makeDue(event, app) }
      let all = events
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 { group.addTask { _ = try await remind(app) } }
        for (index, event) in all.enumerated() {
          group.addTask { _ = try await guests[index].answer("declined", to: event) }
        }
        try await group.waitForAll()
      }
      // An event that was locked by an answer has been skipped.
      try await remind(app)
      let received = try await app.takeNotifications().filter { $0.type == "event-reminder" }
      for event in events {
        let recipients = received.filter { $0.payload["eventId"].string == event }.map(\.recipient)
        #expect(Set(recipients).count == recipients.count)
        #expect((12...13).contains(recipients.count))
        #expect(recipients.contains(ana.id))
      }
    }
  }
}
