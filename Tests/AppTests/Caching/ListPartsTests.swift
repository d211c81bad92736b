import Postgres
import TestSupport
import Testing

@testable import App

/// Validations with `include=changes` of long lists, whose claims have the digests in the order of the copy. See also
/// the suites in `Promises`, which keep a ``PartsCopy`` of every collection through all verbs.
@Suite struct ListPartsTests {
  private func path(_ phone: Phone) -> String { "cache/validate/\(phone.id)?include=changes" }

  private func verdict(on collection: App.Collection, _ claim: String, for phone: Phone) async throws -> JSON {
    let response = try await phone.send("POST", path(phone), #"{"\#(collection.rawValue)": \#(claim)}"#)
    #expect(response.status == 200, "\(response.body)")
    return response.json[collection.rawValue]
  }

  /// Expects that a copy is the whole list.
  private func expectWhole(_ copy: PartsCopy?, of collection: App.Collection, for phone: Phone) async throws {
    let listed = try await phone.pages(of: Phone.collections[collection] ?? "", limit: 100)
    let held = try #require(copy?.held)
    #expect(try JSON(parsing: held.items.utf8).array == listed)
    #expect(try await phone.stale([collection: held.stamp]) == [])
  }

  /// The parts of a verdict: the number of items of a run, or the id of a new friend.
  private func outline(_ verdict: JSON) -> [String] {
    verdict["parts"].array.map {
      $0["item"]["user"]["id"].string ?? "\($0["first"].int ?? -1)+\($0["count"].int ?? -1)"
    }
  }

  @Test func `a change in a list of 2,000 items sends one item, wherever it is`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let friends = try await app.crowd(2000, around: ana)
      var copies: [App.Collection: PartsCopy] = [:]
      #expect(try await ana.catchUp(&copies, of: [.friends], limit: 2000) <= 4)
      try await expectWhole(copies[.friends], of: .friends, for: ana)
      let ids = try await ana.pages(of: "friends", limit: 100).compactMap { $0["user"]["id"].string }
      let last = ids.count - 1
      for (place, expected) in [
        (0, [ids[0], "1+1999"]), (777, ["0+777", ids[777], "778+1222"]), (last, ["0+1999", ids[last]]),
      ] {
        let friend = try #require(friends.first { $0.id == ids[place] })
        try await friend.editProfile(#"{"displayName": "Another"}"#)
        let claim = try #require(copies[.friends]).claim(limit: 2000)
        #expect(outline(try await verdict(on: .friends, claim, for: ana)) == expected)
        #expect(try await ana.catchUp(&copies, of: [.friends], limit: 2000) == 1)
      }
      // A friend who is gone takes no part.
      try await ana.unfriend(try #require(friends.first { $0.id == ids[1000] }))
      let claim = try #require(copies[.friends]).claim(limit: 2000)
      #expect(outline(try await verdict(on: .friends, claim, for: ana)) == ["0+1000", "1001+999"])
      // A list that is longer than the limit continues at a cursor.
      _ = try await app.crowd(600, around: ana, named: "more")
      try await Stamps.move([.friends], in: app.service)
      try await ana.catchUp(&copies, of: [.friends], limit: 2000)
      try await expectWhole(copies[.friends], of: .friends, for: ana)
      try await friends[5].editProfile(#"{"displayName": "A third"}"#)
      #expect(try await ana.catchUp(&copies, of: [.friends], limit: 2000) == 2)
      try await expectWhole(copies[.friends], of: .friends, for: ana)
    }
  }

  @Test func `what exceeds 256 KiB comes with the next cursor, for all collections at once`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let ben = try await app.crowd(1, around: ana)[0]
      _ = try await app.plan(150, by: ana, inviting: ben, note: String(repeating: "x", count: 1900))
      var open: [App.Collection] = [.events, .profile, .invitations]
      var copies: [App.Collection: PartsCopy] = [:]
      var requests = 0
      while !open.isEmpty, requests < 20 {
        let verdicts = try await ben.changes(since: Phone.claims(copies, of: open, limit: 2000))
        let bytes = verdicts.values.compactMap { $0["parts"]?.utf8.count }.reduce(0, +)
        #expect(bytes <= Delta.maximumChanged + 100)
        if requests == 0 { #expect(bytes > Delta.maximumChanged - 6000) }
        for collection in open {
          let count = copies[collection]?.items.count ?? 0
          try copies[collection, default: PartsCopy()].apply(try #require(verdicts[collection.rawValue]))
          #expect(copies[collection]?.items.count ?? 0 > count, "\(collection)")
        }
        open.removeAll { copies[$0]?.held != nil }
        requests += 1
      }
      #expect((3..<6).contains(requests), "\(requests)")
      for collection in [App.Collection.events, .invitations] {
        try await expectWhole(copies[collection], of: collection, for: ben)
      }
    }
  }

  @Test func `of very long items, a verdict compares 1 MiB, and 2 MiB for all collections`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let ben = try await app.crowd(1, around: ana)[0]
      let events = try await app.plan(200, by: ana, inviting: ben, note: String(repeating: "😀", count: 2000))
      var copies: [App.Collection: PartsCopy] = [:]
      try await ben.catchUp(&copies, of: [.events, .invitations], limit: 2000)
      try await ana.edit(events[150], #"{"title": "Another"}"#)
      // Some 8,500 bytes each.
      let verdicts = try await ben.changes(since: Phone.claims(copies, of: [.events, .invitations], limit: 2000))
      for collection in [App.Collection.events, .invitations] {
        var copy = try #require(copies[collection])
        try copy.apply(try #require(verdicts[collection.rawValue]))
        #expect((110...130).contains(copy.items.count) && copy.held == nil)
      }
      #expect(try await ben.catchUp(&copies, of: [.events, .invitations], limit: 2000) == 2)
      for collection in [App.Collection.events, .invitations] {
        try await expectWhole(copies[collection], of: collection, for: ben)
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a list that has changed since a cursor was made has no stamp, and starts over`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let ana = try await app.signUp("ana")
      let friends = try await app.crowd(10, around: ana)
      var copy = PartsCopy()
      func ask() async throws {
        try copy.apply(try #require(try await ana.changes(since: #"{"friends": \#(copy.claim(limit: 4))}"#)["friends"]))
      }
      try await ask()
      #expect(copy.items.count == 4 && copy.cursor != nil)
      try await friends[0].editProfile(#"{"displayName": "Another"}"#)
      // The stamps are enough to know it.
      #expect(try await log.statements { try await ask() }.count == 1)
      // What has come so far need not come again.
      #expect(copy.items.count == 4 && copy.cursor == nil && copy.stamp == nil)
      while copy.held == nil { try await ask() }
      try await expectWhole(copy, of: .friends, for: ana)
    }
  }

  @Test func `digests that the server does not know are no errors, and places count only once`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      var copies: [App.Collection: PartsCopy] = [:]
      try await ana.catchUp(&copies)
      let digest = try #require(copies[.friends]?.items.first?.digest)
      for held in ["", "AAAAAAAAAAA", "-----------", "AAAAAAAAAAB", String(repeating: "_", count: 22_000)] {
        #expect(outline(try await verdict(on: .friends, #"{"held": "\#(held)"}"#, for: ana)) == [ben.id])
      }
      let twice = try await verdict(on: .friends, #"{"held": "\#(digest)AAAAAAAAAAA\#(digest)"}"#, for: ana)
      #expect(outline(twice) == ["2+1"])
      for claim in [#"{"limit": 1}"#, #"{"limit": 5.0, "held": null}"#, #"{"held": "", "cursor": null, "items": {}}"#] {
        let verdict = try await verdict(on: .friends, claim, for: ana)
        #expect(outline(verdict) == [ben.id] && verdict["keys"] == .null, "\(claim)")
      }
      // A fresh collection has only its stamp.
      let stamp = copies[.friends]?.stamp ?? ""
      let fresh = try await verdict(on: .friends, #"{"timestamp": "\#(stamp)", "held": "AAAAAAAAAAA"}"#, for: ana)
      #expect(fresh.keys == ["invalidate", "timestamp"] && fresh["invalidate"].bool == false)
      let malformed = try await verdict(on: .friends, #"{"timestamp": 5, "held": "\#(digest)"}"#, for: ana)
      #expect(malformed["warning"].string == "malformed-timestamp" && outline(malformed) == ["0+1"])
      let unknown = try await ana.send("POST", path(ana), #"{"selfies": {"timestamp": null, "held": 5}}"#)
      #expect(unknown.status == 200 && unknown.json["selfies"].keys == ["invalidate", "timestamp"])
    }
  }

  @Test func `a claim that is not understood is refused, by the names of its fields`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.crowd(3, around: ana)
      let long = String(repeating: "A", count: 22_000)
      for held in [
        "5", "[]", #"["AAAAAAAAAAA"]"#, "{}", "true", #""A""#, #""AAAAAAAAAAA ""#, #""AAAAAAAAAA=""#, #""AAAAAAAAAA+""#,
        #""AAAAAAAAAAe\u0301""#, #""\#(long)AAAAAAAAAAA""#, #""AAAAAAAAAA\n""#,
      ] {
        let refused = try await ana.send("POST", path(ana), #"{"friends": {"held": \#(held)}}"#)
        #expect(refused.status == 422 && refused.badFields == ["friends.held"], "\(held): \(refused.body)")
      }
      for limit in ["0", "-1", "2001", "1.5", "1e99", #""5""#, "[]", "99999999999999999999"] {
        let refused = try await ana.send("POST", path(ana), #"{"friends": {"held": "", "limit": \#(limit)}}"#)
        #expect(refused.status == 422 && refused.badFields == ["friends.limit"], "\(limit): \(refused.body)")
      }
      let cursor = try #require(try await verdict(on: .friends, #"{"limit": 1}"#, for: ana)["nextCursor"].string)
      let events = try await app.plan(2, by: ana)
      #expect(events.count == 2)
      let other = try #require(try await verdict(on: .events, #"{"limit": 1}"#, for: ana)["nextCursor"].string)
      for wrong in ["5", "{}", #""""#, #""x""#, #""\#(other)""#, #""\#(cursor)A""#, #""\#(cursor.dropLast())""#] {
        let refused = try await ana.send("POST", path(ana), #"{"friends": {"held": "", "cursor": \#(wrong)}}"#)
        #expect(refused.status == 422 && refused.badFields == ["friends.cursor"], "\(wrong): \(refused.body)")
      }
      let object = try await ana.send("POST", path(ana), #"{"profile": {"held": "", "cursor": "\#(cursor)"}}"#)
      #expect(object.status == 422 && object.badFields == ["profile.cursor"])
      let several = #"{"friends": {"held": 5, "limit": 0, "cursor": 5}, "events": {"held": "x"}, "blocks": null}"#
      for body in [several, #"{"timestamps": \#(several)}"#] {
        let refused = try await ana.send("POST", path(ana), body)
        #expect(
          Set(refused.badFields) == ["friends.held", "friends.limit", "friends.cursor", "events.held"]
            && refused.badFields.count == 4)
      }
      // The cursors of a claim and of the list's GET are the same.
      let page = try await ana.get("friends?limit=100&cursor=\(cursor)")
      #expect(page["items"].array.count == 2)
      // Without `include=changes`, an object is not a stamp.
      let plain = try await ana.send("POST", "cache/validate/\(ana.id)", #"{"friends": {"held": 5}}"#)
      #expect(plain.json["friends"]["warning"].string == "malformed-timestamp")
    }
  }

  @Test func `digests and cursors of others reveal nothing`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      let (ana, hugo) = (people.ana, people.hugo)
      var copies: [App.Collection: PartsCopy] = [:]
      try await ana.catchUp(&copies)
      let held = copies.values.flatMap(\.items).map(\.digest).joined()
      let cursor = try #require(try await verdict(on: .events, #"{"limit": 1}"#, for: ana)["nextCursor"].string)
      for collection in Phone.everyCollection {
        let honest = try await verdict(on: collection, #"{"held": ""}"#, for: hugo)
        #expect(try await verdict(on: collection, #"{"held": "\#(held)"}"#, for: hugo) == honest, "\(collection)")
      }
      let other = try await verdict(on: .events, #"{"held": "", "cursor": "\#(cursor)"}"#, for: hugo)
      #expect(other.keys == ["invalidate", "timestamp"] && other["timestamp"] == .null)
      try await app.takeNotifications()
    }
  }

  @Test func `each 500 items of a stale collection count as a read`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "on"]) { app in
      let ana = try await app.signUp("ana")
      let claims = #"{"friends": {"limit": 2000}, "events": {"limit": 501}, "blocks": {"limit": 500}, "profile": null}"#
      let response = try await ana.send("POST", path(ana), claims)
      // Four, two, one and one.
      #expect(response.header("RateLimit") == #""reads";r=92;t=1"#)
      // Twenty come in a second. The wait is the one for all that lack.
      let names = [
        "friends", "friendRequests", "sentFriendRequests", "events", "invitations", "blocks", "notifications",
      ]
      let all = "{" + names.map { "\"\($0)\": {\"limit\": 2000}" }.joined(separator: ",") + "}"
      var wait: String?
      for _ in 0..<200 where wait != "2" { wait = try await ana.send("POST", path(ana), all).header("Retry-After") }
      #expect(wait == "2")
    }
  }
}
