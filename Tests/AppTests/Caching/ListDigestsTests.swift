import Postgres
import Testing

@testable import App

/// Lists with `include=digests`, and validations with `include=items,digests`.
@Suite struct ListDigestsTests {
  @Test func `each list of a collection has the digests that a validation has`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      let ana = people.ana
      try await ana.block(people.hugo)
      let validated = try await ana.validate(query: "?include=items,digests").json
      for collection in Phone.everyCollection {
        let (items, digests) = (
          validated[collection.rawValue]["updatedItems"], validated[collection.rawValue]["digests"]
        )
        #expect(digests.array.count == items.array.count && !digests.array.isEmpty, "\(collection)")
        guard Phone.lists.contains(collection) else { continue }
        let list = try await ana.get(Phone.wholePath(of: collection) + "&include=digests")
        #expect(list["items"] == items && list["digests"] == digests, "\(collection)")
        #expect(list["timestamp"] == validated[collection.rawValue]["timestamp"], "\(collection)")
      }
      // Without the word, there are none.
      #expect(try await ana.get("friends")["digests"] == .null)
      #expect(!(try await ana.validate(query: "?include=items")).body.contains("digests"))
      try await app.takeNotifications()
    }
  }

  @Test func `a list with digests has no ETag, and is never called unchanged`() async throws {
    try await TestApp.run { app in
      let (ana, _) = try await app.friends("ana", "ben")
      for collection in Phone.lists {
        let path = Phone.wholePath(of: collection)
        let tag = try #require(try await ana.send("GET", path).header("ETag"))
        for headers in [[], [("If-None-Match", tag)], [("If-None-Match", "*")]] {
          let response = try await ana.send("GET", path + "&include=digests", headers: headers)
          #expect(response.status == 200 && response.header("ETag") == nil, "\(collection)")
          #expect(response.json["digests"].array.count == response.json["items"].array.count)
          #expect(response.json["timestamp"].string != nil, "\(collection)")
        }
        #expect(try await ana.send("GET", path, headers: [("If-None-Match", tag)]).status == 304, "\(collection)")
      }
    }
  }

  @Test func `pages have their own digests`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.crowd(5, around: ana)
      let all = try await ana.get("friends?include=digests")["digests"].array
      var (found, cursor): ([JSON], String?) = ([], "")
      while let next = cursor {
        let page = try await ana.get("friends?include=digests&limit=2" + (next.isEmpty ? "" : "&cursor=\(next)"))
        #expect(page["digests"].array.count == page["items"].array.count)
        found += page["digests"].array
        cursor = page["nextCursor"].string
      }
      #expect(found == all && found.count == 5)
    }
  }

  @Test(arguments: [
    "events?when=past&include=digests", "events?ids=01900000-0000-7000-8000-000000000001&include=digests",
    "events?include=participants,digests", "invitations?include=digests,participants",
    "invitations?status=going&include=digests", "notifications?unread=true&include=digests",
    "friends?include=participants", "friends?include=", "blocks?include=digests,digests",
    "friend-requests?include=items&direction=sent",
  ])
  func `digests are refused where phones keep no list`(path: String) async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let refused = try await ana.send("GET", path)
      #expect(refused.status == 422 && refused.badFields == ["include"], "\(refused.body)")
    }
  }

  @Test func `objects and other lists have no digests`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for path in ["users/me", "notification-preferences", "devices", "auth/sessions", "users/recommended"] {
        let refused = try await ana.send("GET", path + "?include=digests")
        #expect(refused.status == 422 && refused.badFields == ["include"], "\(path)")
      }
    }
  }
}
