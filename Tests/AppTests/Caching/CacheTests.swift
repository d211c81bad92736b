import Postgres
import Testing

@testable import App

@Suite struct CacheTests {
  @Test func `both request shapes are accepted, and an empty one asks for all collections`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let path = "cache/validate/\(ana.id)"
      let flat = try await ana.send("POST", path, #"{"friends": "2025-04-01T10:00:00Z", "events": null}"#)
      #expect(flat.json.keys == ["friends", "events"])
      #expect(flat.json["friends"]["invalidate"].bool == true)
      let nested = try await ana.send("POST", path, #"{"timestamps": {"friends": "2025-04-01T10:00:00Z"}}"#)
      #expect(nested.json.keys == ["friends"])
      for body in ["{}", #"{"timestamps": {}}"#, nil] {
        let all = try await ana.send("POST", path, body)
        #expect(all.status == 200, "\(all.body)")
        #expect(all.json.keys == Set(App.Collection.allCases.map(\.rawValue)))
      }
      let unknown = try await ana.send("POST", path, #"{"selfies": "2025-04-01T10:00:00Z"}"#)
      #expect(unknown.json["selfies"]["invalidate"].bool == true)
      #expect(unknown.json["selfies"]["timestamp"] == .null)
    }
  }

  @Test func `a malformed stamp makes its own collection stale, and no other`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let path = "cache/validate/\(ana.id)"
      let held = try await ana.refreshLists()
      let blocks = try #require(held[.blocks])
      let response = try await ana.send(
        "POST", path + "?include=items",
        """
        {"friends": "yesterday", "events": 5, "profile": "2025-02-30T00:00:00Z", "invitations": {}, "blocks": "\(blocks)"}
        """)
      #expect(response.status == 200, "\(response.body)")
      for name in ["friends", "events", "profile", "invitations"] {
        let verdict = response.json[name]
        #expect(verdict["invalidate"].bool == true && verdict["warning"].string == "malformed-timestamp", "\(name)")
        // The copy is repaired in the same request.
        #expect(verdict["updatedItems"] != .null, "\(name)")
      }
      #expect(response.json["blocks"]["invalidate"].bool == false)
      #expect(response.json["blocks"].keys == ["invalidate", "timestamp"])
      for inner in ["null", #""2025-04-01T10:00:00Z""#, "[]", "5"] {
        let refused = try await ana.send("POST", path, #"{"timestamps": \#(inner)}"#)
        #expect(refused.status == 422 && refused.badFields == ["timestamps"], "\(inner)")
      }
    }
  }

