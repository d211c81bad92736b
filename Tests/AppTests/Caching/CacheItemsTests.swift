import Postgres
import Testing

@testable import App

@Suite struct CacheItemsTests {
  @Test func `stale collections come with items, byte for byte as their GET sends them`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      try await people.ana.block(people.hugo)
      try await people.ana.editProfile(##"{"bio": "\"[{\\ \u00e9 }]\" \n"}"##)
      for phone in [people.ana] + people.others {
        let response = try await phone.validate(query: "?include=items")
        for collection in Phone.everyCollection {
          let verdict = try HeldVerdict(collection, in: response)
          let copy = try await phone.copy(of: collection)
          #expect(!verdict.isFresh)
          #expect(verdict.items == copy.items, "\(collection) of \(phone.username)")
          #expect(verdict.stamp == copy.stamp)
        }
      }
      // Every list was compared with at least one item in it.
      for collection in Phone.lists {
        var copies: [HeldCopy] = []
        for phone in [people.ana] + people.others { copies.append(try await phone.copy(of: collection)) }
        #expect(copies.contains { $0.items != "[]" }, "\(collection)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `fresh collections come without items, and so do all unless items are requested`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let stamps = try await ana.refreshLists()
      let fresh = try await ana.validate(echoing: stamps, query: "?include=items")
      #expect(!fresh.body.contains("updatedItems"))
      try await ben.editProfile(#"{"displayName": "Benjamin"}"#)
      let one = try await ana.validate(echoing: stamps, query: "?include=items")
      for collection in stamps.keys {
        let verdict = one.json[collection.rawValue]
        #expect(verdict["invalidate"].bool == (collection == .friends), "\(collection)")
        #expect((verdict["updatedItems"] != .null) == (collection == .friends), "\(collection)")
      }
      #expect(one.json["friends"]["updatedItems"][0]["user"]["displayName"].string == "Benjamin")
      // Its stamp is the one to echo from now on.
      let stamp: String = try #require(one.json["friends"]["timestamp"].string)
      #expect(try await ana.stale([.friends: stamp]) == [])
      for query in ["", "?"] {
        let plain = try await ana.validate(query: query)
        #expect(plain.status == 200)
        #expect(!plain.body.contains("updatedItems"))
      }
    }
  }

  @Test func `an unknown collection has no items`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let path = "cache/validate/\(ana.id)?include=items"
      let response = try await ana.send("POST", path, #"{"selfies": null, "profile": null}"#)
      #expect(response.json["selfies"].keys == ["invalidate", "timestamp"])
      #expect(response.json["profile"]["updatedItems"][0]["id"].string == ana.id)
      #expect(response.json["profile"]["updatedItems"][0]["timestamp"] == response.json["profile"]["timestamp"])
      // An empty request asks for all collections, with items too.
      let all = try await ana.send("POST", path)
      #expect(all.json.keys == Set(App.Collection.allCases.map(\.rawValue)))
      #expect(all.json["friends"]["updatedItems"].array == [])
      #expect(all.json["friends"].keys.contains("updatedItems"))
    }
  }

  /// The number of bytes that a validation includes of a list of friends; nil if it includes none.
  private func sent(to phone: Phone) async throws -> Int? {
    let response = try await phone.validate([.friends], query: "?include=items")
    let verdict = try HeldVerdict(.friends, in: response)
    #expect(!verdict.isFresh)
    return verdict.items?.utf8.count
  }

  @Test func `a collection of 64 KiB comes whole, even if its GET has several pages, and a larger one does not`()
    async throws
  {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(425, around: ana)
      let response = try await ana.validate([.friends], query: "?include=items")
      let listed = try await ana.pages(of: "friends", limit: 100)
      #expect(response.json["friends"]["updatedItems"].array == listed)
      #expect(listed.count == 425)
      let length: Int = try #require(try await sent(to: ana))
      var missing = 65_536 - length
      #expect(missing > 0)
      for guest in guests {
        let count = min(missing, 80)
        try await app.database.execute(
          "UPDATE users SET display_name = display_name || repeat('x', \(Int32(count))) WHERE id = \(guest.userID)")
        missing -= count
        if missing == 0 { break }
      }
      #expect(try await sent(to: ana) == 65_536)
      try await app.database.execute(
        "UPDATE users SET display_name = display_name || 'x' WHERE id = \(guests[424].userID)")
      #expect(try await sent(to: ana) == nil)
    }
  }

  @Test func `with thousands of friends, no more are read than could fit`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let ana = try await app.signUp("ana")
      let some = try await log.statements {
        _ = try await ana.validate([.friends, .events], query: "?include=items")
      }
      // The stamps, and each stale collection.
      #expect(some.count == 3)
      _ = try await app.crowd(2000, around: ana)
      let statements = try await log.statements {
        let count = try await sent(to: ana)
        #expect(count == nil)
      }
      #expect(statements.count == 2)
      let read = try await App.Collection.friends.items(of: ana.userID, page: .all, in: app.service)
      #expect(Snapshot(read).items == nil)
      #expect(
        try await Friend.list(of: ana.userID, page: .all, in: app.service).items.count == PageRequest.all.limit)
      // Not even the shortest items would fit.
      let shortest =
        #"{"user":{"id":"01900000-0000-7000-8000-000000000001","username":"abc","displayName":"A","#
        + #""pictureUrl":null},"since":"2026-05-01T18:00:00Z"},"#
      #expect(PageRequest.all.limit * shortest.utf8.count > Snapshot.maximumLength)
    }
  }
}
