import Postgres
import Testing

@testable import App

@Suite struct ProfileTests {
  @Test func `an edit keeps absent fields, clears the bio with null, and returns the profile`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana", isVerified: false)
      let edited = try await ana.editProfile(#"{"bio": " Climbs. ", "unknown": 1}"#)
      #expect(edited.json["bio"].string == "Climbs.")
      #expect(edited.json["username"].string == "ana")
      #expect(edited.json["displayName"].string == "Ana")
      #expect(edited.json["emailVerified"].bool == false)
      #expect(edited.json["pendingEmail"] == .null)
      // From now on, this is the stamp of the profile.
      let read = try await ana.send("GET", "users/me")
      #expect(read.json == edited.json)
      #expect(read.header("ETag") == edited.header("ETag"))
      let cleared = try await ana.editProfile(#"{"bio": null, "displayName": "Ana D."}"#)
      #expect(cleared.json["bio"] == .null)
      #expect(cleared.json["displayName"].string == "Ana D.")
      for body in ["{}", #"{"bio": null}"#, #"{"username": "ana", "displayName": "Ana D."}"#] {
        #expect(try await ana.stale { try await ana.editProfile(body) } == [], "\(body)")
      }
      let refused = try await ana.editProfile(
        #"{"username": null, "displayName": null, "bio": 5, "email": null}"#, expecting: 422)
      #expect(Set(refused.badFields) == ["username", "displayName", "bio", "email", "currentPassword"])
    }
  }

  @Test func `a username can be changed to a free one, in any case, and sessions continue`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      #expect(try await ben.editProfile(#"{"username": "ANA"}"#, expecting: 409).problem == "username-taken")
      #expect(try await ana.editProfile(#"{"username": "ANA"}"#).json["username"].string == "ANA")
      try await ana.editProfile(#"{"username": "anita"}"#)
      #expect(try await ana.get("users/me")["username"].string == "anita")
      #expect(try await ana.refresh().json["user"]["username"].string == "anita")
      for (login, status) in [("Anita", 200), ("ana", 401)] {
        #expect(try await app.logIn(login, ana.password).status == status, "\(login)")
      }
    }
  }

  @Test func `a username that was given up is retired for 30 days, but its owner may take it back`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let registration = #"{"username": "Ana", "email": "dev@example.com", "password": "correct horse dev"}"#
      // Another spelling gives up no name.
      for name in ["ANA", "anita"] { try await ana.editProfile(#"{"username": "\#(name)"}"#) }
      #expect(try await ben.editProfile(#"{"username": "ana"}"#, expecting: 409).problem == "username-taken")
      #expect(try await app.send("POST", "auth/register", body: registration).problem == "username-taken")
      let days: Int? = try await app.value(
        "SELECT extract(day FROM max(until) - now())::integer FROM retired_usernames")
      #expect([29, 30].contains(days))

      try await ana.editProfile(#"{"username": "ana"}"#)
      #expect(try await ben.editProfile(#"{"username": "anita"}"#, expecting: 409).problem == "username-taken")
      try await ana.editProfile(#"{"username": "anita"}"#)
      try await app.database.execute("UPDATE retired_usernames SET until = now() - interval '1 second'")
      try await ben.editProfile(#"{"username": "ana"}"#)
      // Ben has it now, so Ana's claim is gone.
      #expect(try await ana.editProfile(#"{"username": "ana"}"#, expecting: 409).problem == "username-taken")
      try await ben.editProfile(#"{"username": "ben"}"#)
      #expect(try await ana.editProfile(#"{"username": "ana"}"#, expecting: 409).problem == "username-taken")
      // Nor does a claim outlive the account.
      try await ana.deleteAccount()
      #expect(try await app.value("SELECT count(*) FROM retired_usernames WHERE user_id = \(ana.userID)") == 0)
      #expect(try await ben.editProfile(#"{"username": "anita"}"#, expecting: 409).problem == "username-taken")
    }
  }

  @Test func `one user can keep only a few names from others, each for its thirty days`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      for number in 1...5 { try await ana.editProfile(#"{"username": "ana\#(number)"}"#) }
      let refused = try await ana.editProfile(#"{"username": "ana6"}"#, expecting: 429)
      #expect(refused.problem == "too-many-usernames")
      let wait = try #require(refused.header("Retry-After").flatMap { Int($0) })
      #expect((86_400 * 30 - 60...86_400 * 30).contains(wait))
      #expect(try await ana.get("users/me")["username"].string == "ana5")
      for name in ["ana", "ana1", "ana4"] {
        #expect(try await ben.editProfile(#"{"username": "\#(name)"}"#, expecting: 409).problem == "username-taken")
      }
      // Other fields can still be changed, and a name be taken back.
      try await ana.editProfile(#"{"displayName": "Ana"}"#)
      try await ana.editProfile(#"{"username": "ana"}"#)
      try await app.database.execute("UPDATE retired_usernames SET until = now() - interval '1 second'")
      try await ana.editProfile(#"{"username": "ana6"}"#)
      try await ben.editProfile(#"{"username": "ana1"}"#)
    }
  }

  @Test func `a registration while a username is given up does not get it`() async throws {
    try await TestApp.run { app in
      for round in 0..<5 {
        let ana = try await app.signUp("ana\(round)")
        async let renamed = ana.send("PATCH", "users/me", #"{"username": "anita\#(round)"}"#)
        let statuses = try await app.race(4) { number in
          let email = "\(round).\(number)@example.com"
          return try await app.send(
            "POST", "auth/register",
            body: #"{"username": "ana\#(round)", "email": "\#(email)", "password": "correct horse"}"#)
        }
        #expect(statuses == [409: 4])
        #expect(try await renamed.status == 200)
      }
    }
  }

  @Test func `of many users who take one name at once, one gets it`() async throws {
    try await TestApp.run { app in
      var phones: [Phone] = []
      for number in 0..<8 { phones.append(try await app.signUp("user\(number)")) }
      let people = phones
      let statuses = try await app.race(8) { try await people[$0].send("PATCH", "users/me", #"{"username": "ana"}"#) }
      #expect(statuses == [200: 1, 409: 7])
    }
  }

  @Test func `a new name reaches friends and guests who are added at the same time`() async throws {
    try await TestApp.run { app in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for round in 0..<20 {
          group.addTask {
            let (ana, ben) = (try await app.signUp("ana\(round)"), try await app.signUp("ben\(round)"))
            let request = try await ana.sendFriendRequest(to: ben)
            try await ben.expectNoStaleCopyCalledFresh(of: "friends") {
              async let renamed: APIResponse = ana.editProfile(#"{"displayName": "Anita"}"#)
              try await ben.accept(request)
              _ = try await renamed
            }
            try await ben.expectNoStaleCopyCalledFresh(of: "events") {
              async let renamed: APIResponse = ana.editProfile(#"{"displayName": "Anna"}"#)
              try await ana.createEvent(inviting: [ben])
              _ = try await renamed
            }
            let names = [
              try await ben.get("friends")["items"][0]["user"]["displayName"].string,
              try await ben.get("events")["items"][0]["creator"]["displayName"].string,
            ]
            #expect(names == ["Anna", "Anna"])
          }
        }
        try await group.waitForAll()
      }
      try await app.takeNotifications()
    }
  }
}
