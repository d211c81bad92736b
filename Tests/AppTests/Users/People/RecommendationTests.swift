import Testing

@testable import App

@Suite struct RecommendationTests {
  /// Ana's friends are Ben and Cleo; Dev is a friend of both, Emre of Cleo.
  private func circle(_ app: TestApp) async throws -> [Phone] {
    var phones: [Phone] = []
    for name in ["ana", "ben", "cleo", "dev", "emre"] { phones.append(try await app.signUp(name)) }
    for (one, other) in [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (1, 2)] {
      try await app.befriend(phones[one], phones[other])
    }
    return phones
  }

  private func recommended(_ phone: Phone, _ query: String = "") async throws -> [String] {
    try await phone.get("users/recommended\(query)")["items"].array.map {
      "\($0["user"]["username"].string ?? "") \($0["mutualFriendCount"].int ?? -1)"
    }
  }

  @Test func `friends of friends are recommended, those with the most mutual friends first`() async throws {
    try await TestApp.run { app in
      let phones = try await circle(app)
      let (anas, bens, devs) = (
        try await recommended(phones[0]), try await recommended(phones[1]), try await recommended(phones[3])
      )
      #expect(anas == ["dev 2", "emre 1"])
      #expect(bens == ["emre 1"])
      #expect(devs == ["ana 2", "emre 1"])
      let first = try await recommended(phones[0], "?limit=1")
      #expect(first == ["dev 2"])
      let list = try await phones[0].send("GET", "users/recommended")
      #expect(list.json.keys == ["items", "nextCursor", "timestamp"])
      #expect(list.json["nextCursor"] == .null && list.json["timestamp"] == .null)
      #expect(list.json["items"][0]["user"].keys == ["id", "username", "displayName", "pictureUrl"])
      let stranger = try await app.signUp("finn")
      let none = try await recommended(stranger)
      #expect(none == [])
    }
  }

  @Test func `a user with a pending friend request is not recommended until it is declined`() async throws {
    try await TestApp.run { app in
      let phones = try await circle(app)
      let (ana, dev, emre) = (phones[0], phones[3], phones[4])
      let sent = try await ana.sendFriendRequest(to: dev)
      let received = try await emre.sendFriendRequest(to: ana)
      for phone in [ana, dev, emre] {
        let names = try await recommended(phone).map { String($0.prefix { $0 != " " }) }
        #expect(!names.contains(phone.username))
        if phone.id == ana.id { #expect(names == []) } else { #expect(!names.contains("ana")) }
      }
      try await dev.decline(sent)
      try await ana.decline(received)
      let again = try await recommended(ana)
      #expect(again == ["dev 2", "emre 1"])
      try await app.takeNotifications()
    }
  }

  @Test func `an invalid limit or cursor is refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (query, fields) in [
        ("limit=0", ["limit"]), ("limit=x&cursor=x", ["limit", "cursor"]), ("cursor=", ["cursor"]),
      ] {
        let response = try await ana.send("GET", "users/recommended?\(query)")
        #expect(response.status == 422)
        #expect(response.badFields == fields, "\(query)")
      }
    }
  }
}
