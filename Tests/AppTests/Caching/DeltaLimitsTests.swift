import Postgres
import TestSupport
import Testing

@testable import App

/// Validations with `include=changes` of long lists and of long items.
@Suite struct DeltaLimitsTests {
  /// The rest of a list after the items of a copy, with the digests.
  private func rest(
    of collection: App.Collection, after copy: DeltaCopy, for phone: Phone
  ) async throws -> (items: [JSON], digests: [String]) {
    var (items, digests, cursor): ([JSON], [String], String?) = ([], [], copy.nextCursor)
    while let next = cursor {
      let page = try await phone.get(Phone.wholePath(of: collection) + "&include=digests&cursor=\(next)")
      // The pages belong to the copy: nothing has changed since.
      #expect(page["timestamp"].string == copy.stamp)
      items += page["items"].array
      digests += page["digests"].array.compactMap(\.string)
      cursor = page["nextCursor"].string
    }
    return (items, digests)
  }

  /// Expects that a copy and the pages after it are the whole list.
  private func expectWhole(_ copy: DeltaCopy?, of collection: App.Collection, for phone: Phone) async throws {
    let copy = try #require(copy)
    let (items, digests) = try await rest(of: collection, after: copy, for: phone)
    let listed = try await phone.pages(of: Phone.collections[collection] ?? "", limit: 100)
    #expect(try JSON(parsing: copy.array.utf8).array + items == listed)
    #expect(Set(copy.digests + digests).count == listed.count)
  }

  @Test func `a list of more than 500 items starts with its first 500, and continues page by page`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(500, around: ana)
      var copies: [App.Collection: DeltaCopy] = [:]
      try await ana.catchUp(&copies, of: [.friends])
      #expect(copies[.friends]?.keys.count == 500 && copies[.friends]?.nextCursor == nil)
      try await expectWhole(copies[.friends], of: .friends, for: ana)

      let more = try await app.crowd(121, around: ana, named: "more")
      try await Stamps.move([.friends], in: app.service)
      try await ana.catchUp(&copies, of: [.friends])
      #expect(copies[.friends]?.keys.count == 500 && copies[.friends]?.nextCursor != nil)
      try await expectWhole(copies[.friends], of: .friends, for: ana)

      // A change among the first items, one after them, and one that moves an item up into them.
      let first = try #require(copies[.friends]?.keys.first.flatMap { User.ID($0) })
      let listed = try await ana.pages(of: "friends", limit: 100).compactMap { $0["user"]["id"].string }
      for (phone, expected) in [
        (first.description, [first.description]), (listed[600], []), (listed[3], [listed[500]]),
      ] {
        let friend = try #require((guests + more).first { $0.id == phone })
        if phone == listed[3] {
          try await ana.unfriend(friend)
        } else {
          try await friend.editProfile(#"{"displayName": "Another"}"#)
        }
        let verdict = try #require(try await ana.changes(since: Phone.claims(copies, of: [.friends]))["friends"])
        #expect(try RawJSON.members(of: try #require(verdict["changed"])).keys.sorted() == expected)
        try await ana.catchUp(&copies, of: [.friends])
        try await expectWhole(copies[.friends], of: .friends, for: ana)
      }
    }
  }

  private func missingAny(_ counts: [[App.Collection: Int]]) -> Bool {
    counts.last?.values.contains { $0 > 0 } ?? false
  }

  @Test func `what exceeds 256 KiB is missing, and comes when the phone asks again`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let ben = try await app.crowd(1, around: ana)[0]
      _ = try await app.plan(150, by: ana, inviting: ben, note: String(repeating: "x", count: 1900))
      let collections: [App.Collection] = [.events, .profile, .invitations]
      var copies: [App.Collection: DeltaCopy] = [:]
      // How many items of each collection are missing after each request.
      var counts: [[App.Collection: Int]] = []
      repeat {
        let verdicts = try await ben.changes(since: Phone.claims(copies, of: collections))
        let changed = verdicts.values.compactMap { $0["changed"]?.utf8.count }.reduce(0, +)
        // Apart from the braces of three objects. At first, hardly one more item would fit.
        #expect(changed <= Delta.maximumChanged + 6)
        #expect(!counts.isEmpty || changed > Delta.maximumChanged - 3000)
        var missing: [App.Collection: Int] = [:]
        for collection in collections {
          let verdict = try #require(verdicts[collection.rawValue])
          guard verdict["invalidate"] == "true" else { continue }
          missing[collection] = try copies[collection, default: DeltaCopy()].apply(verdict).count
          // Each request brings more of each collection.
          #expect(counts.last?[collection].map { $0 > missing[collection] ?? 0 } ?? true, "\(counts)")
        }
        counts.append(missing)
      } while counts.count < 10 && missingAny(counts)
      #expect((3..<10).contains(counts.count), "\(counts)")
      for collection in collections {
        let held = try #require(copies[collection]?.stamp)
        #expect(try await ben.stale([collection: held]) == [])
      }
      for collection in [App.Collection.events, .invitations] {
        try await expectWhole(copies[collection], of: collection, for: ben)
      }
      // An item that has changed again meanwhile comes in its last form.
      var late: [App.Collection: DeltaCopy] = [:]
      let verdict = try #require(try await ana.changes(since: Phone.claims(late, of: [.events]))["events"])
      let missing = try late[.events, default: DeltaCopy()].apply(verdict)
      #expect(late[.events]?.stamp == nil && !missing.isEmpty)
      try await ana.edit(try #require(missing.last), #"{"note": "Short"}"#)
      try await ana.edit(try #require(late[.events]?.keys.first), #"{"note": "Shorter"}"#)
      #expect(try await ana.catchUp(&late, of: [.events]) == 1)
      try await expectWhole(late[.events], of: .events, for: ana)
      try await app.takeNotifications()
    }
  }

  @Test func `of very long items, fewer than 500 are compared, and the list continues after them`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let events = try await app.plan(200, by: ana, note: String(repeating: "😀", count: 2000))
      let verdict = try #require(try await ana.changes(since: #"{"events": null}"#)["events"])
      let keys = try RawJSON.texts(in: try #require(verdict["keys"]))
      // Some 8,500 bytes each.
      #expect((110...130).contains(keys.count))
      #expect(keys == Array(events.prefix(keys.count)))
      let cursor = try RawJSON.text(try #require(verdict["nextCursor"]))
      let rest = try await ana.pages(of: "events?cursor=\(cursor)", limit: 100)
      #expect(rest.first?["id"].string == events[keys.count])
    }
  }

  @Test func `each stale collection counts as a read`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let ana = try await app.signUp("ana")
      let path = "cache/validate/\(ana.id)?include=changes"
      let all = try await ana.send("POST", path)
      #expect(all.header("RateLimit") == #""reads";r=91;t=1"#)
      var refused: APIResponse?
      for _ in 0..<50 where refused == nil {
        let response = try await ana.send("POST", path)
        if response.status == 429 { refused = response }
      }
      #expect(refused?.problem == "rate-limited" && refused?.header("Retry-After") == "1")
      // Fresh collections cost no more than any read.
      let ben = try await app.signUp("ben")
      var copies: [App.Collection: DeltaCopy] = [:]
      try await ben.catchUp(&copies)
      for _ in 0..<60 { _ = try await ben.changes(since: Phone.claims(copies)) }
    }
  }
}
