import Postgres
import Testing

@testable import App

@Suite struct BlockTests {
  @Test func `a block ends friendship and requests without a notification`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      let toCleo = try await ana.sendFriendRequest(to: cleo)
      let fromDev = try await dev.sendFriendRequest(to: ana)
      for other in [ben, cleo, dev] { #expect(try await ana.block(other).body.isEmpty) }
      for phone in [ana, ben, cleo, dev] {
        for path in ["friends", "friend-requests?direction=incoming", "friend-requests?direction=sent"] {
          #expect(try await phone.get(path)["items"].array.isEmpty, "\(path) of \(phone.username)")
        }
      }
      // Queued notices between them are also gone.
      #expect(try await app.takeNotifications().isEmpty)
      // As if she had cancelled her request and declined his.
      for (request, status) in [(toCleo, "cancelled"), (fromDev, "declined")] {
        let stands: String? = try await app.value(
          "SELECT status FROM friend_requests WHERE id = \(FriendRequest.ID(request))")
        #expect(stands == status)
      }
      let list = try await ana.get("blocks")
      #expect(list["items"].array.compactMap { $0["user"]["username"].string } == ["dev", "cleo", "ben"])
      #expect(list["items"][0].keys == ["user", "since"])
      #expect(list["items"][0]["user"].keys == ["id", "username", "displayName", "pictureUrl"])
      for phone in [ben, cleo, dev] { #expect(try await phone.blocked() == []) }
    }
  }

