import Postgres
import TestSupport
import Testing

@testable import App

/// Validations with `include=changes`, as phones use them. See also the suites in `Promises`, which keep a
/// ``DeltaCopy`` of every collection through all verbs.
@Suite struct DeltaTests {
  @Test func `without digests, everything is sent, byte for byte and in the order of the GET`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      try await people.ana.block(people.hugo)
      try await people.ana.editProfile(##"{"bio": "\"[{\\ \u00e9 }]\" \n"}"##)
      for phone in [people.ana] + people.others {
        let claims = ["null", #""2025-04-01T10:00:00Z""#, "{}", #"{"timestamp": null}"#, #"{"items": null}"#]
        for claim in phone.id == people.ana.id ? claims : ["null"] {
          let claims = Phone.everyCollection.map { "\"\($0.rawValue)\": \(claim)" }.joined(separator: ",")
          let verdicts = try await phone.changes(since: "{\(claims)}")
          for collection in Phone.everyCollection {
            let verdict = try #require(verdicts[collection.rawValue])
            #expect(verdict.keys.sorted() == ["changed", "invalidate", "keys", "nextCursor", "timestamp"])
            var copy = DeltaCopy()
            #expect(try copy.apply(verdict) == [])
            #expect(try await phone.copy(of: collection) == copy.held, "\(collection) of \(phone.username)")
            #expect(copy.nextCursor == nil)
            #expect(try await digests(of: collection, for: phone) == copy.digests)
          }
        }
      }
      try await app.takeNotifications()
    }
  }

  /// The digests of a list's GET. Single objects have none there.
  private func digests(of collection: App.Collection, for phone: Phone) async throws -> [String] {
    guard Phone.lists.contains(collection) else {
      let response = try await phone.validate([collection], query: "?include=items,digests")
      return response.json[collection.rawValue]["digests"].array.compactMap(\.string)
    }
    let list = try await phone.get(Phone.wholePath(of: collection) + "&include=digests")
    return list["digests"].array.compactMap(\.string)
  }

  @Test func `keys are the ids of users, events and items`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      try await people.ana.block(people.hugo)
      let verdicts = try await people.ana.send("POST", "cache/validate/\(people.ana.id)?include=changes").json
      for (collection, member) in [
        (App.Collection.friends, ["user", "id"]), (.blocks, ["user", "id"]), (.invitations, ["event", "id"]),
        (.events, ["id"]), (.friendRequests, ["id"]), (.sentFriendRequests, ["id"]), (.notifications, ["id"]),
      ] {
        let items = try await people.ana.get(Phone.wholePath(of: collection))["items"].array
        let ids = items.map { item in member.reduce(item) { $0[$1] }.string }
        #expect(verdicts[collection.rawValue]["keys"].array.map(\.string) == ids, "\(collection)")
        #expect(!ids.isEmpty, "\(collection)")
      }
      for name in ["profile", "notificationPreferences"] {
        #expect(verdicts[name]["keys"] == .array([.string("me")]))
        #expect(verdicts[name]["changed"]["me"]["item"]["timestamp"] == verdicts[name]["timestamp"])
      }
      try await app.takeNotifications()
    }
  }

  @Test func `only the changed items are sent, and nothing of a fresh collection`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(10, around: ana)
      let events = try await app.plan(10, by: ana)
      var copies: [App.Collection: DeltaCopy] = [:]
      try await ana.catchUp(&copies)
      try await guests[3].editProfile(#"{"displayName": "Another"}"#)
      try await ana.unfriend(guests[7])
      try await ana.edit(events[5], #"{"title": "Later", "startTime": "2040-05-01T18:00:00Z", "endTime": null}"#)
      let new = try await ana.createEvent("New")["id"].string ?? ""
      let verdicts = try await ana.changes(since: Phone.claims(copies))
      func changed(_ name: String) throws -> Set<String> {
        Set(try RawJSON.members(of: try #require(verdicts[name]?["changed"])).keys)
      }
      #expect(try changed("friends") == [guests[3].id])
      #expect(try changed("events") == [events[5], new])
      let keys = try RawJSON.texts(in: try #require(verdicts["events"]?["keys"]))
      #expect(keys.count == 11 && keys.last == events[5])
      #expect(try RawJSON.texts(in: try #require(verdicts["friends"]?["keys"])).count == 9)
      for (name, verdict) in verdicts where !["friends", "events"].contains(name) {
        #expect(verdict.keys.sorted() == ["invalidate", "timestamp"], "\(name)")
        #expect(verdict["invalidate"] == "false", "\(name)")
      }
      try await ana.catchUp(&copies)
      for collection in Phone.everyCollection {
        #expect(try await ana.copy(of: collection) == copies[collection]?.held, "\(collection)")
      }
      // A copy with the current stamp is fresh, whatever its digests are.
      let stamp = copies[.friends]?.stamp ?? ""
      let fresh = try await ana.changes(since: #"{"friends": {"timestamp": "\#(stamp)", "items": {"x": "y"}}}"#)
      #expect(fresh["friends"] == ["invalidate": "false", "timestamp": "\"\(stamp)\""])
    }
  }

  @Test func `digests survive a restart, and other keys send everything once`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(5, around: ana)
      var copies: [App.Collection: DeltaCopy] = [:]
      try await ana.catchUp(&copies)
      let new = "new:\(SigningKeys.generate().split(separator: ":")[1])"
      for (keys, expected) in [
        (TestApp.refreshTokenKeys, 1), ("\(TestApp.refreshTokenKeys),\(new)", 1),
        ("\(new),\(TestApp.refreshTokenKeys)", 5), ("\(new),\(TestApp.refreshTokenKeys)", 1),
      ] {
        try await guests[0].editProfile(#"{"displayName": "Guest \#(User.ID.new())"}"#)
        try await ServiceProcess.run(of: app, ["MUSTER_REFRESH_TOKEN_KEYS": keys]) { other in
          let phone = Place(other).phone(of: ana)
          let verdict = try #require(try await phone.changes(since: Phone.claims(copies))["friends"])
          #expect(try RawJSON.members(of: try #require(verdict["changed"])).count == expected)
          try await phone.catchUp(&copies)
          #expect(try await phone.copy(of: .friends) == copies[.friends]?.held)
        }
      }
    }
  }

  @Test func `with one of a hundred events changed, a tenth of the bytes suffices`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let events = try await app.plan(100, by: ana, note: "Ropes for four. Beginners welcome, sandals are not.")
      var copies: [App.Collection: DeltaCopy] = [:]
      try await ana.catchUp(&copies)
      try await ana.edit(events[50], #"{"title": "Another title"}"#)
      let full = try await ana.send("GET", Phone.wholePath(of: .events)).body.utf8.count
      let claims = Phone.claims(copies, of: [.events])
      let response = try await ana.send("POST", "cache/validate/\(ana.id)?include=changes", claims).body.utf8.count
      #expect(10 * response <= full, "\(response) of \(full) bytes")
      #expect(6 * (claims.utf8.count + response) <= full, "\(claims.utf8.count) and \(response) of \(full) bytes")
      try await ana.catchUp(&copies, of: [.events])
      #expect(try await ana.copy(of: .events) == copies[.events]?.held)
    }
  }
}
