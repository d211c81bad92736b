import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Writes that say what they are based on. An old change that arrives late never overwrites a newer one.
@Suite struct PreconditionTests {
  /// Two states of an object with a stamp.
  private struct Object: CustomTestStringConvertible {
    let method: String
    let path: String
    let one: String
    let other: String
    let isOther: @Sendable (JSON) -> Bool

    var testDescription: String { "\(method) \(path)" }

    func send(_ phone: Phone, _ body: String, ifMatch tag: String? = nil, key: String? = nil) async throws
      -> APIResponse
    {
      let headers = [("If-Match", tag), ("Idempotency-Key", key)].compactMap { name, value in value.map { (name, $0) } }
      return try await phone.send(method, path, body, headers: headers)
    }
  }

  private static let objects = [
    Object(
      method: "PATCH", path: "users/me", one: #"{"displayName": "One", "bio": "x"}"#,
      other: #"{"displayName": "Two", "bio": "x"}"#, isOther: { $0["displayName"].string == "Two" }),
    Object(
      method: "PUT", path: "notification-preferences", one: #"{"event-invited": true, "event-updated": false}"#,
      other: #"{"event-invited": false, "event-updated": false}"#, isOther: { $0["event-invited"].bool == false }),
  ]

  @Test(arguments: objects)
  private func `a change that is based on an older stamp is refused, and one without a stamp is not`(
    _ object: Object
  ) async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      #expect(try await object.send(ana, object.one).status == 200)
      let old = try await ana.send("GET", object.path)
      let tags = [try #require(old.header("ETag")), "\"\(try #require(old.json["timestamp"].string))\""]
      for tag in tags + ["\"zz\", W/\(tags[0])", "*"] {
        let current = try #require(try await ana.send("GET", object.path).header("ETag"))
        #expect(try await object.send(ana, object.one, ifMatch: current).status == 200, "\(tag)")
        // Nothing has changed, so the stamp has not moved.
        let changed = try await object.send(ana, object.other, ifMatch: tag == "*" ? tag : current)
        #expect(changed.status == 200 && object.isOther(changed.json), "\(tag): \(changed.body)")
        #expect(try await object.send(ana, object.one).status == 200)
      }
      #expect(try await object.send(ana, object.other).status == 200)
      let before = try await app.contents()
      for tag in tags + ["\"zz\"", "\"\""] {
        let refused = try await object.send(ana, object.one, ifMatch: tag)
        #expect(refused.status == 412 && refused.problem == "lost-update", "\(tag): \(refused.body)")
        // Repeated, it has happened already.
        let again = try await object.send(ana, object.other, ifMatch: tag)
        #expect(again.status == 200 && object.isOther(again.json), "\(tag): \(again.body)")
      }
      #expect(try await app.contents() == before)
    }
  }

  @Test(arguments: objects)
  private func `both forms of a stamp name it`(_ object: Object) async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (number, body) in [object.one, object.other, object.one, object.other].enumerated() {
        let current = try await ana.send("GET", object.path)
        let stamp = "\"\(try #require(current.json["timestamp"].string))\""
        let tag = number % 2 == 0 ? stamp : try #require(current.header("ETag"))
        #expect(try await object.send(ana, body, ifMatch: "W/\"1\", \(tag)").status == 200)
      }
    }
  }

  @Test(arguments: objects)
  private func `of two changes that are based on one stamp and run at once, one happens`(
    _ object: Object
  ) async throws {
    try await TestApp.run(queuesWrites: false) { app in
      let ana = try await app.signUp("ana")
      let bodies = [object.one, object.other]
      for round in 1...10 {
        // Both changes differ from what is there.
        let middle = object.method == "PATCH" ? #"{"displayName": "Middle \#(round)"}"# : #"{"event-updated": true}"#
        #expect(try await object.send(ana, middle).status == 200)
        let tag = try #require(try await ana.send("GET", object.path).header("ETag"))
        let statuses = try await app.race(2) { try await object.send(ana, bodies[$0], ifMatch: tag) }
        #expect(statuses == [200: 1, 412: 1])
      }
    }
  }

  @Test func `a request with a key is repeated, whatever stands there by now`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for object in Self.objects {
        let tag = try #require(try await ana.send("GET", object.path).header("ETag"))
        #expect(try await object.send(ana, object.other, ifMatch: tag, key: "a-key").status == 200)
        #expect(try await object.send(ana, object.one).status == 200)
        let again = try await object.send(ana, object.other, ifMatch: tag, key: "a-key")
        #expect(again.status == 200 && again.header("Idempotent-Replayed") == "true")
        #expect(!object.isOther(try await ana.get(object.path)))
      }
    }
  }

  @Test func `a new address is requested only on the profile that the user has seen`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let old = try #require(try await ana.send("GET", "users/me").header("ETag"))
      _ = try await app.takeMails()
      let body = #"{"email": "new@example.com", "currentPassword": "\#(ana.password)"}"#
      #expect(try await ana.send("PATCH", "users/me", #"{"bio": "Swims"}"#).status == 200)
      let refused = try await ana.send("PATCH", "users/me", body, headers: [("If-Match", old)])
      #expect(refused.status == 412 && refused.problem == "lost-update")
      #expect(try await ana.get("users/me")["pendingEmail"] == .null)
      #expect(try await app.takeMails().isEmpty)
    }
  }

  // MARK: Events

  @Test func `an edit that has happened is repeated, whatever its version, and others are refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let id = try await ana.createEvent()["id"].string ?? ""
      let old = [("If-Match", "\"1\"")]
      for _ in 1...3 {
        let edited = try await ana.edit(id, #"{"title": "Dinner", "capacity": 4}"#, headers: old)
        #expect(edited.header("ETag") == "\"2\"")
      }
      // A part of it.
      try await ana.edit(id, #"{"title": "Dinner"}"#, headers: old)
      for body in [
        #"{"title": "Lunch"}"#, #"{"title": "Dinner", "capacity": 5}"#, #"{"endTime": "2001-01-01T00:00:00Z"}"#,
      ] {
        let lost = try await ana.edit(id, body, headers: old, expecting: 412)
        #expect(lost.problem == "lost-update", "\(body)")
      }
      #expect(try await ana.get("events/\(id)")["version"].int == 2)
    }
  }
}
