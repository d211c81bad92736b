import Postgres
import TestSupport
import Testing

@testable import App

/// The preference of who may send a user friend requests.
@Suite struct RequestPreferenceTests {
  @Test func `the preference is a part of the profile`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let me = try await ana.get("users/me")
      #expect(me["requestsFrom"].string == "everyone" && me["findableBy"].string == "everyone")
      let body = #"{"requestsFrom": "friends-of-friends", "findableBy": "no-one"}"#
      var edited = APIResponse(status: 0, headers: [], body: "")
      #expect(try await ana.stale { edited = try await ana.editProfile(body) } == [.profile])
      #expect(edited.json["requestsFrom"].string == "friends-of-friends")
      #expect(edited.json["findableBy"].string == "no-one")
      #expect(try await ana.stale { try await ana.editProfile(body) } == [])
      for value in [#""friends""#, "null", "1", #""""#] {
        let bad = #"{"requestsFrom": \#(value), "findableBy": \#(value)}"#
        #expect(try await ana.editProfile(bad, expecting: 422).badFields == ["requestsFrom", "findableBy"], "\(value)")
      }
      let export = try await ana.get("users/me/export")["profile"]
      #expect(export["requestsFrom"].string == "friends-of-friends" && export["findableBy"].string == "no-one")
      // Others do not see it.
      let ben = try await app.signUp("ben")
      #expect(try await !ben.get("users/\(ana.id)").keys.contains("requestsFrom"))
    }
  }

  @Test func `only those may ask whom the preference includes`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      try await app.befriend(ben, cleo)
      try await ben.editProfile(#"{"requestsFrom": "friends-of-friends"}"#)
      let body = #"{"receiverId": "\#(ben.id)"}"#
      let refused = try await ana.send("POST", "friend-requests", body)
      #expect(refused.status == 403 && refused.problem == "requests-closed")
      // Nothing was written.
      #expect(try await ana.get("friend-requests?direction=sent")["items"].array.isEmpty)
      try await app.befriend(ana, cleo)
      let request = try await ana.sendFriendRequest(to: ben)
      #expect(try await app.takeNotifications().map { $0 == ("friend-request", ben) } == [true])

      // The response does not tell which preference it is. A request that was sent before stays.
      try await ben.editProfile(#"{"requestsFrom": "no-one"}"#)
      let closed = try await dev.send("POST", "friend-requests", body)
      #expect(closed.status == 403 && closed.json["detail"] == refused.json["detail"])
      #expect(try await ana.sendFriendRequest(to: ben, expecting: 200) == request)
      #expect(try await ben.get("friend-requests")["items"].array.map { $0["id"].string } == [request])
      // A friend gets the usual response, and a blocked user learns nothing.
      #expect(try await cleo.send("POST", "friend-requests", body).problem == "already-friends")
      try await ben.block(dev)
      #expect(try await dev.send("POST", "friend-requests", body).problem == "user-not-found")
    }
  }

  @Test func `a user who was asked may ask back`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.editProfile(#"{"requestsFrom": "no-one"}"#)
      try await ben.sendFriendRequest(to: ana)
      try await ana.sendFriendRequest(to: ben, expecting: 200)
      #expect(
        try await app.takeNotifications().map(\.type) == ["friend-request", "friend-accepted", "friend-accepted"])
    }
  }

  @Test func `being a guest of the same event does not make a friend of a friend`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let event = try #require(try await ana.createEvent()["id"].string)
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "approval": false}"#)
      _ = try await ben.join(link.token)
      try await ana.editProfile(#"{"requestsFrom": "friends-of-friends"}"#)
      let refused = try await ben.send("POST", "friend-requests", #"{"receiverId": "\#(ana.id)"}"#)
      #expect(refused.problem == "requests-closed")
    }
  }

  @Test func `no request arrives after the preference that excludes it`() async throws {
    try await TestApp.run { app in
      let ben = try await app.signUp("ben")
      for round in 0..<10 {
        try await ben.editProfile(#"{"requestsFrom": "everyone"}"#)
        let ana = try await app.signUp("ana\(round)")
        async let closed = ben.editProfile(#"{"requestsFrom": "no-one"}"#)
        async let asked = ana.send("POST", "friend-requests", #"{"receiverId": "\#(ben.id)"}"#)
        _ = try await closed
        let before = try await ben.get("friend-requests")["items"].array.count
        let response = try await asked
        #expect([201, 403].contains(response.status), "\(response.body)")
        // Whatever arrived had arrived when the preference was stored.
        #expect(try await ben.get("friend-requests")["items"].array.count == before)
        try await app.takeNotifications()
      }
    }
  }

  @Test func `searches and recommendations show only those who want to be found`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      try await app.befriend(ben, cleo)
      #expect(try await ana.search("ben") == ["ben"])
      try await ben.editProfile(#"{"findableBy": "friends-of-friends"}"#)
      #expect(try await ana.search("ben").isEmpty)
      #expect(try await cleo.search("ben") == ["ben"])
      try await app.befriend(ana, cleo)
      #expect(try await ana.search("ben") == ["ben"])
      #expect(try await dev.search("ben").isEmpty)
      #expect(try await ana.get("users/recommended")["items"][0]["user"]["username"].string == "ben")
      try await ben.editProfile(#"{"findableBy": "no-one"}"#)
      #expect(try await ana.search("ben").isEmpty)
      #expect(try await cleo.search("ben") == ["ben"])
      #expect(try await ana.get("users/recommended")["items"].array.isEmpty)
      // Guest lists and notifications name people by their ids.
      #expect(try await ana.get("users/\(ben.id)")["username"].string == "ben")
      #expect(try await ana.get("users?ids=\(ben.id)")["items"].array.count == 1)
      // He still finds others, and has the usual friends.
      #expect(try await ben.search("ana") == ["ana"])
    }
  }
}
