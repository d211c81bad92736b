import Postgres
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

  @Test func `more people cause no more statements`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      try await app.plantUsers(1, named: "Clara")
      let paths = ["users?query=clara", "users/recommended", "users/\(ben.id)"]
      // Things that happen only once, such as the opening of connections.
      for path in paths { _ = try await ana.get(path) }
      var few: [[String]] = []
      for path in paths { few.append(try await log.statements { _ = try await ana.get(path) }) }
      try await app.plantFriends(200, of: ben)
      // The search also needs BEGIN, COMMIT and a setting; the recommendations need the first two.
      #expect(few.map(\.count) == [4, 3, 1])
      for (path, statements) in zip(paths, few) {
        var count = 0
        let many = try await log.statements { count = try await ana.get(path)["items"].array.count }
        #expect(many == statements, "\(path)")
        if path != paths[2] { #expect(count == 50, "\(path)") }
      }
    }
  }
}

extension TestApp {
  /// Inserts friends of a user.
  fileprivate func plantFriends(_ count: Int, of friend: Phone) async throws {
    try await database.execute(
      """
      WITH planted AS (
        INSERT INTO users (id, username, display_name)
        SELECT uuid_v7(), 'friend.' || number, 'Clara' FROM generate_series(1, \(count)) AS number
        RETURNING id
      )
      INSERT INTO friendships (user_a, user_b)
      SELECT least(id, \(friend.userID)), greatest(id, \(friend.userID)) FROM planted
      """)
  }
}
