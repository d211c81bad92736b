import Postgres
import Testing

@testable import App

/// Ana blocks Ben while another change connects the two, or changes their connection. Many pairs do so at once.
/// Afterwards nothing crosses a block, and every count is right.
@Suite struct BlockRaceTests {
  /// - Parameters:
  ///   - expected: the possible statuses of `action`.
  ///   - blocking: the possible statuses of the block.
  ///   - alone: whether `action` does not touch other users' lists, so that the stale collections are known.
  private func race(
    _ expected: Set<Int>, blocking: Set<Int> = [204], alone: Bool = true,
    _ action: @escaping @Sendable (TestApp, Party) async throws -> Int
  ) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: false) { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<16 {
          group.addTask {
            let party = try await Party.gather(number, in: app)
            let (anas, cleos) = (try await party.ana.refreshLists(), try await party.cleo.refreshLists())
            async let block = party.ana.send("PUT", "blocks/\(party.ben.id)").status
            let status = try await action(app, party)
            let blocked = try await block
            #expect(blocking.contains(blocked) && expected.contains(status), "\(blocked), \(status)")
            guard blocked == 204 else { return }
            // Her inbox names him, because he has accepted her request and invited her.
            #expect(try await party.ana.stale(anas).isSuperset(of: [.friends, .notifications]))
            guard alone else { return }
            #expect(try await party.ana.stale(anas).isSuperset(of: [.friends, .events, .invitations]))
            #expect(try await party.cleo.stale(cleos).isSuperset(of: [.events, .invitations]))
          }
        }
        try await group.waitForAll()
      }
      try await app.expectConsistency()
      try await app.expectNothingCrossesABlock()
      try await app.takeNotifications()
    }
  }

  private func invite(_ guests: [Phone], by host: Phone) async throws -> Int {
    let ids = guests.map { "\"\($0.id)\"" }.joined(separator: ", ")
    return try await host.send(
      "POST", "events",
      #"{"title": "New", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": [\#(ids)]}"#
    ).status
  }

  @Test func `being invited`() async throws {
    try await race([201, 422]) { _, party in try await invite([party.cleo, party.ana], by: party.ben) }
  }

  @Test func `inviting`() async throws {
    try await race([201, 422]) { _, party in try await invite([party.ben, party.cleo], by: party.ana) }
  }

  @Test func `an edit that notifies all guests`() async throws {
    try await race([200]) { _, party in
      try await party.ben.send("PATCH", "events/\(party.bens)", #"{"note": "New", "capacity": 1}"#).status
    }
  }

  @Test func `answers of both users`() async throws {
    try await race([200, 404]) { _, party in
      async let hers = party.ana.send(
        "PUT", "events/\(party.bens)/invitations/me", #"{"status": "maybe"}"#
      ).status
      let his = try await party.ben.send("PUT", "events/\(party.anas)/invitations/me", #"{"status": "going"}"#).status
      let status = try await hers
      #expect([200, 404].contains(status))
      return his
    }
  }

  @Test func `an answer of a waiting guest`() async throws {
    try await race([200]) { _, party in
      try await party.cleo.send("PUT", "events/\(party.bens)/invitations/me", #"{"status": "declined"}"#).status
    }
  }

  @Test func `a new name of the blocked user`() async throws {
    try await race([200]) { _, party in
      try await party.ben.send("PATCH", "users/me", #"{"displayName": "Benjamin"}"#).status
    }
  }

  @Test func `being blocked in return`() async throws {
    try await race([204]) { _, party in try await party.ben.send("PUT", "blocks/\(party.ana.id)").status }
  }

  @Test func `a third user who blocks both of them`() async throws {
    try await race([204]) { _, party in
      async let one = party.cleo.send("PUT", "blocks/\(party.ben.id)").status
      let other = try await party.cleo.send("PUT", "blocks/\(party.ana.id)").status
      let status = try await one
      #expect(status == 204)
      return other
    }
  }

  @Test func `archiving`() async throws {
    try await race([1], alone: false) { app, _ in
      // Later than the end of every event.
      let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
      _ = try await app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
      return 1
    }
  }

  @Test func `deleting the account of the blocked user`() async throws {
    try await race([204], blocking: [204, 404]) { _, party in
      try await party.ben.send("DELETE", "users/me", #"{"password": "\#(party.ben.password)"}"#).status
    }
  }

  /// A copy of the list of blocks with the current stamp is the current list, even if names change in it.
  @Test func `a copy of the blocks with an old name is never called fresh`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for round in 0..<12 {
        try await ana.expectNoStaleCopyCalledFresh(of: "blocks") {
          async let block: APIResponse = ana.block(ben)
          async let name: APIResponse = ben.editProfile(#"{"displayName": "Ben \#(round)"}"#)
          _ = try await (block, name)
        }
        #expect(try await ana.get("blocks")["items"][0]["user"]["displayName"].string == "Ben \(round)")
        try await ana.unblock(ben)
      }
    }
  }

  @Test func `all users block each other`() async throws {
    try await TestApp.run { app in
      let phones = try await app.friendsWhoInviteEachOther(6)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for one in phones {
          for other in phones where other.id != one.id { group.addTask { _ = try await one.block(other) } }
        }
        try await group.waitForAll()
      }
      #expect(try await app.value("SELECT count(*) FROM blocks") == 30)
      #expect(try await app.value("SELECT count(*) FROM friendships") == 0)
      #expect(try await app.value("SELECT count(*) FROM invitations") == 0)
      try await app.expectConsistency()
      try await app.expectNothingCrossesABlock()
      try await app.takeNotifications()
    }
  }
}