  @Test func `moving all stamps during live changes makes every copy stale and fails no request`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let guests = try await app.crowd(20, around: ana)
      let id = try await ana.createEvent(inviting: guests)["id"].string ?? ""
      try await app.takeNotifications()
      var held: [[App.Collection: String]] = []
      for guest in guests { held.append(try await guest.refreshLists()) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for guest in guests {
          group.addTask { for answer in ["going", "maybe"] { try await guest.answer(answer, to: id) } }
        }
        group.addTask { for number in 0..<10 { try await ana.edit(id, #"{"title": "Picnic \#(number)"}"#) } }
        for _ in 0..<5 {
          group.addTask {
            let moved = try await Stamps.move(in: app.service)
            #expect(moved == 21)
          }
        }
        try await group.waitForAll()
      }
      for (guest, stamps) in zip(guests, held) {
        #expect(try await guest.stale(stamps) == Set(App.Collection.allCases))
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a phone's clock is trusted to a minute, and never in the future`() throws {
    let stamp = try #require(Timestamp(rfc3339: "2026-05-01T18:00:00.500000Z"))
    let now = stamp.adding(seconds: 3600)
    for (text, isFresh) in [
      ("2026-05-01T18:00:00Z", false), ("2026-05-01T18:01:00Z", false), ("2026-05-01T18:01:01Z", true),
      ("2026-05-01T18:01:00.501Z", true), ("2026-05-01T18:01:00.500000001Z", false),
      ("2026-05-01T20:30:00+02:00", true), ("2026-05-01T19:00:00Z", true), ("2026-05-01T19:00:01Z", false),
      ("2027-01-01T00:00:00Z", false),
    ] {
      #expect(Stamps.Validator(text).isFresh(at: stamp, now: now) == isFresh, "\(text)")
    }
  }

  /// Sets a stamp.
  private func setStamp(_ collection: App.Collection, of phone: Phone, to stamp: Timestamp) async throws {
    try await phone.app.database.execute(
      """
      UPDATE user_stamps SET \(unescaped: collection.column) = \(stamp) WHERE user_id = \(phone.userID)
      """)
  }

  /// The last one is so far from 1970 that a floating-point number of seconds cannot distinguish its neighbors.
  @Test(arguments: [
    "2026-05-01T18:00:00.000000Z", "2026-05-01T17:59:59.999999Z", "2026-12-31T23:59:59.123456Z",
    "1999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999998Z",
  ])
  func `stamps a microsecond apart stay distinct from the database to the phone and back`(text: String) async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let stamp = try #require(Timestamp(rfc3339: text))
      for collection in Phone.everyCollection {
        try await setStamp(collection, of: ana, to: stamp)
        let copy = try await ana.copy(of: collection)
        #expect(copy.stamp == text)
        #expect(try await ana.stale([collection: text]) == [])
        let path = Phone.wholePath(of: collection)
        #expect(try await ana.send("GET", path, headers: [copy.ifNoneMatch]).status == 304)
        for offset in [-1, 1] as [Int64] {
          let neighbour = Timestamp(microseconds: stamp.microseconds + offset).rfc3339(microseconds: true)
          #expect(try await ana.stale([collection: neighbour]) == [collection], "\(neighbour)")
          let tag = HeldCopy(stamp: neighbour, items: "").ifNoneMatch
          #expect(try await ana.send("GET", path, headers: [tag]).status == 200, "\(neighbour)")
        }
      }
    }
  }

  @Test func `a phone's clock may have any offset and any fraction, but six digits mean an echo`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      func isFresh(_ claim: String) async throws -> Bool { try await ana.stale([.friends: claim]) == [] }
      try await setStamp(.friends, of: ana, to: try #require(Timestamp(rfc3339: "2024-05-01T18:00:00Z")))
      for length in 1...12 {
        // A little more than a minute later; digits below the microsecond are cut off.
        let claim = "2024-05-01T18:01:00.\(String(repeating: "0", count: length - 1))1Z"
        #expect(try await isFresh(claim) == (length < 6), "\(claim)")
        let zeros = "2024-05-01T18:00:00.\(String(repeating: "0", count: length))Z"
        #expect(try await isFresh(zeros) == (length == 6), "\(zeros)")
        let later = "2024-05-01T18:01:01.\(String(repeating: "9", count: length))Z"
        #expect(try await isFresh(later) == (length != 6), "\(later)")
      }
      for (claim, fresh) in [
        ("2024-05-01T18:01:00Z", false), ("2024-05-01T18:01:01Z", true), ("2024-05-01t18:01:01z", true),
        ("2024-05-01 18:01:01Z", true), ("2024-05-01T20:01:01+02:00", true), ("2024-05-01T20:01:00+02:00", false),
        ("2024-05-01T12:31:01-05:30", true), ("2024-05-02T07:46:01.5+13:45", true),
        ("2024-05-02T07:45:00.999999999+13:45", false), ("2024-05-01T20:00:00.000000+02:00", true),
        ("2024-05-01T18:00:00.000000-00:00", true), ("2024-05-01T18:00:00.000000+02:00", false),
        ("1970-01-01T00:00:00Z", false), ("9999-12-31T23:59:59Z", false), ("9999-12-31T23:59:59.999999Z", false),
      ] {
        #expect(try await isFresh(claim) == fresh, "\(claim)")
      }
      // A leap second becomes the second after it.
      try await setStamp(.friends, of: ana, to: try #require(Timestamp(rfc3339: "2016-12-31T23:58:59.500000Z")))
      for (claim, fresh) in [
        ("2016-12-31T23:59:59Z", false), ("2016-12-31T23:59:60Z", true), ("2017-01-01T00:59:60+01:00", true),
      ] {
        #expect(try await isFresh(claim) == fresh, "\(claim)")
      }
      try await setStamp(.friends, of: ana, to: try #require(Timestamp(rfc3339: "2017-01-01T00:00:00.250000Z")))
      #expect(try await isFresh("2016-12-31T23:59:60.250000Z"))
    }
  }

  @Test func `a list whose stamp is echoed gets 304 without being read`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for path in Phone.collections.values {
        let first = try await ana.send("GET", path)
        let tag = try #require(first.header("ETag"), "\(path)")
        for header in [tag, "W/\(tag)", "\"x\", \(tag)", "\"x\",W/\(tag)", "\"a,b\" , \(tag), \"y\"", "*"] {
          let again = try await ana.send("GET", path, headers: [("If-None-Match", header)])
          #expect(again.status == 304, "\(path) \(header)")
          #expect(again.body.isEmpty)
          #expect(again.header("ETag") == tag)
        }
        #expect(try await ana.send("GET", path, headers: [("If-None-Match", "\"x\"")]).status == 200)
        #expect(try await ben.send("GET", path, headers: [("If-None-Match", tag)]).status == 200)
      }
    }
  }

