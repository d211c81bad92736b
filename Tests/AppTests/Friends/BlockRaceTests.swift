import Postgres
import Testing

@testable import App

/// Ana blocks Ben while another change connects the two, or changes their connection. Many pairs do so at once.
/// Afterwards nothing crosses a block, and every count is right.
@Suite struct BlockRaceTests {
  static let meetings: [Meeting] = [
    Meeting("being invited", [201, 422]) { try await $0.plan(by: $0.ben, inviting: [$0.cleo, $0.ana]) },
    Meeting("inviting", [201, 422]) { try await $0.plan(by: $0.ana, inviting: [$0.ben, $0.cleo]) },
    Meeting("an edit that notifies all guests", [200]) {
      try await $0.ben.send("PATCH", "events/\($0.bens)", #"{"note": "New", "capacity": 1}"#).status
    },
    Meeting("answers of both users", [200, 404]) { party in
      async let hers = party.answer("maybe", by: party.ana, to: party.bens)
      let his = try await party.answer("going", by: party.ben, to: party.anas)
      let status = try await hers
      #expect([200, 404].contains(status))
      return his
    },
    Meeting("an answer of a waiting guest", [200]) { try await $0.answer("declined", by: $0.cleo, to: $0.bens) },
    Meeting("a new name of the blocked user", [200]) { try await $0.rename($0.ben) },
    Meeting("being blocked in return", [204]) { try await $0.ben.send("PUT", "blocks/\($0.ana.id)").status },
    Meeting("a third user who blocks both of them", [204]) { party in
      async let one = party.cleo.send("PUT", "blocks/\(party.ben.id)").status
      let other = try await party.cleo.send("PUT", "blocks/\(party.ana.id)").status
      let status = try await one
      #expect(status == 204)
      return other
    },
    Meeting("archiving", [1]) { party in
      // Later than the end of every event.
      let later = Timestamp.now().adding(seconds: 20 * 365 * 86_400)
      _ = try await party.app.service.change { try await Event.archive(endedBefore: later, atMost: 20, in: $0) }
      return 1
    },
    Meeting("deleting the account of the blocked user", [204]) { try await $0.deleteAccount(of: $0.ben) },
  ]

  @Test(arguments: meetings) func `a block meets another change`(meeting: Meeting) async throws {
    try await Party.race { party in
      let (anas, cleos) = (try await party.ana.refreshLists(), try await party.cleo.refreshLists())
      async let block = party.ana.send("PUT", "blocks/\(party.ben.id)").status
      let status = try await meeting.act(party)
      let blocked = try await block
      let isKnown = blocked == 204 || blocked == 404 && meeting.name.hasPrefix("deleting")
      #expect(isKnown && meeting.expected.contains(status), "\(blocked), \(status)")
      guard blocked == 204 else { return }
      // Her inbox names him, because he has accepted her request and invited her.
      #expect(try await party.ana.stale(anas).isSuperset(of: [.friends, .notifications]))
      // Archiving touches other users' lists.
      guard meeting.name != "archiving" else { return }
      #expect(try await party.ana.stale(anas).isSuperset(of: [.friends, .events, .invitations]))
      #expect(try await party.cleo.stale(cleos).isSuperset(of: [.events, .invitations]))
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
