import Postgres
import Testing

@testable import App

@Suite struct FriendTests {
  @Test func `users send a friend request, accept it, and become friends`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ana.sendFriendRequest(to: ben)
      #expect(try await app.takeNotifications().map { $0 == ("friend-request", ben) } == [true])

      let sent = try await ana.get("friend-requests?direction=sent")
      #expect(sent["items"].array.count == 1)
      #expect(sent["items"][0]["receiver"]["username"].string == "ben")
      let incoming = try await ben.get("friend-requests?direction=incoming")
      #expect(incoming["items"][0]["id"].string == request)
      #expect(incoming["items"][0]["status"].string == "pending")

      let accepted = try await ben.accept(request)
      #expect(accepted.json["status"].string == "accepted")
      let received = try await app.takeNotifications()
      #expect(received.map { $0 == ("friend-accepted", ana) } == [true])
      #expect(received[0].payload["userId"].string == ben.id)
      #expect(received[0].payload["message"].string == "You and Ben are now friends.")

      for (phone, other) in [(ana, "ben"), (ben, "ana")] {
        let friends = try await phone.get("friends")
        #expect(friends["items"].array.map { $0["user"]["username"].string } == [other])
        #expect(friends["items"][0]["user"].keys == ["id", "username", "displayName", "pictureUrl"])
        for direction in ["incoming", "sent"] {
          #expect(try await phone.get("friend-requests?direction=\(direction)")["items"].array.isEmpty)
        }
      }
    }
  }

  @Test func `repeating a verb gets the same response, and a contrary verb gets a conflict`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ana.sendFriendRequest(to: ben)
      #expect(try await ana.sendFriendRequest(to: ben, expecting: 200) == request)
      let once = try await ben.accept(request)
      let twice = try await ben.accept(request)
      #expect(once.body == twice.body)
      #expect(try await ben.decline(request, expecting: 409).problem == "friend-request-closed")
      let again = try await ana.send("POST", "friend-requests", #"{"receiverId": "\#(ben.id)"}"#)
      #expect(again.problem == "already-friends")
      // Only real changes are notified: one request and one acceptance.
      #expect(try await app.takeNotifications().map(\.type) == ["friend-request", "friend-accepted"])
    }
  }

  @Test func `a request that meets an opposite request makes the two friends`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ana.sendFriendRequest(to: ben)
      let met = try await ben.send("POST", "friend-requests", #"{"receiverId": "\#(ana.id)"}"#)
      #expect(met.status == 200)
      #expect(met.json["status"].string == "accepted")
      #expect(met.json["id"].string == request)
      let received = try await app.takeNotifications()
      #expect(received.filter { $0.type == "friend-accepted" }.map(\.recipient).sorted() == [ana.id, ben.id].sorted())
    }
  }

  @Test func `a cancelled request disappears without a notification`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let cleo = try await app.signUp("cleo")
      let request = try await ana.sendFriendRequest(to: ben)
      let others = try await cleo.sendFriendRequest(to: ben)
      for phone in [ben, cleo] {
        #expect(try await phone.cancel(request, expecting: 404).problem == "friend-request-not-found")
      }
      let once = try await ana.cancel(request)
      #expect(once.json["status"].string == "cancelled")
      #expect(once.json["receiver"]["id"].string == ben.id)
      #expect(try await ana.cancel(request).body == once.body)
      // The queue now holds only Cleo's request for Ben.
      let received = try await app.takeNotifications()
      #expect(received.map { $0.payload["requestId"].string } == [others])
      #expect(try await ana.get("friend-requests?direction=sent")["items"].array.isEmpty)
      #expect(try await ben.get("friend-requests")["items"].array.map { $0["id"].string } == [others])
      #expect(try await ben.accept(request, expecting: 409).problem == "friend-request-closed")
      #expect(try await ben.decline(request, expecting: 409).problem == "friend-request-closed")
      #expect(try await ana.sendFriendRequest(to: ben) != request)
      try await app.takeNotifications()
    }
  }

  @Test func `a request that was declined or accepted cannot be cancelled`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let first = try await ana.sendFriendRequest(to: ben)
      try await ben.decline(first)
      #expect(try await ana.cancel(first, expecting: 409).problem == "friend-request-closed")
      try await app.letFriendRequestsAge(by: "1 day")
      let second = try await ana.sendFriendRequest(to: ben)
      try await ben.accept(second)
      #expect(try await ana.cancel(second, expecting: 409).problem == "friend-request-closed")
      #expect(try await ana.get("friends")["items"].array.count == 1)
      try await app.takeNotifications()
    }
  }

  @Test func `a cancelled request leaves the inbox and reaches no device`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let cleo = try await app.signUp("cleo")
      try await ben.register(token: "bens")
      let request = try await ana.sendFriendRequest(to: ben)
      try await cleo.sendFriendRequest(to: ben)
      try await app.fanOut()
      func received() async throws -> [String?] {
        try await ben.get("notifications")["items"].array.map { $0["userId"].string }
      }
      #expect(Set(try await received()) == [ana.id, cleo.id])
      #expect(try await app.value("SELECT count(*) FROM deliveries") == 2)
      #expect(try await ben.stale { try await ana.cancel(request) } == [.friendRequests, .notifications])
      #expect(try await received() == [cleo.id])
      let waiting = try await app.database.rows("SELECT person_id FROM deliveries")
      #expect(try waiting.map { try $0["person_id"] as User.ID } == [cleo.userID])
      try await app.takeNotifications()
    }
  }

  @Test func `a friendship ends for both without a notification, and invitations stay`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      let event = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
      try await app.takeNotifications()
      for _ in 0..<2 { #expect(try await ben.unfriend(ana).body.isEmpty) }
      #expect(try await ben.get("friends")["items"].array.isEmpty)
      #expect(try await ana.get("friends")["items"].array.map { $0["user"]["username"].string } == ["cleo"])
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "invited")
      #expect(try await app.takeNotifications().isEmpty)
      #expect(try await ben.send("DELETE", "friends/\(User.ID.new())").problem == "user-not-found")
      // They can become friends again.
      try await app.befriend(ben, ana)
      #expect(try await ana.get("friends")["items"].array.count == 2)
    }
  }

  @Test func `a friend request can be read by the two users whom it concerns`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let id = try await ana.sendFriendRequest(to: ben)
      for phone in [ana, ben] { #expect(try await phone.get("friend-requests/\(id)")["status"].string == "pending") }
      try await ben.decline(id)
      for phone in [ana, ben] { #expect(try await phone.get("friend-requests/\(id)")["status"].string == "declined") }
      try await ben.block(ana)
      for phone in [ana, ben] {
        #expect(try await phone.send("GET", "friend-requests/\(id)").problem == "friend-request-not-found")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `pages of friends neither skip nor repeat`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var expected: Set<String> = []
      for index in 0..<23 {
        let other = try await app.signUp("friend\(index)")
        try await app.befriend(ana, other)
        expected.insert(other.username)
      }
      var seen: [String] = []
      var cursor: String?
      var stamps: [String?] = []
      repeat {
        let page = try await ana.get("friends?limit=5" + (cursor.map { "&cursor=\($0)" } ?? ""))
        #expect(page["items"].array.count <= 5)
        seen += page["items"].array.compactMap { $0["user"]["username"].string }
        stamps.append(page["timestamp"].string)
        cursor = page["nextCursor"].string
        if seen.count == 10 { try await app.befriend(ana, try await app.signUp("late")) }
      } while cursor != nil
      #expect(seen.count == 23)
      #expect(Set(seen) == expected)
      // Once the list has changed, no page carries a stamp: the pages do not fit together.
      let first = try #require(stamps[0])
      #expect(stamps == [first, first, nil, nil, nil])
      #expect(try await ana.stale([.friends: first]) == [.friends])
    }
  }
}