  @Test func `concurrent changes get different stamps, and the latest one remains`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let stamps = try await withThrowingTaskGroup(of: Timestamp?.self) { group in
        for _ in 0..<200 {
          group.addTask {
            try await app.service.change { $0.touch(.friends, .events, of: ana.userID) }
            return try await Stamps.read(.friends, of: ana.userID, in: app.service)
          }
        }
        return try await group.reduce(into: [Timestamp]()) { if let stamp = $1 { $0.append(stamp) } }
      }
      #expect(stamps.count == 200)
      #expect(try await Stamps.read(.friends, of: ana.userID, in: app.service) == stamps.max())
    }
  }

  @Test func `a stamp rises even when the clock does not`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let future = Timestamp.now().adding(seconds: 86_400)
      try await app.database.execute(
        "UPDATE user_stamps SET friends = \(future) WHERE user_id = \(ana.userID)")
      var last = future
      for _ in 1...3 {
        try await app.service.change { $0.touch(.friends, of: ana.userID) }
        let read = try await Stamps.read(.friends, of: ana.userID, in: app.service)
        let stamp = try #require(read)
        // The stamp rises by a random amount, so that a change after a restored backup does not get the stamp of a lost
        // one.
        #expect(last < stamp && stamp < last.adding(seconds: 1))
        last = stamp
      }
    }
  }

  /// A transaction that begins first and commits last must not get a stamp that a phone has already seen.
  @Test func `a change that commits late makes an earlier copy stale`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let gate = AsyncStream.makeStream(of: Void.self)
      let begun = AsyncStream.makeStream(of: Void.self)
      async let late: Void = app.service.change { change in
        try await change.rows("UPDATE users SET bio = 'late' WHERE id = \(ana.userID)")
        change.touch(.profile, of: ana.userID)
        begun.continuation.finish()
        for await _ in gate.stream {}
      }
      for await _ in begun.stream {}
      try await app.service.change { $0.touch(.profile, of: ana.userID) }
      let seen = try await ana.get("users/me")
      #expect(seen["bio"] == .null)
      let stamp = try #require(seen["timestamp"].string)
      #expect(try await ana.stale([.profile: stamp]) == [])
      gate.continuation.finish()
      try await late
      #expect(try await ana.stale([.profile: stamp]) == [.profile])
    }
  }
}
