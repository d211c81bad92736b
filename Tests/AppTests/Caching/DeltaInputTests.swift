import Postgres
import TestSupport
import Testing

@testable import App

/// Validations with `include=changes` whose bodies no phone should send.
@Suite struct DeltaInputTests {
  private func path(_ phone: Phone) -> String { "cache/validate/\(phone.id)?include=changes" }

  @Test func `a value that is not a digest is unknown, and never an error`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      var copies: [App.Collection: DeltaCopy] = [:]
      try await ana.catchUp(&copies, of: [.friends])
      let digest = try #require(copies[.friends]?.digests.first)
      func changed(_ items: String) async throws -> Bool? {
        let response = try await ana.send("POST", path(ana), #"{"friends": {"timestamp": null, "items": \#(items)}}"#)
        #expect(response.status == 200 && response.json["friends"]["warning"] == .null, "\(response.body)")
        #expect(response.json["friends"]["keys"] == .array([.string(ben.id)]))
        return response.json["friends"]["changed"].keys == [ben.id]
      }
      for items in [
        "null", "[]", "5", "\"\(ben.id)\"", "{}", #"{"\#(ben.id)": null}"#, #"{"\#(ben.id)": 5}"#,
        #"{"\#(ben.id)": ["\#(digest)"]}"#, #"{"\#(ben.id)": {"digest": "\#(digest)"}}"#, #"{"\#(ben.id)": ""}"#,
        #"{"\#(ben.id)": "\#(digest)="}"#, #"{"\#(ben.id)": "\#(digest) "}"#,
        #"{"\#(ben.id)": "\#(digest.dropLast())"}"#,
        #"{"\#(ben.id)": "\#(digest.lowercased())\#(digest.uppercased())"}"#, #"{"\#(ben.id)": "e\u0301\u0316"}"#,
        #"{"{\#(ben.id)}": "\#(digest)"}"#, #"{"me": "\#(digest)"}"#, #"{"": "\#(digest)"}"#,
        #"{"\#(ana.id)": "\#(digest)", "e\u0301": "\#(digest)"}"#,
      ] {
        #expect(try await changed(items) == true, "\(items)")
      }
      for items in [
        #"{"\#(ben.id)": "\#(digest)"}"#, #"{"\#(ben.id.uppercased())": "\#(digest)"}"#,
        #"{"\#(ben.id)": "\#(digest)", "x": 1, "\#(ben.id.uppercased())": "x"}"#,
      ] {
        #expect(try await changed(items) == false, "\(items)")
      }
    }
  }

  @Test func `a malformed copy is stale, with a warning, and is repaired in the same request`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for value in ["5", "true", "[]", #""yesterday""#, #"{"timestamp": 5}"#, #"{"timestamp": {}, "items": {}}"#] {
        let response = try await ana.send("POST", path(ana), #"{"friends": \#(value), "blocks": null}"#)
        let verdict = response.json["friends"]
        #expect(verdict["invalidate"].bool == true && verdict["warning"].string == "malformed-timestamp", "\(value)")
        #expect(verdict["changed"].keys == [ben.id], "\(value)")
        #expect(response.json["blocks"]["warning"] == .null)
      }
      for inner in ["null", "[]", "5"] {
        let refused = try await ana.send("POST", path(ana), #"{"timestamps": \#(inner)}"#)
        #expect(refused.status == 422 && refused.badFields == ["timestamps"], "\(inner)")
      }
      let inner = try await ana.send("POST", path(ana), #"{"timestamps": {"friends": {"timestamp": null}}}"#)
      #expect(inner.json["friends"]["changed"].keys == [ben.id])
      let unknown = try await ana.send("POST", path(ana), #"{"selfies": {"timestamp": null, "items": {"a": "b"}}}"#)
      #expect(unknown.json["selfies"].keys == ["invalidate", "timestamp"])
      // Without `include=changes`, an object is not a stamp.
      let plain = try await ana.send("POST", "cache/validate/\(ana.id)", #"{"friends": {"timestamp": null}}"#)
      #expect(plain.json["friends"]["warning"].string == "malformed-timestamp")
    }
  }

  @Test func `digests and ids of others reveal nothing`() async throws {
    try await TestApp.run { app in
      let people = try await Neighbours.gather(in: app)
      let (ana, hugo) = (people.ana, people.hugo)
      var copies: [App.Collection: DeltaCopy] = [:]
      try await ana.catchUp(&copies)
      // Hugo shares nothing with Ana. What he gets does not depend on what he claims to have.
      let honest = try await hugo.send("POST", path(hugo))
      for stamp in ["null", "\"2025-04-01T10:00:00Z\""] {
        let claims = copies.map { collection, copy in
          var items = copy.items.mapValues(\.digest)
          for id in [ana.id, people.anasEvent, people.bensEvent, User.ID.new().description] {
            items[id] = "AAAAAAAAAAA"
          }
          items["me"] = nil
          let digests = items.map { "\"\($0)\": \"\($1)\"" }.joined(separator: ",")
          return "\"\(collection.rawValue)\": {\"timestamp\": \(stamp), \"items\": {\(digests)}}"
        }
        let response = try await hugo.send("POST", path(hugo), "{\(claims.joined(separator: ","))}")
        #expect(response.json == honest.json)
      }
      let foreign = try await hugo.send("POST", path(ana), Phone.claims(copies))
      #expect(foreign.status == 403 && foreign.problem == "not-yours")
      // A blocked user leaves the keys, even if a client still sends their digest.
      try await people.ben.block(ana)
      let verdict = try #require(try await ana.changes(since: Phone.claims(copies))["friends"])
      #expect(verdict["keys"] == "[]" && verdict["changed"] == "{}")
      try await app.takeNotifications()
    }
  }

  @Test func `a body of 256 KiB is accepted, and one byte more is not`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let body = #"{"friends": {"timestamp": null, "items": {"x": "y"}}}"#
      func padded(_ length: Int) -> String { body + String(repeating: " ", count: length - body.utf8.count) }
      #expect(try await ana.send("POST", path(ana), padded(262_144)).status == 200)
      func expectRefused(_ length: Int, _ path: String) async throws {
        let response = try await app.sendRaw(
          "POST", "/api/v1/\(path)", body: Array(padded(length).utf8), token: ana.accessToken)
        #expect(response.status == 413 && response.problem == "body-too-large", "\(length) \(path): \(response.body)")
      }
      for length in [262_145, 400_000] { try await expectRefused(length, path(ana)) }
      for query in ["", "?include=items", "?include=items,digests"] {
        try await expectRefused(65_537, "cache/validate/\(ana.id)\(query)")
      }
      // The same without a length.
      for (chunks, status) in [(63, 200), (65, 413)] {
        let connection = try await RawConnection(to: app)
        try await connection.send(
          """
          POST /api/v1/\(path(ana)) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(ana.accessToken)\r
          Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r
          2\r\n{}\r\n
          """)
        async let sent = connection.send("1000\r\n" + String(repeating: " ", count: 4096) + "\r\n", times: chunks)
        if status == 200 {
          _ = try await sent
          try await connection.send("0\r\n\r\n")
        }
        #expect(try await connection.response().status == status)
        _ = try? await sent
      }
    }
  }

  @Test func `many keys, many collections and repeated keys`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let keys = (0..<10_000).map { "\"\($0)\": \"x\"" }.joined(separator: ",")
      let response = try await ana.send("POST", path(ana), #"{"friends": {"timestamp": null, "items": {\#(keys)}}}"#)
      #expect(response.json["friends"]["keys"].array.isEmpty && response.status == 200)
      let names = (0..<10_000).map { "\"\($0)\": {}" }.joined(separator: ",")
      let unknown = try await ana.send("POST", path(ana), "{\(names)}")
      #expect(unknown.status == 200 && unknown.json.keys.count == 10_000)
      for body in [
        #"{"friends": {"items": {"a": "x", "a": "x"}}}"#, #"{"friends": {}, "friends": {}}"#,
        #"{"friends": {"items": {"a": "x", "\u0061": "x"}}}"#, #"{"friends": {"items": {"\u0000": "x"}}}"#,
        #"{"friends": {"items": "# + String(repeating: "[", count: 200_000),
      ] {
        let refused = try await ana.send("POST", path(ana), body)
        #expect(refused.status == 400 && refused.problem == "malformed-body", "\(body.prefix(100))")
      }
    }
  }

  @Test func `include takes the words that go together, each once`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for words in [
        "digests", "changes,digests", "items,changes", "changes,items,digests", "items,items", "items,", ",items",
        "changes,changes", "Changes", "changes%20", "", "Items", "items,stamps", "all", "%00", "items,digests,digests",
        "items,digests,",
      ] {
        let refused = try await ana.send("POST", "cache/validate/\(ana.id)?include=\(words)")
        #expect(refused.status == 422 && refused.badFields == ["include"], "\(words): \(refused.body)")
      }
      for words in ["items", "items,digests", "digests,items", "items%2Cdigests", "changes"] {
        let response = try await ana.send("POST", "cache/validate/\(ana.id)?include=\(words)")
        #expect(response.status == 200, "\(words): \(response.body)")
      }
    }
  }

  @Test func `a user has few large bodies in memory at once, and others are not affected`() async throws {
    let (bodies, ana, ben) = (try #require(LargeBodies(.validateCache)), User.ID.new(), User.ID.new())
    func held(_ depth: Int, of user: User.ID) async throws -> Int {
      try await bodies.hold(for: user) { depth == 1 ? 1 : try await held(depth - 1, of: user) + 1 }
    }
    for _ in 0..<3 {
      #expect(try await held(4, of: ana) == 4)
      await #expect(throws: AppError.tooManyLargeBodies) { try await held(5, of: ana) }
    }
    let count = try await bodies.hold(for: ana) { try await held(4, of: ben) }
    #expect(count == 4)
  }
}