  /// docs/accounts.md says so.
  @Test func `what needs no account does not know of a block: the page of a link, and the URL of a picture`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let event = try await ana.createEvent()["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let picture = try await ana.show(Sample.png())
      try await ana.block(ben)
      #expect(try await ben.join(link.token, expecting: 404).problem == "link-not-found")
      #expect(try await ben.send("GET", "users/\(ana.id)").status == 404)
      #expect(try await app.send("GET", "/e/\(link.token)").status == 200)
      #expect(try await app.fetch(picture).status == 200)
      // A new picture has another URL.
      #expect(try await ana.show(Sample.png(1)) != picture)
      #expect(try await app.fetch(picture).status == 404)
      try await app.takeNotifications()
    }
  }

  @Test func `a blocked pair gets the same responses as for unknown ids, in both directions`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      let accepted = try await app.value(
        "SELECT id FROM friend_requests WHERE sender_id = \(ana.userID)", as: FriendRequest.ID.self)
      let unknown = User.ID.new().description
      let (request, unknownRequest) = (try #require(accepted).description, FriendRequest.ID.new().description)
      try await ana.block(ben)
      for (me, other) in [(ana, ben), (ben, ana)] {
        func expectAlike(_ method: String, _ path: (String) -> String, _ body: (String) -> String?) async throws {
          let called = "\(method) \(path("ID")) by \(me.username)"
          let response = try await me.send(method, path(other.id), body(other.id))
          let ofUnknown = try await me.send(method, path(unknown), body(unknown))
          #expect(response.status == ofUnknown.status && response.says == ofUnknown.says, "\(called): \(response.body)")
          #expect([404, 422].contains(response.status))
        }
        try await expectAlike("DELETE", { "friends/\($0)" }, { _ in nil })
        try await expectAlike("POST", { _ in "friend-requests" }, { #"{"receiverId": "\#($0)"}"# })
        try await expectAlike("POST", { _ in "events" }) {
          #"{"title": "A", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": ["\#($0)"]}"#
        }
        for (method, verb) in [("DELETE", ""), ("POST", "/accept"), ("POST", "/decline")] {
          let response = try await me.send(method, "friend-requests/\(request)\(verb)")
          let none = try await me.send(method, "friend-requests/\(unknownRequest)\(verb)")
          #expect(response.status == 404 && response.says == none.says, "\(verb): \(response.body)")
        }
      }
      // Other users still see both.
      try await cleo.sendFriendRequest(to: ana)
      try await cleo.sendFriendRequest(to: ben)
      try await app.takeNotifications()
    }
  }

  @Test func `each loses the invitations to the other's live events, and waiting guests move up`() async throws {
    try await TestApp.run { app in
      let people = try await Party.gather(in: app)
      let (ana, ben, cleo) = (people.ana, people.ben, people.cleo)
      try await ana.block(ben)
      // Only the promoted guest is notified.
      #expect(try await app.takeNotifications().map { $0 == ("waitlist-promoted", cleo) } == [true])
      #expect(try await cleo.get("events/\(people.bens)")["myStatus"].string == "going")
      for (phone, hers, others) in [(ana, people.anas, people.bens), (ben, people.bens, people.anas)] {
        let event = try await phone.get("events/\(hers)")
        #expect(event["participants"].array.map { $0["user"]["username"].string } == ["cleo"])
        #expect(event["counts"]["invited"].int == (phone.id == ana.id ? 1 : 0))
        #expect(event["counts"]["going"].int == (phone.id == ana.id ? 0 : 1))
        #expect(try await phone.send("GET", "events/\(others)").problem == "event-not-found")
        let listed = try await phone.get("events")["items"].array.compactMap { $0["id"].string }
        #expect(listed.contains(hers) && !listed.contains(others))
        let invitations = try await phone.get("invitations")["items"].array.compactMap { $0["event"]["id"].string }
        #expect(!invitations.contains(others))
      }
      // At a third user's event with both as guests, each sees all but the other, and the counts include both.
      for (phone, seen) in [(ana, ["ana"]), (ben, ["ben"]), (cleo, ["ana", "ben"])] {
        let event = try await phone.get("events/\(people.cleos)")
        #expect(event["participants"].array.compactMap { $0["user"]["username"].string }.sorted() == seen)
        #expect(event["counts"]["invited"].int == 2)
        #expect(event["creator"]["username"].string == "cleo")
      }
      try await app.expectConsistency()
      try await app.expectNothingCrossesABlock()
    }
  }

  @Test func `archived events stay, and hide the two from each other`() async throws {
    try await TestApp.run { app in
      let people = try await Party.gather(in: app)
      let (ana, ben) = (people.ana, people.ben)
      try await ben.block(ana)
      try await app.takeNotifications()
      let seen = try await ana.get("events/\(people.past)")
      #expect(seen["creator"] == .null && seen.keys.contains("creator"))
      #expect(seen["hosts"] == .array([]))
      #expect(seen["myStatus"].string == "invited" && seen["myRole"].string == "guest")
      #expect(try await ana.edit(people.past, #"{"title": "Mine"}"#, expecting: 403).problem == "not-a-host")
      let his = try await ben.get("events/\(people.past)")
      #expect(his["participants"].array.isEmpty)
      #expect(his["counts"]["invited"].int == 1)
      #expect(try await ana.get("events?when=past")["items"][0]["creator"] == .null)
      // Unblocking shows the creator again.
      let hidden = try await ana.refreshLists()
      try await ben.unblock(ana)
      #expect(try await ana.stale(hidden) == [.notifications])
      #expect(try await ana.get("events/\(people.past)")["creator"]["username"].string == "ben")
      #expect(try await ana.get("events/\(people.past)")["hosts"][0]["username"].string == "ben")
    }
  }

  @Test(arguments: [true, false])
  func `a cancelled event that is not archived loses the guest, whichever side blocks`(isHost: Bool) async throws {
    try await TestApp.run { app in
      let people = try await Party.gather(in: app)
      let (ana, ben, cancelled) = (people.ana, people.ben, people.cancelled)
      #expect(try await ana.get("events/\(cancelled)")["creator"]["username"].string == "ben")
      let (hers, his) = (try await ana.refreshLists(), try await ben.refreshLists())
      if isHost { try await ben.block(ana) } else { try await ana.block(ben) }
      try await app.takeNotifications()
      #expect(try await ana.stale(hers).isSuperset(of: [.events, .invitations]))
      #expect(try await ben.stale(his).contains(.events))
      #expect(try await ana.send("GET", "events/\(cancelled)").status == 404)
      let lists = [
        try await ana.get("events")["items"].array, try await ana.get("invitations")["items"].array.map { $0["event"] },
      ]
      for list in lists { #expect(list.allSatisfy { $0["id"].string != cancelled }) }
      #expect(try await ben.get("events/\(cancelled)")["counts"]["invited"].int == 0)
      if isHost { try await ben.unblock(ana) } else { try await ana.unblock(ben) }
      #expect(try await ana.send("GET", "events/\(cancelled)").status == 404)
      try await app.expectConsistency()
    }
  }

  @Test func `queued notices between the two are withdrawn, and no others`() async throws {
    try await TestApp.run { app in
      let people = try await Party.gather(in: app)
      let (ana, ben, cleo) = (people.ana, people.ben, people.cleo)
      try await ben.edit(people.bens, #"{"note": "New"}"#)
      try await ana.answer("going", to: people.cleos)
      try await ana.answer("maybe", to: people.another)
      try await cleo.answer("going", to: people.anas)
      try await ben.answer("going", to: people.anas)
      #expect(try await app.queuedNotices().count == 6)
      try await ana.block(ben)
      let received = try await app.takeNotifications().map { "\($0.type) \($0.recipient == ana.id ? "ana" : "other")" }
      #expect(
        received == [
          // Ben's edit for Cleo, Ana's answer for Cleo, Cleo's answer for Ana, and for Cleo the place that Ana gave up.
          "event-updated other", "invitation-answered other", "invitation-answered ana", "waitlist-promoted other",
        ])
    }
  }

  @Test func `a block moves the stamps of everything that it changes, for both users and for others`() async throws {
    try await TestApp.run { app in
      let people = try await Party.gather(in: app)
      let (ana, ben, cleo) = (people.ana, people.ben, people.cleo)
      let dev = try await app.signUp("dev")
      func stale(_ action: () async throws -> Void) async throws -> [String: Set<App.Collection>] {
        try await app.stale(among: [ana, ben, cleo, dev], after: action)
      }
      #expect(
        try await stale { try await ana.block(ben) } == [
          "ana": [.blocks, .friends, .events, .invitations, .notifications],
          "ben": [.friends, .events, .invitations, .notifications],
          // Cleo is promoted.
          "cleo": [.events, .invitations, .notifications],
        ])
      #expect(try await stale { try await ana.block(ben) } == [:])
      // Their notifications about each other are shown again.
      #expect(
        try await stale { try await ana.unblock(ben) } == ["ana": [.blocks, .notifications], "ben": [.notifications]])
      #expect(try await stale { try await ana.unblock(ben) } == [:])
      try await dev.sendFriendRequest(to: cleo)
      #expect(
        try await stale { try await cleo.block(dev) } == [
          "cleo": [.blocks, .friendRequests, .notifications], "dev": [.sentFriendRequests],
        ])
      // A block in return shows no change, like a block of an unknown user.
      #expect(try await stale { try await dev.block(cleo) } == [:])
      let file = try await dev.get("users/me/export")
      #expect(file["blocks"].array.isEmpty)
      #expect(try await stale { try await cleo.editProfile(#"{"displayName": "C."}"#) }["dev"] == nil)
      #expect(try await stale { try await dev.unblock(cleo) } == [:])
      try await dev.block(cleo)
      #expect(try await stale { try await cleo.unblock(dev) } == ["cleo": [.blocks], "dev": [.blocks]])
      try await app.takeNotifications()
    }
  }

  @Test func `a blocked user may block as well, and learns nothing from it`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await ana.block(ben)
      for verb in ["PUT", "DELETE", "PUT"] {
        let response = try await ben.send(verb, "blocks/\(ana.id)")
        let stranger = try await ben.send(verb, "blocks/\(cleo.id)")
        #expect(response.status == 204 && stranger.status == 204)
        #expect(response.body == stranger.body)
      }
      // As if Ana did not exist.
      #expect(try await ben.blocked() == ["cleo"])
      #expect(try await ana.blocked() == ["ben"])
      // Each user can remove only their own block.
      let stale = try await ben.stale { try await ana.unblock(ben) }
      #expect(stale.contains(.blocks))
      #expect(try await ana.blocked() == [])
      #expect(try await ben.blocked() == ["cleo", "ana"])
      let hidden = try await ana.send("POST", "friend-requests", #"{"receiverId": "\#(ben.id)"}"#)
      #expect(hidden.problem == "user-not-found")
      try await ben.unblock(ana)
      // Nothing is restored.
      #expect(try await ana.get("friends")["items"].array.isEmpty)
      #expect(try await ben.get("friends")["items"].array.isEmpty)
      try await app.befriend(ana, ben)
      #expect(try await ben.get("friends")["items"].array.count == 1)
    }
  }

  @Test func `users cannot block themselves, and blocking an unknown user has no effect`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await ana.block(ana, expecting: 422).badFields == ["userId"])
      try await ana.unblock(ana)
      for verb in ["PUT", "DELETE"] {
        #expect(try await ana.send(verb, "blocks/\(User.ID.new())").status == 204)
        #expect(try await ana.send(verb, "blocks/x").problem == "user-not-found")
      }
      #expect(try await ana.blocked() == [])
    }
  }

  @Test func `the list of blocks has pages, and a stamp that new names move`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var others: [Phone] = []
      for number in 0..<5 {
        others.append(try await app.signUp("user\(number)"))
        try await ana.block(others[number])
      }
      var seen: [String] = []
      var cursor: String?
      repeat {
        let page = try await ana.get("blocks?limit=2" + (cursor.map { "&cursor=\($0)" } ?? ""))
        seen += page["items"].array.compactMap { $0["user"]["username"].string }
        cursor = page["nextCursor"].string
      } while cursor != nil
      #expect(seen == ["user4", "user3", "user2", "user1", "user0"])
      let foreign = try await ana.get("blocks?limit=2")["nextCursor"].string ?? ""
      #expect(try await ana.send("GET", "friends?cursor=\(foreign)").badFields == ["cursor"])

      #expect(try await ana.stale { try await others[0].editProfile(#"{"displayName": "Zoe"}"#) } == [.blocks])
      #expect(try await ana.get("blocks")["items"][4]["user"]["displayName"].string == "Zoe")
      #expect(try await ana.stale { try await others[4].deleteAccount() } == [.blocks])
      #expect(try await ana.blocked() == ["user3", "user2", "user1", "user0"])
      // A blocked user's lists do not change with the other's name.
      #expect(try await others[0].stale { try await ana.editProfile(#"{"displayName": "Anita"}"#) } == [])
      try await ana.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM blocks") == 0)
    }
  }

  @Test func `the export has the users whom one has blocked, but not those who blocked the user`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await ana.block(ben)
      let (hers, his) = (try await ana.get("users/me/export"), try await ben.send("GET", "users/me/export"))
      #expect(hers["blocks"].array.map { $0["blocked"]["username"].string } == ["ben"])
      #expect(hers["blocks"][0].keys == ["blocked", "createdAt"])
      #expect(his.json["blocks"].array.isEmpty)
      #expect(his.json["friendRequests"].array.isEmpty)
      for trace in [ana.id, #""ana""#, #""Ana""#] { #expect(!his.body.contains(trace)) }
    }
  }
}

extension APIResponse {
  /// The body without its request id, the only part that may differ between two equal responses.
  fileprivate var says: String { body.replacing(json["requestId"].string ?? "", with: "") }
}
