import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct EventTextTests {
  private let times: TimeText
  private let start: Date

  init() throws {
    times = TimeText(
      now: Date(timeIntervalSince1970: 1_777_449_807), zone: try #require(TimeZone(identifier: "Europe/Berlin")))
    start = try #require(try RFC3339.date(from: "2026-05-01T18:00:00Z"))
  }

  @Test func `shows the time at another place`() throws {
    var event = Sample.event(
      "Pasta night", start: start, end: start.addingTimeInterval(3 * 3600), zone: "Europe/Lisbon")
    event.capacity = 4
    event.counts = Counts(invited: 1, going: 2, waitlisted: 1)
    event.note = "Bring wine.\nAnd bread."
    let fields = Dictionary(EventText(event: event, times: times).fields.map { ($0.name, $0.value) }) { $1 }
    #expect(fields["When"] == "Fri 1 May 20:00 to 23:00")
    #expect(fields["There"] == "Fri 1 May 19:00 to 22:00 (Europe/Lisbon)")
    #expect(fields["Guests"] == "2 going, 1 waiting, 1 invited (4 places)")
    #expect(fields["Host"] == "Ana Duarte (ana)")
    event.timeZoneName = "Europe/Paris"
    #expect(EventText(event: event, times: times).fields.allSatisfy { $0.name != "There" })
    #expect(EventText(event: event, times: times).name == "“Pasta night”, Fri 1 May 20:00")
  }

  @Test func `writes changes with times and names`() throws {
    let old = Sample.event("Pasta night", start: start)
    var new = old
    new.title = "Pizza night"
    new.startTime = start.addingTimeInterval(3600)
    new.location = Location(name: "Ben's garden")
    new.url = URL(string: "https://example.com/menu")
    new.capacity = 6
    new.note = "Bring wine."
    #expect(
      FieldChangeText(times: times).text(of: try FieldChangeText.changes(from: old, to: new))
        == "title: Pasta night → Pizza night; the note; time: Fri 1 May 20:00 → 21:00; place: none → Ben's garden; "
        + "web address: none → https://example.com/menu; capacity: none → 6")
    #expect(try FieldChangeText.changes(from: old, to: old).isEmpty)
  }
}
