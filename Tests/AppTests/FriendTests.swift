import Postgres
import Testing

@testable import App

@Suite struct FriendTests {
  @Test func `asking, accepting, and being friends`() async throws {
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
      let told = try await app.takeNotifications()
      #expect(told.map { $0 == ("friend-accepted", ana) } == [true])
      #expect(told[0].payload["userId"].string == ben.id)
      #expect(told[0].payload["message"].string == "Ben and you are friends now.")

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

  @Test func `each verb makes exactly the lists stale that it changes`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (
        try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo")
      )
      var request = ""
      var staleForBen: Set<App.Collection> = []
      var staleForCleo: Set<App.Collection> = []

      /// What `action` makes stale for the three of them.
      func stale(_ action: () async throws -> Void) async throws -> Set<App.Collection> {
        let (before, others) = (try await ben.refreshLists(), try await cleo.refreshLists())
        let mine = try await ana.stale(after: action)
        staleForBen = try await ben.stale(before)
        staleForCleo = try await cleo.stale(others)
        return mine
      }

      #expect(try await stale { request = try await ana.sendFriendRequest(to: ben) } == [.sentFriendRequests])
      #expect(staleForBen == [.friendRequests])
      #expect(try await stale { try await ana.sendFriendRequest(to: ben, expecting: 200) } == [])
      #expect(try await stale { try await ben.decline(request) } == [.sentFriendRequests])
      #expect(staleForBen == [.friendRequests])
      #expect(try await stale { try await ben.decline(request) } == [])
      request = try await ana.sendFriendRequest(to: ben)
      #expect(try await stale { try await ben.accept(request) } == [.sentFriendRequests, .friends])
      #expect(staleForBen == [.friendRequests, .friends])
      #expect(try await stale { try await ben.accept(request) } == [])
      #expect(staleForBen == [])
      #expect(staleForCleo == [])
      try await app.takeNotifications()
    }
  }

  @Test func `the same verb again gets the same answer, another one a conflict`() async throws {
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
      // Only what happened is told: one request, one acceptance.
      #expect(try await app.takeNotifications().map(\.type) == ["friend-request", "friend-accepted"])
    }
  }

  @Test func `only the receiver may answer, and nobody else learns of the request`() async throws {
    try await TestApp.run { app in
      let (ana, ben, cleo) = (
        try await app.signUp("ana"), try await app.signUp("ben"), try await app.signUp("cleo")
      )
      let request = try await ana.sendFriendRequest(to: ben)
      try await app.takeNotifications()
      let unknown = try await cleo.send("POST", "friend-requests/\(FriendRequest.ID.new())/accept")
      for phone in [ana, cleo] {
        for verb in ["accept", "decline"] {
          let answer = try await phone.send("POST", "friend-requests/\(request)/\(verb)")
          #expect(answer.status == 404)
          #expect(answer.json["type"] == unknown.json["type"])
          #expect(answer.json["detail"] == unknown.json["detail"])
        }
      }
    }
  }

  @Test func `nobody asks oneself or a stranger who does not exist`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let oneself = try await ana.send("POST", "friend-requests", #"{"receiverId": "\#(ana.id)"}"#)
      #expect(oneself.status == 422)
      #expect(oneself.badFields == ["receiverId"])
      let nobody = try await ana.send("POST", "friend-requests", #"{"receiverId": "\#(User.ID.new())"}"#)
      #expect(nobody.status == 404)
      #expect(nobody.problem == "user-not-found")
    }
  }

  @Test func `a request that meets another makes friends at once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let request = try await ana.sendFriendRequest(to: ben)
      let met = try await ben.send("POST", "friend-requests", #"{"receiverId": "\#(ana.id)"}"#)
      #expect(met.status == 200)
      #expect(met.json["status"].string == "accepted")
      #expect(met.json["id"].string == request)
      let told = try await app.takeNotifications()
      #expect(told.filter { $0.type == "friend-accepted" }.map(\.recipient).sorted() == [ana.id, ben.id].sorted())
    }
  }

  /// Two people, both verbs at once, many times: whoever is first, the pair ends in one consistent state.
  @Test(arguments: ["send/send", "send/accept", "accept/accept", "accept/decline", "decline/send"])
  func `verbs that cross end in one state`(pair: String) async throws {
    try await TestApp.run { app in
      let verbs = pair.split(separator: "/").map(String.init)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<12 {
          group.addTask {
            let (ana, ben) = (try await app.signUp("ana\(round)"), try await app.signUp("ben\(round)"))
            let standing = verbs == ["send", "send"] ? "" : try await ana.sendFriendRequest(to: ben)
            @Sendable func act(_ verb: String, _ me: Phone, _ other: Phone) async throws -> Int {
              verb == "send"
                ? try await me.send("POST", "friend-requests", #"{"receiverId": "\#(other.id)"}"#).status
                : try await me.send("POST", "friend-requests/\(standing)/\(verb)").status
            }
            // A crossing `send` comes from each side; the other verbs are the receiver's alone.
            let first = verbs[0] == "send" && verbs[1] == "send" ? (ana, ben) : (ben, ana)
            async let one = act(verbs[0], first.0, first.1)
            async let two = act(verbs[1], ben, ana)
            let statuses = try await [one, two]
            #expect(statuses.allSatisfy { [200, 201, 409].contains($0) }, "\(pair): \(statuses)")

            let pending: Int? = try await app.value(
              """
              SELECT count(*) FROM friend_requests
              WHERE status = 'pending' AND sender_id IN (\(ana.userID), \(ben.userID))
              """)
            let accepted: Int? = try await app.value(
              """
              SELECT count(*) FROM friend_requests
              WHERE status = 'accepted' AND sender_id IN (\(ana.userID), \(ben.userID))
              """)
            let friends = try await ana.get("friends")["items"].array.count
            #expect(try await ben.get("friends")["items"].array.count == friends)
            #expect(friends == accepted)
            #expect((pending ?? 0) + friends <= 1, "\(pair): \(statuses)")
            if verbs == ["send", "send"] { #expect(friends == 1) }
          }
        }
        try await group.waitForAll()
      }
      try await app.takeNotifications()
    }
  }

  @Test func `friends come in pages that neither skip nor repeat`() async throws {
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
      var stamps: Set<String> = []
      repeat {
        let page = try await ana.get("friends?limit=5" + (cursor.map { "&cursor=\($0)" } ?? ""))
        #expect(page["items"].array.count <= 5)
        seen += page["items"].array.compactMap { $0["user"]["username"].string }
        stamps.insert(try #require(page["timestamp"].string))
        cursor = page["nextCursor"].string
        if seen.count == 10 { try await app.befriend(ana, try await app.signUp("late")) }
      } while cursor != nil
      #expect(seen.count == 23)
      #expect(Set(seen) == expected)
      // All pages carry the first one's stamp, so that what came in between is not taken for seen.
      #expect(stamps.count == 1)
      #expect(try await ana.stale([.friends: try #require(stamps.first)]) == [.friends])
    }
  }
}
