import Postgres
import Testing

@testable import App

/// Ana, Ben and Cleo, who are friends, and their events. The queue is empty.
struct Party: Sendable {
  let app: TestApp
  let ana: Phone
  let ben: Phone
  let cleo: Phone
  /// Ana's event, with both others invited.
  let anas: String
  /// Ben's event with one place. Ana has it, and Cleo waits for it.
  let bens: String
  /// Cleo's event, with both others invited.
  let cleos: String
  /// Two events of Ben's with Ana invited: an archived one and a cancelled one.
  let past: String
  let cancelled: String
  /// Another event of Ben's with Ana invited.
  let another: String

  /// - Parameter number: a suffix that makes the usernames unique.
  static func gather(_ number: Int? = nil, in app: TestApp) async throws -> Party {
    let suffix = number.map(String.init) ?? ""
    let (ana, ben) = (try await app.signUp("ana\(suffix)"), try await app.signUp("ben\(suffix)"))
    let cleo = try await app.signUp("cleo\(suffix)")
    for (one, other) in [(ana, ben), (ben, cleo), (ana, cleo)] {
      try await other.accept(try await one.sendFriendRequest(to: other))
    }
    let anas = try await ana.createEvent("Ana's", inviting: [ben, cleo])["id"].string ?? ""
    let bens = try await ben.createEvent("Ben's", inviting: [ana, cleo], capacity: 1)["id"].string ?? ""
    let cleos = try await cleo.createEvent("Cleo's", inviting: [ana, ben])["id"].string ?? ""
    let past =
      try await ben.createEvent(
        "Past", inviting: [ana], startTime: "2020-01-01T10:00:00Z", endTime: nil)["id"].string ?? ""
    let cancelled = try await ben.createEvent("Cancelled", inviting: [ana])["id"].string ?? ""
    let answered = try await ben.createEvent("Answered", inviting: [ana])["id"].string ?? ""
    try await ana.answer("going", to: bens)
    try await cleo.answer("going", to: bens)
    try await app.database.execute("UPDATE events SET archived_at = now() WHERE id = \(Event.ID(past))")
    try await app.database.execute("UPDATE events SET status = 'cancelled' WHERE id = \(Event.ID(cancelled))")
    try await app.fanOut(for: ana, ben, cleo)
    return Party(
      app: app, ana: ana, ben: ben, cleo: cleo, anas: anas, bens: bens, cleos: cleos, past: past, cancelled: cancelled,
      another: answered)
  }
}

/// A change that meets another one, which decides who sees it.
struct Meeting: Sendable, CustomTestStringConvertible {
  let name: String
  /// The statuses that it may get.
  let expected: Set<Int>
  /// - Returns: the status that it got.
  let act: @Sendable (Party) async throws -> Int

  var testDescription: String { name }

  init(_ name: String, _ expected: Set<Int>, _ act: @escaping @Sendable (Party) async throws -> Int) {
    (self.name, self.expected, self.act) = (name, expected, act)
  }
}

extension Party {
  /// Lets something happen at many parties at once, as if several processes served them. Afterwards, the data is
  /// consistent, and nothing crosses a block.
  static func race(_ body: @escaping @Sendable (Party) async throws -> Void) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<16 { group.addTask { try await body(try await Party.gather(number, in: app)) } }
        try await group.waitForAll()
      }
      try await app.expectConsistency()
      try await app.expectNothingCrossesABlock()
      try await app.takeNotifications()
    }
  }

  // MARK: Changes that may be refused

  func plan(by host: Phone, inviting guests: [Phone]) async throws -> Int {
    let body: Members = [
      ("title", "New"), ("startTime", "2030-05-01T18:00:00Z"), ("timeZone", "UTC"), ("inviteeIds", guests.map(\.id)),
    ]
    return try await host.send("POST", "events", json(body)).status
  }

  func answer(_ status: String, by guest: Phone, to event: String) async throws -> Int {
    try await guest.send("PUT", "events/\(event)/invitations/me", json([("status", status)])).status
  }

  func rename(_ phone: Phone) async throws -> Int {
    try await phone.send("PATCH", "users/me", #"{"displayName": "Another"}"#).status
  }

  func deleteAccount(of phone: Phone) async throws -> Int {
    try await phone.send("DELETE", "users/me", json([("password", phone.password)])).status
  }
}
