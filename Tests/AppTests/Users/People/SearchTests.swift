import Foundation
import Postgres
import Testing

@testable import App

extension Phone {
  /// - Returns: the usernames that a search finds, in order.
  func search(
    _ query: String, limit: Int? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> [String] {
    let escaped = query.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    let path = "users?query=\(escaped)" + (limit.map { "&limit=\($0)" } ?? "")
    return try await get(path, sourceLocation: sourceLocation)["items"].array.compactMap { $0["username"].string }
  }
}

@Suite struct SearchTests {
  @Test func `users are read by their ids, in order, without hidden and unknown ones`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let (cleo, dev) = (try await app.signUp("cleo"), try await app.signUp("dev"))
      try await dev.block(ana)
      let unknown = User.ID.new().description
      let response = try await ana.get("users?ids=\(cleo.id),\(dev.id),\(ben.id.uppercased()),\(unknown),\(ana.id)")
      #expect(response["items"].array.map { $0["username"].string } == ["cleo", "ben", "ana"])
      #expect(
        response["items"][0].keys == ["id", "username", "displayName", "pictureUrl", "friendship", "mutualFriendCount"])
      #expect(response["timestamp"] == .null && response["nextCursor"] == .null)
      let tooMany = Array(repeating: ben.id, count: 101).joined(separator: ",")
      for bad in ["", ",", "x", "\(ben.id),", "\(ben.id)%20\(cleo.id)", tooMany] {
        #expect(try await ana.send("GET", "users?ids=\(bad)").badFields == ["ids"], "\(bad)")
      }
      let both = try await ana.send("GET", "users?ids=\(ben.id)&query=ben")
      #expect(both.badFields == ["query"])
    }
  }

  @Test func `a search finds usernames and each part of names, and shows people as lists do`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.signUp("fzei", displayName: "Fatima Zahra El Idrissi")
      for query in [
        "fzei", "FZEI", "fatima", "Zahra", "idrissi", "el idrissi", " Fatima Zahra ", "fatima+zahra", "fat",
      ] {
        let found = try await ana.search(query)
        #expect(found == ["fzei"], "\(query)")
      }
      let list = try await ana.send("GET", "users?query=fatima")
      #expect(list.json.keys == ["items", "nextCursor", "timestamp"])
      #expect(list.json["nextCursor"] == .null)
      #expect(list.json["timestamp"] == .null)
      #expect(
        list.json["items"][0].keys == [
          "id", "username", "displayName", "pictureUrl", "friendship", "mutualFriendCount",
        ])
      #expect(list.header("ETag") == nil)
    }
  }

  @Test func `of a person with thousands of friends, a search compares one thousand, and the profile all`() async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      _ = try await app.crowd(FoundUser.friendsCompared + 100, around: ana)
      try await app.database.execute(
        """
        INSERT INTO friendships (user_a, user_b)
        SELECT least(friend_id, \(ben.userID)), greatest(friend_id, \(ben.userID))
        FROM friends WHERE user_id = \(ana.userID)
        """)
      for path in ["users?query=ben", "users?ids=\(ben.id)"] {
        #expect(try await ana.get(path)["items"][0]["mutualFriendCount"].int == FoundUser.friendsCompared)
      }
      #expect(try await ana.get("users/\(ben.id)")["mutualFriendCount"].int == FoundUser.friendsCompared + 100)
    }
  }

  @Test func `each person comes with the friendship and the number of friends in common, as in their profile`()
    async throws
  {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let names = ["asked", "asking", "cleo", "dev", "emre"]
      var phones = ["friend": ben]
      for name in names { phones[name] = try await app.signUp("clara.\(name)", displayName: "Clara") }
      let unproven = try await app.signUp("clara.unproven", displayName: "Clara", isVerified: false)
      let verification = try await app.takeMails().first { $0.to == "clara.unproven@example.com" }?.token
      let (asked, asking) = (try #require(phones["asked"]), try #require(phones["asking"]))
      for other in [asked, asking] { try await app.befriend(other, ben) }
      _ = try await ana.sendFriendRequest(to: asked)
      _ = try await asking.sendFriendRequest(to: ana)
      _ = try await unproven.sendFriendRequest(to: ana)
      try await app.befriend(try #require(phones["cleo"]), ana)

      /// The relationships of the people in a list, by name, which are those of their profiles.
      func found(_ reader: Phone, _ path: String) async throws -> [String: String] {
        var found: [String: String] = [:]
        for person in try await reader.get(path)["items"].array {
          let profile = try await reader.get("users/\(person["id"].string ?? "")")
          #expect(person["friendship"] == profile["friendship"])
          #expect(person["mutualFriendCount"] == profile["mutualFriendCount"])
          found[person["username"].string ?? ""] =
            "\(person["friendship"].string ?? "") \(person["mutualFriendCount"].int ?? -1)"
        }
        return found
      }
      let expected = [
        "clara.asked": "requested 1", "clara.asking": "requesting 1", "clara.cleo": "friends 0", "clara.dev": "none 0",
        "clara.emre": "none 0", "clara.unproven": "none 0",
      ]
      #expect(try await found(ana, "users?query=clara") == expected)
      let ids = (phones.values.map(\.id) + [unproven.id, ana.id]).joined(separator: ",")
      #expect(
        try await found(ana, "users?ids=\(ids)")
          == expected.merging(["ben": "friends 0", "ana": "none 0"]) { $1 })
      // The filtered request is known to its sender, and to others only once the sender has proven an address.
      #expect(try await found(unproven, "users?query=ana")["ana"] == "requested 0")
      #expect(try await unproven.verify(try #require(verification)).status == 204)
      #expect(try await found(ana, "users?query=clara")["clara.unproven"] == "requesting 0")
      // A block ends the request, and hides who has blocked.
      try await asking.block(ana)
      try await ana.block(asked)
      let left = try await found(ana, "users?query=clara")
      #expect(Set(left.keys) == ["clara.cleo", "clara.dev", "clara.emre", "clara.unproven"])
      #expect(try await found(asked, "users?query=ana")["ana"] == nil)
      try await app.takeNotifications()
    }
  }

  @Test func `relationships are read for the people on the page, and for no others`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.plantUsers(500, named: "Clara")
      let lines: [String] = try await app.database.rows(
        "EXPLAIN (ANALYZE) \(FoundUser.search("clara", for: ana.userID, atMost: 3))"
      ).map { try $0[0] }
      let scans = lines.filter { $0.contains(" on friend_requests ") }
      #expect(!scans.isEmpty, "\(lines)")
      for scan in scans { #expect(scan.contains("loops=3)"), "\(scan)") }
    }
  }

  @Test func `accents and case make no difference, on either side`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (username, name) in [
        ("u1", "José Núñez"), ("u2", "Øystein Åberg"), ("u3", "Łukasz Żółć"), ("u4", "Nguyễn Văn Ước"),
        ("u5", "Çağla Şimşek"), ("u6", "Élodie Straßer"), ("u7", "Zoe\u{308} Cafe\u{301}"), ("u8", "Ελένη Παππά"),
      ] {
        _ = try await app.signUp("\(username)xx", displayName: name)
      }
      for (query, username) in [
        ("jose nunez", "u1xx"), ("JOSÉ", "u1xx"), ("Nuñez", "u1xx"), ("oystein", "u2xx"), ("ABERG", "u2xx"),
        ("lukasz", "u3xx"), ("zolc", "u3xx"), ("nguyen van uoc", "u4xx"), ("cagla", "u5xx"), ("simsek", "u5xx"),
        ("elodie", "u6xx"), ("strasser", "u6xx"), ("STRASSER", "u6xx"), ("zoë", "u7xx"), ("café", "u7xx"),
        ("ελενη", "u8xx"), ("ΠΑΠΠΑ", "u8xx"),
      ] {
        let found = try await ana.search(query)
        #expect(found.first == username, "\(query): \(found)")
      }
    }
  }

  @Test(arguments: [
    // Each kind of typo, at the start, in the middle and at the end.
    "xenjamin", "menjamin", "bemjamin", "benjamim", "benjami", "enjamin", "bejamin", "bennjamin", "ebnjamin",
    "benajmin",
    "benjamni", "benjaminn",
    "Pkafor", "Okaxor", "Okafot", "Kafor", "Okafro", "Oakfor", "Okaffor", "benjamin okafro",
  ])
  func `a typo anywhere is forgiven`(_ query: String) async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.signUp("bo77", displayName: "Benjamin Okafor")
      for (username, name) in [("cleo", "Cleo Martin"), ("dev", "Dev Patel"), ("emre", "Emre Yılmaz")] {
        _ = try await app.signUp(username, displayName: name)
      }
      let found = try await ana.search(query)
      #expect(found.first == "bo77", "\(found)")
    }
  }

  @Test(arguments: ["klara", "clarx", "xlara", "clxra"])
  func `a typo in a short name is also forgiven`(_ query: String) async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.signUp("clara")
      let found = try await ana.search(query)
      #expect(found == ["clara"])
    }
  }

  @Test func `names in other scripts are found, even with a typo`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (username, name) in [
        ("sergey", "Сергей Иванов"), ("taro", "田中太郎"), ("ali", "علي حسن"), ("minjun", "김민준"), ("gaku", "がくと"),
      ] {
        _ = try await app.signUp(username, displayName: name)
      }
      for (query, username) in [
        ("сергей", "sergey"), ("СЕРГЕЙ", "sergey"), ("ИВАНОВ", "sergey"), ("сергай", "sergey"), ("Уванов", "sergey"),
        ("иванав", "sergey"), ("田中", "taro"), ("田中太郎", "taro"), ("田中次郎", "taro"), ("حسن", "ali"), ("김민준", "minjun"),
        ("がくと", "gaku"),
      ] {
        let found = try await ana.search(query)
        #expect(found.first == username, "\(query): \(found)")
      }
    }
  }

  @Test func `friends come first, then the best matches, and never the caller`() async throws {
    try await TestApp.run { app in
      let maria = try await app.signUp("maria", displayName: "Maria")
      let marianne = try await app.signUp("marianne", displayName: "Marianne")
      _ = try await app.signUp("mario", displayName: "Mario")
      _ = try await app.signUp("m-4", displayName: "Maria Silva")
      _ = try await app.signUp("mariax", displayName: "Maria")
      _ = try await app.signUp("unlike", displayName: "Quentin")
      let strangers = try await maria.search("maria")
      #expect(strangers == ["mariax", "m-4", "marianne", "mario"])
      try await app.befriend(maria, marianne)
      let withFriend = try await maria.search("maria")
      #expect(withFriend == ["marianne", "mariax", "m-4", "mario"])
      let others = try await marianne.search("maria")
      #expect(others.first == "maria")
    }
  }

  @Test func `a friend who hardly matches does not come before a good match`() async throws {
    try await TestApp.run { app in
      let (ana, alan) = try await app.friends("ana", "alan")
      _ = try await app.signUp("alfred", displayName: "Alfred")
      let found = try await ana.search("alfred")
      #expect(found == ["alfred"])
      // Unless there is no better match.
      let other = try await ana.search("ama")
      #expect(other.contains(alan.username))
    }
  }

  @Test func `a new name is found at once, and the old one no longer`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      try await ben.editProfile(#"{"username": "rupert", "displayName": "Rupert"}"#)
      let (new, old) = (try await ana.search("rupert"), try await ana.search("ben"))
      #expect(new == ["rupert"])
      #expect(old == [])
      try await ben.deleteAccount()
      let gone = try await ana.search("rupert")
      #expect(gone == [])
    }
  }

  @Test func `there is one page, with the best matches`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.plantUsers(300, named: "Clara")
      let best = try await app.signUp("clara")
      let (few, many) = (try await ana.search("clara", limit: 3), try await ana.search("clara", limit: 100))
      #expect(few.count == 3 && few.first == best.username)
      #expect(many.count == 100 && many.first == best.username)
      let usual = try await ana.search("clara")
      #expect(usual.count == 50)
    }
  }

  @Test func `an invalid query is refused, and every wrong parameter is named`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let long = String(repeating: "a", count: 101)
      let wrong: [(String, Set<String>)] = [
        ("", ["query"]), ("?query", ["query"]), ("?query=", ["query"]), ("?query=%20%20", ["query"]),
        ("?query=\(long)", ["query"]), ("?query=%00", ["query"]), ("?query=a%00b", ["query"]),
        ("?query=ana&limit=0", ["limit"]), ("?query=ana&limit=101", ["limit"]), ("?query=ana&limit=x", ["limit"]),
        ("?query=ana&cursor=x", ["cursor"]), ("?limit=0&cursor=x", ["query", "limit", "cursor"]),
      ]
      for (query, fields) in wrong {
        let response = try await app.sendRaw("GET", "/api/v1/users\(query)", token: ana.accessToken)
        #expect(response.status == 422, "\(query): \(response.body)")
        #expect(Set(response.badFields) == fields, "\(query)")
      }
      let friends = try await app.signUp("ben")
      for number in 0..<3 { try await app.befriend(friends, try await app.signUp("friend\(number)")) }
      // A cursor of a list with pages is not valid here.
      let cursor = try #require(try await friends.get("friends?limit=1")["nextCursor"].string)
      let foreign = try await friends.send("GET", "users?query=ana&cursor=\(cursor)")
      #expect(foreign.badFields == ["cursor"])
    }
  }

  @Test func `any text gets a response`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.signUp("ben", displayName: "😀🎉")
      for query in [
        "%25", "_", "'", "\"", "\\", "; DROP TABLE users", "😀", "\u{202e}", "\u{301}", "...", "-", "(", "a|b", "%ff",
        "%zz",
        "*", "<->", String(repeating: "é", count: 100), String(repeating: "\u{301}", count: 30), "İ", "ß", "ﷺ",
        String(repeating: "ﷺ", count: 100),
      ] {
        let escaped = query.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(["%"])) ?? ""
        let response = try await app.sendRaw("GET", "/api/v1/users?query=\(escaped)", token: ana.accessToken)
        #expect(response.status == 200, "\(query): \(response.body)")
      }
    }
  }

  @Test(arguments: ["clara", "clxra", "c", "quentin", "clara quentin", "clara clara clara", "!"])
  func `a search reads a limited number of users, however many there are`(_ query: String) async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      var buffers: [Int] = []
      for _ in 1...2 {
        try await app.plantUsers(4000, named: "Clara", from: buffers.count * 4000)
        try await app.database.execute("ANALYZE users")
        let plan = try await app.database.rows(
          "EXPLAIN (ANALYZE, BUFFERS) \(FoundUser.search(query, for: ana.userID, atMost: 20))"
        ).map { try $0[0] as String }.joined(separator: "\n")
        #expect(!plan.contains("Seq Scan on users"), "\(plan)")
        #expect(plan.matches(of: /Bitmap Index Scan on users_by_name_key/).count == 4, "\(plan)")
        // Some of the scans may be left out.
        for scan in plan.matches(of: /Bitmap Heap Scan on users .*actual time=\S+ rows=([0-9.]+) loops/) {
          #expect(Double(scan.1).map { Int($0) } ?? .max <= FoundUser.maximumCompared, "\(plan)")
        }
        for filter in plan.matches(of: /Rows Removed by Filter: (\d+)/) {
          #expect(Int(filter.1) ?? 0 <= 2 * FoundUser.maximumCompared, "\(plan)")
        }
        buffers.append(PlanLog.Cost(of: [plan]).buffers)
      }
      #expect(Double(buffers[1]) <= 1.2 * Double(buffers[0]), "\(buffers)")
    }
  }

  @Test func `someone with exactly the username is found, however many others have the name`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      try await app.plantUsers(3 * FoundUser.maximumCompared, named: "Clara")
      _ = try await app.signUp("Clara")
      #expect(try await ana.search("clara", limit: 5).first == "Clara")
    }
  }
}

extension TestApp {
  /// Inserts users who need not log in.
  func plantUsers(_ count: Int, named name: String, from first: Int = 0) async throws {
    try await database.execute(
      """
      INSERT INTO users (id, username, display_name)
      SELECT uuid_v7(), 'planted.' || number, \(name) || ' ' || md5(number::text)
      FROM generate_series(\(first + 1), \(first + count)) AS number
      """)
  }
}
