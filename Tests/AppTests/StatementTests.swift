import Postgres
import Testing

@testable import App

/// How many statements a call costs. More items never cost more statements.
@Suite struct StatementTests {
  /// Including BEGIN and COMMIT.
  private static let expected = [
    "making an event": 12, "one event": 1, "live events": 1, "past events": 1, "invitations": 1, "the guest list": 1,
    "live events with participants": 2, "past events with participants": 2, "some events with participants": 2,
    "invitations with participants": 2, "live events with digests": 1, "invitations with digests": 1,
    "inviting": 12, "answering": 10, "waiting": 10, "editing": 7, "more places": 9, "giving a place up": 11,
    "withdrawing": 12, "cancelling": 8, "archiving": 6,
  ]

  @Test func `event calls cost the same number of statements, whatever the number of guests`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      for size in [1, 40] {
        let counts = try await Self.measure(size, app, log)
        #expect(counts == Self.expected, "\(size)")
      }
      try await app.takeNotifications()
    }
  }

  /// A statement whose result nothing needs leaves with the next one, or with COMMIT.
  @Test func `a change waits for the server only where it needs the result`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      var request = try await ana.sendFriendRequest(to: ben)
      // Whose request it is, the locks, the request, COMMIT.
      #expect(try await log.roundTrips { try await ben.decline(request) } == 4)
      request = try await ana.sendFriendRequest(to: ben)
      #expect(try await log.roundTrips { try await ben.accept(request) } == 4)
      let refreshing = try await log.roundTrips { try await ana.refresh() }
      #expect(refreshing == 3)
      _ = try await app.askForReset("ana@example.com")
      let token = try await app.takeToken("mail-reset-password")
      let resetting = try await log.roundTrips {
        let response = try await app.confirmReset(token, "another horse")
        #expect(response.status == 204)
      }
      #expect(resetting == 6)
      try await app.takeNotifications()
    }
  }

  @Test func `the checks of an event's row are short, because each update parses them all`() async throws {
    try await TestApp.run { app in
      let length: Int? = try await app.database.value(
        "SELECT sum(length(conbin::text)) FROM pg_constraint WHERE conrelid = 'events'::regclass AND contype = 'c'")
      #expect(try #require(length) < 4000)
    }
  }

  /// - Parameter size: the number of guests, events and guests on the waitlist.
  private static func measure(_ size: Int, _ app: TestApp, _ log: StatementLog) async throws -> [String: Int] {
    let ana = try await app.signUp("ana\(size)")
    // One more than the waitlist has, because one guest has the place.
    let guests = try await app.crowd(size + 2, around: ana, named: "guest\(size)-")
    let others = try await app.crowd(size, around: ana, named: "other\(size)-")
    for number in 0..<size { try await ana.createEvent("Other \(number)", inviting: guests) }
    try await app.database.execute("UPDATE events SET archived_at = now()")
    for number in 0..<size { try await ana.createEvent("Another \(number)", inviting: guests) }
    var counts: [String: Int] = [:]
    func count(_ name: String, _ action: () async throws -> Void) async throws {
      log.take()
      try await action()
      counts[name] = log.take().count
    }
    var id = ""
    try await count("making an event") {
      id = try await ana.createEvent(inviting: guests, capacity: 1)["id"].string ?? ""
    }
    try await count("one event") { _ = try await guests[0].get("events/\(id)") }
    try await count("live events") { _ = try await guests[0].get("events") }
    try await count("past events") { _ = try await guests[0].get("events?when=past") }
    try await count("invitations") { _ = try await guests[0].get("invitations") }
    let include = "include=participants"
    try await count("live events with participants") { _ = try await guests[0].get("events?\(include)") }
    try await count("past events with participants") { _ = try await guests[0].get("events?when=past&\(include)") }
    try await count("some events with participants") { _ = try await guests[0].get("events?ids=\(id)&\(include)") }
    try await count("invitations with participants") { _ = try await guests[0].get("invitations?\(include)") }
    try await count("live events with digests") { _ = try await guests[0].get("events?include=digests") }
    try await count("invitations with digests") { _ = try await guests[0].get("invitations?include=digests") }
    try await count("the guest list") { _ = try await guests[0].get("events/\(id)/invitations?limit=100") }
    try await count("inviting") { try await ana.invite(others, to: id) }
    try await count("answering") { try await guests[0].answer("going", to: id) }
    for guest in guests[2...] { try await guest.answer("going", to: id) }
    try await count("waiting") { try await guests[1].answer("going", to: id) }
    try await count("editing") { try await ana.edit(id, #"{"title": "Dinner"}"#) }
    try await count("giving a place up") { try await guests[0].answer("declined", to: id) }
    try await count("withdrawing") { try await ana.withdraw(guests[2], from: id) }
    try await ana.edit(id, #"{"title": "Lunch"}"#)
    for guest in others { try await guest.answer("going", to: id) }
    try await count("more places") { try await ana.edit(id, #"{"capacity": null}"#) }
    try await count("cancelling") { try await ana.cancelEvent(id) }
    try await app.database.execute("UPDATE events SET live_until = now() - interval '1 day' WHERE archived_at IS NULL")
    try await count("archiving") {
      _ = try await app.service.change { try await Event.archive(endedBefore: .now(), atMost: 100, in: $0) }
    }
    return counts
  }
}
