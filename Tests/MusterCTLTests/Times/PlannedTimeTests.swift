import ArgumentParser
import Foundation
import MusterKit
import Testing

@testable import musterctl

@Suite struct PlannedTimeTests {
  private let now = Date(timeIntervalSince1970: 1_777_449_807)  // 2026-04-29T08:03:27Z

  private func plan(_ zone: String? = "Europe/Lisbon") throws -> PlannedTime {
    try PlannedTime(now: now, zoneNamed: zone)
  }

  @Test func `an end is a length, a time, or the next such time of day`() throws {
    let plan = try plan()
    let start = try plan.start("fri 22:00")
    func end(until: String? = nil, length: String? = nil) throws -> String? {
      try plan.end(after: start, until: until, length: length)?.formatted(.iso8601)
    }
    #expect(try end() == nil)
    #expect(try end(length: "3h") == "2026-05-02T00:00:00Z")
    #expect(try end(until: "23:30") == "2026-05-01T22:30:00Z")
    #expect(try end(until: "1:00") == "2026-05-02T00:00:00Z")
    #expect(try end(until: "sun noon") == "2026-05-03T11:00:00Z")
    #expect(throws: Failure.self) { try end(until: "tomorrow 1:00") }
    #expect(throws: Failure.self) { try self.plan("Europe/Lissabon") }
  }

  @Test func `a new start keeps the length of the event`() async throws {
    let start = try plan().start("fri 19:00")
    let event = Sample.event("Pasta night", start: start, end: start.addingTimeInterval(3 * 3600))
    func edit(_ arguments: String...) async throws -> EventEdit {
      let command = try #require(try await EditEvent.asyncParseAsRoot(["pasta"] + arguments) as? EditEvent)
      return try command.edit(of: event, now: now)
    }
    let later = try await edit("--time", "sat 20:00")
    #expect(later.startTime?.formatted(.iso8601) == "2026-05-02T19:00:00Z")
    #expect(later.endTime == .set(try plan().start("sat 23:00")))
    #expect(try await edit("--time", "sat 20:00", "--clear", "end").endTime == .clear)
    #expect(try await edit("--time", "sat 20:00", "--for", "1h").endTime == .set(try plan().start("sat 21:00")))
    #expect(try await edit("--until", "21:30").endTime == .set(try plan().start("fri 21:30")))
    #expect(try await edit("--until", "21:30").startTime == nil)
    #expect(try await edit("--note", "Bring wine", "--clear", "place").location == .clear)
    #expect(
      try await edit("--url", "https://example.com").url == .set(try #require(URL(string: "https://example.com"))))
    #expect(try await edit("--clear", "url").url == .clear)
    #expect(try await edit() == EventEdit())
    // Times are in the event's zone, whatever zone this machine is in, or in the new one.
    let tokyo = Sample.event("Sushi", start: start, zone: "Asia/Tokyo")
    let command = try #require(
      try await EditEvent.asyncParseAsRoot(["sushi", "--time", "sat 20:00", "--until", "22:00"]) as? EditEvent)
    let moved = try command.edit(of: tokyo, now: now)
    #expect(moved.startTime?.formatted(.iso8601) == "2026-05-02T11:00:00Z" && moved.timeZone == nil)
    #expect(moved.endTime == .set(try plan("Asia/Tokyo").start("sat 22:00")))
    #expect(
      try await edit("--time", "sat 20:00", "--zone", "Asia/Tokyo").startTime?.formatted(.iso8601)
        == "2026-05-02T11:00:00Z")
    await #expect(throws: (any Error).self) { try await edit("--note", "x", "--clear", "note") }
  }
}
