import Postgres
import Testing

@testable import App

/// Deleting an account while somebody does something with it, many times: whoever is first, nothing is left half done.
@Suite struct DeletionRaceTests {
  /// Ana, who goes; Ben, her friend; Cleo, a friend of both, waiting for a place.
  private struct Round: Sendable {
    let ana: Phone
    let ben: Phone
    let cleo: Phone
    /// Ana's, to which Ben and Cleo are invited.
    let hers: String
    /// Ben's, with one place, which Ana has.
    let his: String

    init(_ number: Int, in app: TestApp) async throws {
      ana = try await app.signUp("ana\(number)")
      ben = try await app.signUp("ben\(number)")
      cleo = try await app.signUp("cleo\(number)")
      for (one, other) in [(ana, ben), (ben, cleo), (ana, cleo)] {
        try await other.accept(try await one.sendFriendRequest(to: other))
      }
      hers = try await ana.createEvent("Hers", inviting: [ben, cleo])["id"].string ?? ""
      his = try await ben.createEvent("His", inviting: [ana, cleo], capacity: 1)["id"].string ?? ""
      try await ana.answer("going", to: his)
      try await cleo.answer("going", to: his)
    }
  }

  /// - Parameter expected: what `action` may be answered.
  private func race(
    _ expected: Set<Int>, _ action: @escaping @Sendable (TestApp, Round) async throws -> Int
  ) async throws {
    try await TestApp.run { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<16 {
          group.addTask {
            let round = try await Round(number, in: app)
            let cleos = try await round.cleo.refreshLists()
            async let deleted: Answer = round.ana.deleteAccount()
            let status = try await action(app, round)
            _ = try await deleted
            #expect(expected.contains(status), "\(status)")
            #expect(try await round.cleo.stale(cleos).isSuperset(of: [.friends, .events, .invitations]))
            let people = try await round.ben.get("friends")["items"].array.map { $0["user"]["username"].string }
            #expect(people == [round.cleo.username])
            #expect(try await round.cleo.get("events/\(round.his)")["myStatus"].string == "going")
            #expect(try await round.cleo.get("events/\(round.hers)")["status"].string == "cancelled")
          }
        }
        try await group.waitForAll()
      }
      let users: Int? = try await app.value("SELECT count(*) FROM users WHERE username LIKE 'ana%'")
      #expect(users == 0)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `being invited`() async throws {
    try await race([201, 422]) { _, round in
      let guests = "\"\(round.cleo.id)\", \"\(round.ana.id)\""
      return try await round.ben.send(
        "POST", "events",
        #"{"title": "New", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": [\#(guests)]}"#
      ).status
    }
  }

  @Test func `inviting`() async throws {
    try await race([201, 401]) { _, round in
      try await round.ana.send(
        "POST", "events",
        """
        {"title": "New", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": ["\(round.ben.id)"]}
        """
      ).status
    }
  }

  @Test func `being asked to be friends, and accepting`() async throws {
    try await race([200, 401, 404]) { app, round in
      let dev = try await app.signUp("dev\(round.ana.username.dropFirst(3))")
      let asked = try await dev.send("POST", "friend-requests", #"{"receiverId": "\#(round.ana.id)"}"#)
      guard let request = asked.json["id"].string else { return asked.status }
      return try await round.ana.send("POST", "friend-requests/\(request)/accept").status
    }
  }

  @Test func `accepting their request`() async throws {
    try await TestApp.run { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<16 {
          group.addTask {
            let (ana, ben) = (try await app.signUp("ana\(number)"), try await app.signUp("ben\(number)"))
            let request = try await ana.sendFriendRequest(to: ben)
            async let deleted: Answer = ana.deleteAccount()
            let accepted = try await ben.send("POST", "friend-requests/\(request)/accept").status
            _ = try await deleted
            #expect([200, 404].contains(accepted))
            for path in ["friends", "friend-requests"] { #expect(try await ben.get(path)["items"].array.isEmpty) }
          }
        }
        try await group.waitForAll()
      }
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }

  @Test func `answers to their event`() async throws {
    try await race([200, 409]) { _, round in
      try await round.ben.send("PUT", "events/\(round.hers)/invitations/me", #"{"status": "going"}"#).status
    }
  }

  @Test func `an answer of their own`() async throws {
    try await race([200, 401, 404]) { _, round in
      try await round.ana.send("PUT", "events/\(round.his)/invitations/me", #"{"status": "maybe"}"#).status
    }
  }

  @Test func `an edit of their own event`() async throws {
    try await race([200, 401, 404]) { _, round in
      try await round.ana.send("PATCH", "events/\(round.hers)", #"{"title": "Other"}"#).status
    }
  }

  @Test func `a friend's new name`() async throws {
    try await race([200]) { _, round in
      try await round.ben.send("PATCH", "users/me", #"{"displayName": "Benjamin"}"#).status
    }
  }

  @Test func `a new name of their own`() async throws {
    try await race([200, 401]) { _, round in
      try await round.ana.send("PATCH", "users/me", #"{"displayName": "Anita"}"#).status
    }
  }

  @Test func `logging in`() async throws {
    try await race([200, 401]) { app, round in
      try await app.logIn(round.ana.username, round.ana.password).status
    }
  }

  @Test func `refreshing`() async throws {
    try await race([200, 401]) { _, round in try await round.ana.refresh().status }
  }

  @Test func `of two deletions, one does it`() async throws {
    try await TestApp.run { app in
      for round in 0..<8 {
        let ana = try await app.signUp("ana\(round)")
        async let one = ana.send("DELETE", "users/me", #"{"password": "\#(ana.password)"}"#).status
        async let other = ana.send("DELETE", "users/me", #"{"password": "\#(ana.password)"}"#).status
        let statuses = try await [one, other]
        #expect(statuses.sorted() == [204, 401])
      }
    }
  }

  @Test func `all friends deleting theirs too`() async throws {
    try await TestApp.run { app in
      var phones: [Phone] = []
      for number in 0..<8 { phones.append(try await app.signUp("user\(number)")) }
      for (index, one) in phones.enumerated() {
        for other in phones.dropFirst(index + 1) { try await app.befriend(one, other) }
      }
      for phone in phones {
        let guests = phones.filter { $0.id != phone.id }
        let id = try await phone.createEvent(inviting: guests, capacity: 2)["id"].string ?? ""
        for guest in guests { try await guest.answer("going", to: id) }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for phone in phones.dropLast() { group.addTask { _ = try await phone.deleteAccount() } }
        try await group.waitForAll()
      }
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
      #expect(try await app.value("SELECT count(*) FROM friendships") == 0)
      #expect(try await phones[7].get("friends")["items"].array.isEmpty)
      try await app.expectConsistency()
      try await app.takeNotifications()
    }
  }
}
