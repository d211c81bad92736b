import Postgres
import Testing

@testable import App

@Suite struct PublicProfileTests {
  @Test func `a profile shows the public fields, and the friendship with the reader`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.editProfile(#"{"bio": "Climbs."}"#)
      let url = try await ben.show(Sample.png())
      let profile = try await ana.get("users/\(ben.id.uppercased())")
      #expect(
        profile.keys == ["id", "username", "displayName", "bio", "pictureUrl", "friendship", "mutualFriendCount"])
      #expect(profile["id"].string == ben.id)
      #expect(profile["username"].string == "ben")
      #expect(profile["displayName"].string == "Ben")
      #expect(profile["bio"].string == "Climbs.")
      #expect(profile["pictureUrl"].string == url)
      #expect(profile["friendship"].string == "none")
      #expect(profile["mutualFriendCount"].int == 0)

      func stand() async throws -> [String?] {
        [
          try await ana.get("users/\(ben.id)")["friendship"].string,
          try await ben.get("users/\(ana.id)")["friendship"].string,
        ]
      }
      let declined = try await ana.sendFriendRequest(to: ben)
      let asked = try await stand()
      #expect(asked == ["requested", "requesting"])
      try await ben.decline(declined)
      let apart = try await stand()
      #expect(apart == ["none", "none"])
      try await ana.accept(try await ben.sendFriendRequest(to: ana))
      let together = try await stand()
      #expect(together == ["friends", "friends"])
      try await app.takeNotifications()
    }
  }

  @Test func `mutual friends are counted, and a user is not their own friend`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for name in ["cleo", "dev"] {
        let phone = try await app.signUp(name)
        try await app.befriend(phone, ana)
        try await app.befriend(ben, phone)
      }
      try await app.befriend(ben, try await app.signUp("emre"))
      let (bens, anas) = (try await ana.get("users/\(ben.id)"), try await ben.get("users/\(ana.id)"))
      #expect(bens["mutualFriendCount"].int == 2)
      #expect(anas["mutualFriendCount"].int == 2)
      let own = try await ana.get("users/\(ana.id)")
      #expect(own["friendship"].string == "none")
      #expect(own["mutualFriendCount"].int == 0)
    }
  }

  @Test func `an unknown or deleted user has no profile`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.deleteAccount()
      for id in [ben.id, User.ID.new().description, "x", "%00", "ben", ana.id + "0"] {
        let response = try await app.sendRaw("GET", "/api/v1/users/\(id)", token: ana.accessToken)
        #expect(response.status == 404, "\(id)")
        #expect(response.problem == "user-not-found", "\(id)")
      }
    }
  }
}
