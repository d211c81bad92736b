import Foundation
import HTTPServer
import Postgres
import Testing
import TestSupport

@testable import App

/// Every route with all kinds of bad input. The calls follow from ``Act/table``.
@Suite struct BadInputTests {
  @Test func `every route is in the table, and its valid requests succeed`() async throws {
    try await Scene.play { scene in
      #expect(
        scene.app.routes.symmetricDifference(scene.calls.map { "\($0.method) \($0.template)" })
          == Set(Scene.forms.map { "POST \($0)" }))
      for call in scene.calls {
        let response = try await scene.send(call)
        #expect((200..<300).contains(response.status), "\(call): \(response.status) \(response.body)")
      }
    }
  }

  // MARK: Bodies

  @Test func `a body that is not valid JSON or not an object is malformed`() async throws {
    let malformed = [
      "{", "}", "nope", " ", #"{"a": 1} x"#, #"{"a": 01}"#, #"{'a': 1}"#, "[1]", "\"x\"", "5", "null", "true",
      #"{"a": 1, "a": 2}"#, #"{"a": 1, "\u0061": 2}"#, #"{"a": {"b": 1, "b": 1}}"#,
      #"{"a": "\u0000"}"#, "{\"a\": \"\u{0}\"}", #"{"\u0000": 1}"#, #"{"a": "\ud800"}"#, "\u{feff}\u{feff}{}",
      #"{"a": "#.repeated(33) + "1" + "}".repeated(33), #"{"a": "# + "[".repeated(32) + "1" + "]".repeated(32) + "}",
      "[".repeated(60_000),
    ]
    try await Scene.play { scene in
      for call in scene.calls where call.takesJSON {
        for body in malformed {
          try await scene.send(call, body: body)
            .expectProblem(400, "malformed-body", "\(call) with \(body.prefix(80))")
        }
        let notUTF8 = try await scene.app.sendRaw(
          call.method, call.path, body: Array(#"{"a": ""#.utf8) + [0xc3, 0x28] + Array(#""}"#.utf8), token: call.token)
        notUTF8.expectProblem(400, "malformed-body", "\(call) with bytes that are not UTF-8")
        guard !call.bodyIsOptional else { continue }
        try await scene.app.send(call.method, call.path, token: call.token)
          .expectProblem(400, "malformed-body", "\(call) without a body")
      }
    }
  }

  @Test func `every field that breaks a rule is named`() async throws {
    try await Scene.play { scene in
      for call in scene.calls {
        #expect(!call.takesJSON || !call.wrong.isEmpty, "\(call)")
        for (body, fields) in call.wrong {
          let response = try await scene.send(call, body: body)
          response.expectProblem(422, "invalid-fields", "\(call) with \(body)")
          #expect(Set(response.badFields) == fields, "\(call) with \(body)")
        }
      }
    }
  }

  @Test func `text that almost matches a rule is refused quickly`() async throws {
    try await Scene.play { scene in
      let texts = [
        "a".repeated(16) + "!", "Europe/" + "a".repeated(16) + "!", "a-".repeated(9) + "!", "a_a".repeated(6) + "/",
        "a@" + ".".repeated(60) + "@", "a@" + "a.".repeated(60) + " ",
      ]
      for call in scene.calls where call.takesJSON {
        for text in texts {
          let fields = ["username", "email", "login", "refreshToken", "startTime", "timeZone", "title", "status"]
          let body = fields.map { "\"\($0)\": \"\(text)\"" }.joined(separator: ",")
          let start = ContinuousClock.now
          _ = try await scene.send(call, body: "{\(body)}")
          #expect(ContinuousClock.now - start < .seconds(2), "\(call) with \(text)")
        }
      }
    }
  }

  @Test func `a body of more than 64 KiB is refused, with or without a Content-Length`() async throws {
    try await Scene.play { scene in
      for call in scene.calls where call.takesJSON {
        for length in [65_537, 300_000] {
          let body = [UInt8](repeating: 0x20, count: length)
          try await scene.app.sendRaw(call.method, call.path, body: body, token: call.token)
            .expectProblem(413, "body-too-large", "\(call) with \(length) bytes")

          let connection = try await RawConnection(to: scene.app)
          try await connection.send(
            """
            \(call.method) \(call.path) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(call.token ?? "none")\r
            Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n
            """)
          async let sent = connection.send("1000\r\n" + " ".repeated(4096) + "\r\n", times: length / 4096 + 1)
          try await connection.response().expectProblem(413, "body-too-large", "\(call) with \(length) bytes in chunks")
          _ = try? await sent
        }
        // The server does not wait for a body that it refuses.
        let connection = try await RawConnection(to: scene.app)
        try await connection.send(
          """
          \(call.method) \(call.path) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(call.token ?? "none")\r
          Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n
          """)
        try await connection.response().expectProblem(413, "body-too-large", "\(call) with a gigabyte announced")
      }
    }
  }

  @Test func `a body of 64 KiB is accepted`() async throws {
    try await Scene.play { scene in
      let login = try #require(scene.calls.first { $0.template.hasSuffix("login") })
      let body = try #require(login.body)
      let response = try await scene.send(login, body: body + " ".repeated(65_536 - body.utf8.count))
      #expect(response.status == 200, "\(response.body)")
    }
  }

  @Test func `the content type of a body, if any, must be JSON`() async throws {
    try await Scene.play { scene in
      for call in scene.calls where call.takesJSON {
        for type in [
          "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", "*/*", "",
        ] {
          try await scene.send(call, headers: [("Content-Type", type)])
            .expectProblem(415, "unsupported-media-type", "\(call) as \(type)")
        }
      }
      let login = try #require(scene.calls.first { $0.template.hasSuffix("login") })
      for type in [
        "application/json", "Application/JSON; charset=utf-8", "application/json;charset=UTF-8",
        "application/merge-patch+json",
      ] {
        #expect(try await scene.send(login, headers: [("Content-Type", type)]).status == 200, "\(type)")
      }
    }
  }

  /// Bodies with the same text that no route takes, with their type and coding.
  private func foreign(_ text: String, _ type: String) throws -> [(body: [UInt8], type: String, coding: String?)] {
    let plain = Array(text.utf8)
    let packed = Array(try #require(ByteBuffer(string: text).gzipped()).readableBytesView)
    let big = text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
    let little = text.utf16.flatMap { [UInt8($0 & 0xff), UInt8($0 >> 8)] }
    return [
      (packed, type, "gzip"), (packed, type, nil), (plain, type, "br"), (plain, type, "identity, gzip"),
      (big, type, nil), (little, type, nil), ([0xfe, 0xff] + big, type, nil), ([0xff, 0xfe] + little, type, nil),
      (plain.flatMap { [0, 0, 0, $0] }, type, nil), ([0xff, 0xfe] + little, "\(type); charset=utf-16", nil),
      (plain, "\(type); charset=\"UTF-16LE\"", nil), (plain, "\(type);x=y; Charset=iso-8859-1", nil),
    ]
  }

  @Test func `a body that is compressed or not in UTF-8 is refused as such`() async throws {
    try await Scene.play { scene in
      func check(_ method: String, _ path: String, _ token: String?, _ text: String, _ type: String) async throws {
        for (body, type, coding) in try foreign(text, type) {
          let headers = coding.map { [("Content-Encoding", $0)] } ?? []
          let response = try await scene.app.sendRaw(
            method, path, body: body, type: type, headers: headers, token: token)
          let what = "\(method) \(path) as \(type), coding \(coding ?? "none")"
          response.expectProblem(415, "unsupported-media-type", what)
          let reasons = ["The body must be in UTF-8.", AppError.compressedBody.message]
          #expect(reasons.contains(response.json["detail"].string ?? ""), "\(what): \(response.body)")
        }
      }
      for call in scene.calls where call.takesJSON {
        try await check(call.method, call.path, call.token, call.body ?? "{}", "application/json")
      }
      // Mail programs send one click (RFC 8058), whose body says nothing more: it is not read.
      for form in Scene.forms where !form.hasSuffix("/unsubscribe") && form != "/m/{token}" {
        let path = form.replacing("{token}", with: "x")
        try await check("POST", path, nil, "name=Zoe&answer=going", "application/x-www-form-urlencoded")
      }
      let picture = try #require(scene.calls.first { $0.template.hasSuffix("me/picture") && $0.method == "PUT" })
      try await scene.app.sendRaw(
        "PUT", picture.path, body: [0x1f, 0x8b], type: "image/png", headers: [("Content-Encoding", "gzip")],
        token: picture.token
      ).expectProblem(415, "unsupported-media-type", "a compressed picture")
    }
  }

  @Test func `a byte order mark of UTF-8 does no harm`() async throws {
    try await Scene.play { scene in
      for call in scene.calls where call.takesJSON {
        guard let body = call.body else { continue }
        let response = try await scene.send(
          call, body: "\u{feff}" + body, headers: [("Content-Type", "application/json; charset=UTF-8")])
        #expect((200..<300).contains(response.status), "\(call): \(response.body)")
      }
      let login = try #require(scene.calls.first { $0.template.hasSuffix("login") })
      for (name, value) in [("Content-Encoding", "identity"), ("Content-Type", "application/json; charset=us-ascii")] {
        #expect(try await scene.send(login, headers: [(name, value)]).status == 200, "\(value)")
      }
    }
  }

  // MARK: Ids

  @Test func `unknown ids, malformed ids and ids of other users' things get the same response`() async throws {
    try await Scene.play { scene in
      let eve = try await scene.app.signUp("eve")
      for call in scene.calls where call.template.contains("{id}") {
        let unknown = try await scene.send(call, path: call.path(id: UUID().uuidString))
        #expect(unknown.problem?.hasSuffix("-not-found") == true, "\(call)")
        unknown.expectProblem(404, unknown.problem ?? "", "\(call)")
        let noID = [
          "x", "0", "null", "-1", "%20", "%00", "%ff", "%2e%2e", UUID().uuidString.lowercased() + "0",
          "a".repeated(2000),
        ]
        for id in [UUID().uuidString.lowercased(), User.ID.new().description] + noID {
          let response = try await scene.app.sendRaw(
            call.method, call.path(id: id), body: call.body.map { Array($0.utf8) }, token: call.token)
          #expect(
            response.status == 404 && response.withoutRequestID == unknown.withoutRequestID,
            "\(call) with \(id.prefix(80)): \(response.body)")
        }
        if call.isForAll { continue }
        let foreign = try await scene.send(call, token: eve.accessToken)
        #expect(
          foreign.status == 404 && foreign.withoutRequestID == unknown.withoutRequestID,
          "\(call) by a stranger: \(foreign.body)")
        // The id of a different kind of thing.
        let other = try await scene.send(call, path: call.path(id: scene.ana.id))
        #expect(
          other.status == 404 && other.withoutRequestID == unknown.withoutRequestID,
          "\(call) with a user's id: \(other.body)")
      }
      for (method, path) in [("DELETE", "friends"), ("PUT", "blocks"), ("DELETE", "blocks")] {
        for id in ["x", "null", "me", "%00"] {
          let response = try await scene.ana.send(method, "\(path)/\(id)")
          response.expectProblem(404, "user-not-found", "\(method) of \(path)/\(id)")
        }
        for id in [UUID().uuidString, scene.event, scene.request] {
          let response = try await scene.ana.send(method, "\(path)/\(id)")
          // Otherwise callers could tell a hidden user from one who does not exist.
          #expect(response.status == (path == "blocks" ? 204 : 404), "\(method) of \(path)/\(id)")
        }
      }
      for receiver in [UUID().uuidString, scene.event, scene.request] {
        let response = try await scene.ana.send("POST", "friend-requests", #"{"receiverId": "\#(receiver)"}"#)
        response.expectProblem(404, "user-not-found", "a request to \(receiver)")
      }
    }
  }

  @Test func `only the receiver accepts or declines a request, and only guests answer invitations`() async throws {
    try await Scene.play { scene in
      for verb in ["accept", "decline"] {
        try await scene.ben.send("POST", "friend-requests/\(scene.request)/\(verb)")
          .expectProblem(404, "friend-request-not-found", "\(verb) by its sender")
      }
      try await scene.ana.send("DELETE", "friend-requests/\(scene.request)")
        .expectProblem(404, "friend-request-not-found", "cancelling by its receiver")
      try await scene.ana.send("PUT", "events/\(scene.event)/invitations/me", #"{"status": "going"}"#)
        .expectProblem(409, "own-event", "an answer by the host")
      try await scene.dev.send("PATCH", "events/\(scene.event)", #"{"title": "Mine"}"#)
        .expectProblem(403, "not-a-host", "an edit by a guest")
    }
  }

  @Test func `another user's cache is forbidden, whether or not the user exists`() async throws {
    try await Scene.play { scene in
      for id in [scene.ben.id, UUID().uuidString, "x", "me"] {
        try await scene.ana.send("POST", "cache/validate/\(id)", "{}").expectProblem(403, "not-yours", "\(id)")
      }
      #expect(try await scene.ana.send("POST", "cache/validate/\(scene.ana.id.uppercased())").status == 200)
    }
  }

  // MARK: Tokens

  @Test func `a route that needs a token says so`() async throws {
    try await Scene.play { scene in
      for call in scene.calls where call.token != nil {
        for header in [nil, "Basic YW5hOmhvcnNl", "Bearer", "Bearer ", "Token x", ""] {
          let response = try await scene.app.send(
            call.method, call.path, body: call.body, headers: header.map { [("Authorization", $0)] } ?? [])
          response.expectProblem(401, "no-token", "\(call) with \(header ?? "nothing")")
          #expect(response.header("WWW-Authenticate") == "Bearer", "\(call) with \(header ?? "nothing")")
        }
      }
    }
  }

  @Test func `an invalid token and an expired one get different problems`() async throws {
    try await Scene.play { scene in
      let good = scene.ana.accessToken
      let session = Session.ID.new()
      let kid = String(TestApp.accessTokenKeys.prefix { $0 != ":" })
      let otherKey = SigningKeys.generate().drop { $0 != ":" }
      func signed(_ keys: String, secondsAgo: Int = 0) async throws -> String {
        try await AccessTokens(keys: SigningKeys(keys), lifetime: 900)
          .sign(user: scene.ana.userID, session: session, now: Timestamp.now().adding(seconds: -secondsAgo))
      }
      let unsigned = Data(#"{"alg":"none","typ":"JWT"}"#.utf8).base64URL
      let parts = good.split(separator: ".").map(String.init)
      let bad: [(String, String)] = [
        ("garbage", "invalid-token"), ("a.b.c", "invalid-token"), ("..", "invalid-token"), ("xé", "invalid-token"),
        (scene.ana.refreshToken, "invalid-token"), (good + "x", "invalid-token"),
        (String(good.dropLast()), "invalid-token"),
        ("\(parts[0]).\(parts[1])", "invalid-token"), ("\(unsigned).\(parts[1]).", "invalid-token"),
        ("\(unsigned).\(parts[1]).\(parts[2])", "invalid-token"),
        ("\(parts[0]).\(Data(#"{"sub":"\#(scene.ben.id)"}"#.utf8).base64URL).\(parts[2])", "invalid-token"),
        (try await signed("other\(otherKey)"), "invalid-token"),
        (try await signed("\(kid)\(otherKey)"), "invalid-token"),
        (try await signed(TestApp.accessTokenKeys, secondsAgo: 1000), "token-expired"),
        (try await signed(TestApp.accessTokenKeys, secondsAgo: 100_000_000), "token-expired"),
      ]
      for (token, slug) in bad {
        for call in scene.calls where call.token != nil {
          // Twice, because remembering a token must not change the response.
          for _ in 1...2 {
            let response = try await scene.send(call, token: token)
            response.expectProblem(401, slug, "\(call) with \(token.prefix(40))")
            #expect(response.header("WWW-Authenticate")?.hasPrefix(#"Bearer error="invalid_token""#) == true, "\(call)")
          }
        }
      }
      #expect(try await scene.app.send("GET", "users/me", token: good).status == 200)
      #expect(try await scene.app.send("GET", "users/me", headers: [("Authorization", "bearer \(good)")]).status == 200)
    }
  }

  @Test func `a bad token does no harm where none is needed`() async throws {
    try await Scene.play { scene in
      // Verifying an address takes a token or none: see ProvingTests.
      for call in scene.calls where call.token == nil && !call.template.hasSuffix("/email/verify") {
        let response = try await scene.send(call, token: "garbage")
        #expect((200..<300).contains(response.status), "\(call): \(response.body)")
      }
    }
  }

  @Test func `a token without an account never causes a server error`() async throws {
    try await Scene.play { scene in
      let ghost = try await scene.app.dependencies.accessTokens.sign(user: .new(), session: .new())
      for call in scene.calls where call.token != nil {
        let response = try await scene.send(call, token: ghost)
        #expect(response.status < 500, "\(call): \(response.status) \(response.body)")
      }
    }
  }

  // MARK: Queries

  @Test func `an invalid page request is refused, and every wrong parameter is named`() async throws {
    let wrong: [(query: String, fields: Set<String>)] = [
      ("limit=0", ["limit"]), ("limit=101", ["limit"]), ("limit=-1", ["limit"]), ("limit=abc", ["limit"]),
      ("limit=", ["limit"]), ("limit", ["limit"]), ("limit=1.5", ["limit"]), ("limit=99999999999999999999", ["limit"]),
      ("limit=%ff", ["limit"]), ("limit=%zz", ["limit"]), ("cursor=garbage", ["cursor"]), ("cursor=", ["cursor"]),
      ("cursor=%00", ["cursor"]), ("cursor=%ff%fe", ["cursor"]), ("limit=0&cursor=x", ["limit", "cursor"]),
    ]
    try await Scene.play { scene in
      for call in scene.calls where call.isList {
        for (query, fields) in wrong {
          let response = try await scene.app.sendRaw("GET", "\(call.path)?\(query)", token: call.token)
          response.expectProblem(422, "invalid-fields", "\(call)?\(query)")
          #expect(Set(response.badFields) == fields, "\(call)?\(query)")
        }
        for query in ["limit=1", "limit=100", ""] {
          let response = try await scene.app.sendRaw("GET", "\(call.path)?\(query)", token: call.token)
          #expect(response.status == 200, "\(call)?\(query): \(response.body)")
        }
        for query in ["=", "%", "other=1", "limit=50&other=%ff", "Limit=1", "limit%00=1"] {
          let response = try await scene.app.sendRaw("GET", "\(call.path)?\(query)", token: call.token)
          response.expectProblem(422, "invalid-fields", "\(call)?\(query)")
          #expect(response.json["errors"][0]["code"].string == "unknown", "\(call)?\(query): \(response.body)")
        }
      }
      for (path, field) in [("friend-requests", "direction"), ("events", "when"), ("invitations", "status")] {
        let response = try await scene.ana.send("GET", "\(path)?\(field)=nonsense&limit=0")
        response.expectProblem(422, "invalid-fields", path)
        #expect(Set(response.badFields) == [field, "limit"])
      }
    }
  }

  @Test func `a made-up cursor gets a page or is refused, and a cursor of another list is refused`() async throws {
    let lists = (UInt8.min ... .max).compactMap(ListName.init(rawValue:))
    let filters = [
      "/api/v1/events": "&when=past", "/api/v1/friend-requests": "&direction=sent",
      "/api/v1/invitations": "&status=going", "/api/v1/notifications": "&unread=true",
    ]
    let times: [Int64] = [.min + 1, -62_135_596_800_000_000, 0, 253_402_300_799_999_999, .max]
    try await Scene.play { scene in
      for call in scene.calls where call.isList {
        for query in ["", filters[call.path]].compactMap({ $0 }) {
          var accepted: Set<ListName> = []
          for list in lists {
            for (time, stamp) in times.map({ ($0, 0) }) + times.map({ (0, $0) }) {
              let cursor = Cursor(
                list: list, stamp: Timestamp(microseconds: stamp), time: Timestamp(microseconds: time), id: UUID())
              let response = try await scene.send(call, path: "\(call.path)?cursor=\(cursor.text)\(query)")
              #expect([200, 422].contains(response.status), "\(call), \(list), \(time), \(stamp): \(response.body)")
              guard response.status == 200 else { continue }
              accepted.insert(list)
              guard let text = response.json["timestamp"].string else { continue }
              #expect(Timestamp(rfc3339: text) != nil, "\(call), \(list), \(time), \(stamp): \(text)")
            }
          }
          #expect(accepted.count == 1, "\(call)?\(query)")
        }
      }
    }
  }

  // MARK: Paths and methods

  @Test func `unknown paths are not found`() async throws {
    try await Scene.play { scene in
      for path in [
        "/", "//", "/api", "/api/v1", "/api/v2/friends", "/api/v1/nope", "/API/v1/friends", "/api/v1/friends/x/y",
        "/%00",
        "/api/v1/%ff", "/api/v1/%zz", "/api/v1/..", "/etc/passwd", "/api/v1/../../etc/passwd", "/api/v1/{id}", "*",
        "/" + "a".repeated(8000), "/?" + "a=b&".repeated(2000),
      ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
          try await scene.app.sendRaw(method, path, token: scene.ana.accessToken)
            .expectProblem(404, "route-not-found", "\(method) \(path.prefix(80))")
        }
      }
    }
  }

  @Test func `a wrong method is refused, and the response names the allowed ones`() async throws {
    try await Scene.play { scene in
      for call in scene.calls {
        let matching = scene.calls.filter { $0.matches(call.path) }
        // A literal segment wins over a parameter.
        let fewest = matching.map(\.parameters).min()
        let hasForm = Scene.forms.contains(call.template)
        let there = Set(matching.filter { $0.parameters == fewest }.map(\.method) + (hasForm ? ["POST"] : []))
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] where !there.contains(method) {
          let response = try await scene.app.sendRaw(method, call.path, token: call.token)
          response.expectProblem(405, "method-not-allowed", "\(method) \(call.path)")
          let allowed = response.header("Allow")?.components(separatedBy: ", ") ?? []
          #expect(Set(allowed) == there.union(there.contains("GET") ? ["HEAD"] : []), "\(method) \(call.path)")
        }
      }
    }
  }

  @Test func `HEAD gets the response of GET, without the body`() async throws {
    try await Scene.play { scene in
      for call in scene.calls where call.method == "GET" {
        let connection = try await RawConnection(to: scene.app)
        var responses: [APIResponse] = []
        for method in ["HEAD", "GET"] {
          try await connection.send(
            "\(method) \(call.path) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(call.token ?? "none")\r\n\r\n")
          responses.append(try await connection.response(to: method))
        }
        #expect(responses.map(\.status) == [200, 200], "\(call)")
        for name in ["Content-Type", "ETag"] {
          #expect(responses[0].header(name) == responses[1].header(name), "\(name) of \(call)")
        }
        // A response that is made while it is sent has no Content-Length.
        if responses[1].header("Transfer-Encoding") == "chunked" { continue }
        #expect(responses[0].header("Content-Length") == responses[1].header("Content-Length"), "\(call)")
        // A picture is no text, so that its bytes cannot be counted in one.
        if responses[1].header("Content-Type")?.hasPrefix("image/") == true { continue }
        #expect(responses[1].body.utf8.count == responses[1].header("Content-Length").flatMap { Int($0) }, "\(call)")
      }
    }
  }

  @Test func `the response to a refused HEAD has no body either`() async throws {
    try await Scene.play { scene in
      for (path, token, status) in [
        ("/nope", scene.ana.accessToken, 404), ("/api/v1/users/me", "garbage", 401),
        ("/api/v1/events/\(UUID().uuidString)", scene.ana.accessToken, 404), ("/api/v1/auth/login", "", 405),
        ("/api/v1/friends?limit=0", scene.ana.accessToken, 422),
      ] {
        let connection = try await RawConnection(to: scene.app)
        for method in ["HEAD", "GET"] {
          try await connection.send(
            "\(method) \(path) HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(token)\r\n\r\n")
          // A body that the client does not expect would garble the next response.
          #expect(try await connection.response(to: method).status == status, "\(method) \(path)")
        }
      }
    }
  }

  // MARK: Request ids

  @Test func `every response has a request id, which is the client's own if it is valid`() async throws {
    let sane = ["a", "0", "abc-DEF_1.2", UUID().uuidString, "a".repeated(128)]
    let insane = ["a".repeated(129), "a b", "a/b", "<script>", "a\"b", "a,b", "é", "{}", "a".repeated(5000), ""]
    try await Scene.play { scene in
      for call in scene.calls {
        for token in [call.token, "garbage"] {
          let response = try await scene.send(call, token: token)
          #expect(response.header("X-Request-Id")?.wholeMatch(of: /[A-Za-z0-9._-]{1,128}/) != nil, "\(call)")
        }
      }
      for path in ["/health/live", "/nope", "/api/v1/friends?limit=0", "/api/v1/users/me"] {
        for id in sane {
          let response = try await scene.app.send(
            "GET", path, headers: [("X-Request-Id", id)], token: scene.ana.accessToken)
          #expect(response.header("X-Request-Id") == id, "\(path)")
          if response.status >= 400 { #expect(response.json["requestId"].string == id, "\(path)") }
        }
        for id in insane {
          let response = try await scene.app.send(
            "GET", path, headers: [("X-Request-Id", id)], token: scene.ana.accessToken)
          let given = try #require(response.header("X-Request-Id"))
          #expect(given != id && given.wholeMatch(of: /[A-Za-z0-9._-]{1,128}/) != nil, "\(path) with \(id.prefix(40))")
          #expect(!response.body.contains(id) || id.isEmpty || id == "{}", "\(path) with \(id.prefix(40))")
        }
      }
    }
  }

  // MARK: Random input

  @Test(arguments: 1...3 as ClosedRange<UInt64>)
  func `a hundred mutations of valid requests never cause a server error`(_ seed: UInt64) async throws {
    try await Scene.play { scene in
      var random = SeededRandom(seed: seed)
      for number in 0..<100 {
        let call = try #require(scene.calls.randomElement(using: &random))
        var path = Array(call.path.utf8.dropFirst())
        var body = call.body.map { Array($0.utf8) }
        if body == nil || Int.random(in: 0...3, using: &random) == 0 { Self.mutate(&path, &random) }
        if body != nil { Self.mutate(&body!, &random) }
        let target = "/" + String(decoding: path, as: UTF8.self)
        let input =
          "seed \(seed), \(number): \(call.method) \(target) \(body.map { String(decoding: $0, as: UTF8.self) } ?? "")"
        do {
          let response = try await scene.app.sendRaw(call.method, target, body: body, token: call.token)
          #expect((200..<500).contains(response.status), "\(input): \(response.status) \(response.body)")
          if response.header("Content-Type")?.contains("json") == true {
            #expect(throws: Never.self, "\(input): \(response.body)") {
              try JSONSerialization.jsonObject(with: Data(response.body.utf8))
            }
          }
        } catch {
          Issue.record("\(input): \(error)")
        }
      }
    }
  }

  private static let pieces = [
    "null", "true", "[]", "{}", "-1", "0.1", "1e400", "99999999999999999999", "\"\"", "\"x\"", #""\u0000""#, #"\ud800"#,
    "\\", "\"", ",", ":", "[", "{", "]", "}", "%00", "%ff", "%", "/", "../", "?", "?limit=0", "?cursor=%ff", "&", "é",
    "😀",
    "\u{202e}", "\u{0}", "'; DROP TABLE users; --", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59-23:59",
    "0000-01-01T00:00:00Z",
    "00000000-0000-0000-0000-000000000000", "[".repeated(40), "a".repeated(3000), "[\"x\",".repeated(600),
  ].map { Array($0.utf8) }

  private static func mutate(_ bytes: inout [UInt8], _ random: inout SeededRandom) {
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let start = Int.random(in: 0...bytes.count, using: &random)
      let end = Int.random(in: start...min(bytes.count, start + 20), using: &random)
      switch Int.random(in: 0...4, using: &random) {
      case 0: bytes.removeSubrange(start..<end)
      case 1: bytes.insert(contentsOf: bytes[start..<end], at: Int.random(in: 0...bytes.count, using: &random))
      case 2: if start < bytes.count { bytes[start] = .random(in: 0...255, using: &random) }
      case 3: bytes.replaceSubrange(start..<end, with: pieces.randomElement(using: &random) ?? [])
      default: bytes.insert(contentsOf: pieces.randomElement(using: &random) ?? [], at: start)
      }
    }
  }
}

/// Ana and Dev are friends. Ben and Cleo have sent Ana a friend request, and Ben has sent Finn one. Dev is invited to
/// Ana's event. Hugo has no friends.
private struct Scene: Sendable {
  let app: TestApp
  let ana: Phone
  let ben: Phone
  let dev: Phone
  let finn: Phone
  let hugo: Phone
  /// Ends her session. She has another one.
  let gina: Phone
  let ginasOther: Session.ID
  /// The last part of the URL of Dev's picture.
  let picture: String
  /// The last part of the URL of Dev's calendar feed.
  let calendar: String
  /// The tokens that were mailed to Vera, to Uma's former address, and to Cleo.
  let verifyToken: String
  let undoToken: String
  let resetToken: String
  /// The token that was mailed to Iris with a code.
  let codeToken: String
  /// The identity tokens of a new user and of Ana.
  let newcomer: (apple: String, google: String)
  let notification: String
  let mine: (apple: String, google: String)
  /// The friend requests of Ben and Cleo to Ana.
  let request: String
  let otherRequest: String
  /// Ben's friend request to Finn.
  let sentRequest: String
  let event: String
  /// Ana's links to the event.
  let link: (id: String, token: String)
  let otherLink: (id: String, token: String)
  /// A visitor of the event.
  let visit: Visit
  /// The last part of the URL of the visitor's calendar.
  let visitorCalendar: String
  /// Dev's device.
  let device: String
  /// Offers to Ben to host Dev's events.
  let offers: [String]

  /// - Parameter body: must leave the service ready.
  static func play(_ body: @escaping @Sendable (Scene) async throws -> Void) async throws {
    let environment = [
      "MUSTER_THROTTLING": "off", "MUSTER_APPLE_APP_IDS": "ABCDE12345.com.example.app",
      "MUSTER_ANDROID_PACKAGE": "com.example.app",
      "MUSTER_ANDROID_FINGERPRINTS": Array(repeating: "A1", count: 32).joined(separator: ":"),
    ]
    try await TestApp.runWithProviders(environment) { app, identity in
      let (ana, dev) = try await app.friends("ana", "dev")
      let ben = try await app.signUp("ben")
      let uma = try await app.signUp("uma")
      try await app.takeMails()
      try await app.database.execute("UPDATE users SET email_verified_at = now() WHERE id = \(uma.userID)")
      try await uma.editProfile(#"{"email": "new@example.com", "currentPassword": "\#(uma.password)"}"#)
      _ = try await uma.verify(try await app.takeToken("mail-verify-email"))
      let undoToken = try await app.takeToken("mail-email-changed")
      _ = try await app.signUp("vera", isVerified: false)
      let verifyToken = try await app.takeToken("mail-verify-email")
      let cleo = try await app.signUp("cleo")
      _ = try await app.askForReset("cleo@example.com")
      let resetToken = try await app.takeToken("mail-reset-password")
      _ = try await app.signUp("iris")
      let codeToken = try await app.takeCode(of: "iris@example.com").token
      let gina = try await app.signUp("gina")
      let ginasOther = try await gina.signInAgain().session
      let finn = try await app.signUp("finn")
      let event: String = try #require(try await ana.createEvent(inviting: [dev])["id"].string)
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let otherLink = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      let visit = try await app.visit(otherLink.token)
      let page = try await visit.page().body
      let visitorCalendar = try #require(page.firstMatch(of: /calendars\/visitors\/([A-Za-z0-9_-]+\.ics)/)?.1)
      try await app.befriend(dev, ben)
      var offers: [String] = []
      for title in ["One", "Two"] {
        let hosted = try await dev.createEvent(title)["id"].string ?? ""
        offers.append(try await dev.offerHost(ben, to: hosted))
      }
      try await body(
        Scene(
          app: app, ana: ana, ben: ben, dev: dev, finn: finn,
          hugo: try await app.signUp("hugo"), gina: gina, ginasOther: ginasOther,
          picture: String(try await dev.show(Sample.ascii(Sample.webpText)).suffix(24)),
          calendar: String(try await dev.makeCalendarLink().dropFirst("/calendars/".count)), verifyToken: verifyToken,
          undoToken: undoToken, resetToken: resetToken, codeToken: codeToken,
          newcomer: (try identity.token(.apple, "newcomer"), try identity.token(.google, "newcomer")),
          notification: try identity.notification("consent-revoked", of: "unknown"),
          mine: (try identity.token(.apple, "ana"), try identity.token(.google, "ana")),
          request: try await ben.sendFriendRequest(to: ana), otherRequest: try await cleo.sendFriendRequest(to: ana),
          sentRequest: try await ben.sendFriendRequest(to: finn),
          event: event, link: link, otherLink: otherLink, visit: visit, visitorCalendar: String(visitorCalendar),
          device: try #require(try await dev.register(token: "dev").json["id"].string), offers: offers))
      try await app.takeNotifications()
      #expect(try await app.send("GET", "/health/ready").status == 200)
    }
  }

  /// Sends a call of the table. Arguments replace its values.
  func send(
    _ call: Call, path: String? = nil, body: String? = nil, headers: [(String, String)] = [], token: String? = nil
  ) async throws -> APIResponse {
    try await app.send(
      call.method, path ?? call.path, body: body ?? call.body, headers: headers, token: token ?? call.token)
  }

  /// A call of each act that takes JSON or no body, in an order in which all succeed.
  var calls: [Call] {
    var known: Set<String> = []
    return Act.all.filter { !Self.forms.contains($0.template) || $0.isRead }.filter { known.insert($0.name).inserted }
      .map { act in
        let actor = actor(of: act)
        return Call(
          act, by: act.needsToken ? actor : nil, naming: things(of: act), body: body(of: act, by: actor),
          wrong: wrong(act))
      }
  }

  private func actor(of act: Act) -> Phone {
    switch act.name {
    case "endSession", "logOut": gina
    case "changePassword": finn
    case "deleteMe": hugo
    case "cancelFriendRequest", "endFriendship", "block", "unblock": ben
    case "listProposals", "acceptProposal", "declineProposal": ben
    case "listInvitations", "answerInvitation", "joinByLink", "removeDevice": dev
    default: ana
    }
  }

  /// The objects in the act's path.
  private func things(of act: Act) -> [String: String] {
    var things = [
      "event": event, "link": link.id, "linkToken": link.token, "request": request, "sentRequest": sentRequest,
      "session": ginasOther.description, "proposal": offers[0], "device": device, "invitee": dev.id, "user": ana.id,
      "picture": picture, "calendar": calendar, "visit": visit.token, "visitorCalendar": visitorCalendar,
      "mailToken": verifyToken,
      "optOut": app.dependencies.mailGate.optOuts.keys.optOutToken(of: Mailbox("zoe@x.org")) ?? "",
    ]
    switch act.name {
    case "getUser": things["user"] = ben.id
    case "endFriendship": things["user"] = finn.id
    case "block", "unblock": things["user"] = gina.id
    case "declineFriendRequest": things["request"] = otherRequest
    case "declineProposal": things["proposal"] = offers[1]
    case "getSharePage", "getReportPage": things["linkToken"] = otherLink.token
    case "getUndoingPage": things["mailToken"] = undoToken
    default: break
    }
    return things
  }

  private func body(of act: Act, by actor: Phone) -> String? {
    if act.name == "putPicture" { return Sample.webpText }
    return act.body { word in
      switch word {
      case "other": ["createEvent", "inviteToEvent"].contains(act.name) ? dev.id : finn.id
      case "me": actor.username
      case "password": actor.password
      case "refreshToken": actor.refreshToken
      case "verifyToken": verifyToken
      case "undoToken": undoToken
      case "resetToken": resetToken
      case "codeToken": codeToken
      case "appleToken": mine.apple
      case "googleToken": mine.google
      case "newAppleToken": newcomer.apple
      case "newGoogleToken": newcomer.google
      case "appleNotification": notification
      default: "nina"
      }
    }
  }

  /// These take no JSON: see VisitorFormTests, VisitorReportTests, VisitorPageTests and ProvingTests.
  static let forms = [
    "/e/{token}", "/e/{token}/report", "/g/{token}", "/g/{token}/unsubscribe", "/verify/{token}", "/undo/{token}",
    "/m/{token}",
  ]

  /// Invalid bodies, and the fields that the response must name.
  private func wrong(_ act: Act) -> [(body: String, fields: Set<String>)] {
    switch act.name {
    case "changePassword":
      [
        ("{}", ["currentPassword", "newPassword"]),
        (#"{"currentPassword": 5, "newPassword": "short"}"#, ["currentPassword", "newPassword"]),
        (#"{"code": "12345", "newPassword": "short"}"#, ["code", "newPassword"]),
        (#"{"idToken": "x", "newPassword": "correct horse finn"}"#, ["currentPassword"]),
        (#"{"currentPassword": "correct horse finn", "newPassword": "baseball"}"#, ["newPassword"]),
        (#"{"currentPassword": "correct horse finn", "newPassword": "finn@example.com"}"#, ["newPassword"]),
      ]
    case "linkApple":
      wrongLinks
    case "linkGoogle":
      wrongLinks
    case "unlinkApple":
      [("{}", ["currentPassword"]), (#"{"currentPassword": 5}"#, ["currentPassword"])]
    case "unlinkGoogle":
      [("{}", ["currentPassword"]), (#"{"currentIdToken": "", "code": 5}"#, ["currentIdToken", "code"])]
    case "editMe":
      [
        (
          #"{"username": null, "displayName": "", "bio": 5, "email": "unknown"}"#,
          ["username", "displayName", "bio", "email", "currentPassword"]
        ),
        (#"{"username": "a b", "bio": "\#("a".repeated(501))"}"#, ["username", "bio"]),
        (#"{"email": "ana@example.org", "idToken": [], "nonce": 5}"#, ["idToken", "nonce"]),
        (#"{"email": "ana@example.org", "code": "12345x"}"#, ["code"]),
      ]
    case "deleteMe":
      [
        ("{}", ["password"]), (#"{"password": null, "nonce": "x"}"#, ["password"]),
        (#"{"password": 5, "idToken": {}}"#, ["password", "idToken"]), (#"{"code": "１２３４５６"}"#, ["code"]),
      ]
    case "sendFriendRequest":
      [
        ("{}", ["receiverId"]), (#"{"receiverId": null}"#, ["receiverId"]), (#"{"receiverId": 5}"#, ["receiverId"]),
        (#"{"receiverId": "x"}"#, ["receiverId"]), (#"{"receiverId": ["\#(finn.id)"]}"#, ["receiverId"]),
        (#"{"receiverId": "\#(ana.id)"}"#, ["receiverId"]),
      ]
    case "report":
      [
        ("{}", ["userId", "eventId", "guestId", "reason"]),
        (#"{"userId": "\#(finn.id)", "eventId": "\#(event)", "reason": "spam"}"#, ["userId", "eventId"]),
        (#"{"userId": 5, "reason": "rude", "text": 5}"#, ["userId", "reason", "text"]),
        (
          #"{"eventId": "x", "userId": null, "reason": null, "text": "\#("a".repeated(2001))"}"#,
          ["eventId", "reason", "text"]
        ),
        (#"{"userId": "\#(ana.id)", "reason": "spam"}"#, ["userId"]),
        (#"{"eventId": "\#(event)", "reason": "spam"}"#, ["eventId"]),
      ]
    case "createEvent":
      wrongEvents
    case "editEvent":
      [
        (
          #"{"title": null, "note": 1, "startTime": null, "endTime": "x", "timeZone": "", "location": 1, "url": "a", "capacity": 0}"#,
          ["title", "note", "startTime", "endTime", "timeZone", "location", "url", "capacity"]
        ),
        (
          #"{"location": {"latitude": "north"}}"#, ["location.name", "location.latitude", "location.longitude"]
        ),
        (#"{"endTime": "2001-01-01T00:00:00Z"}"#, ["endTime"]),
        (#"{"startTime": "2031-01-01T00:00:00Z"}"#, ["endTime"]),
      ]
    case "inviteToEvent":
      [
        ("{}", ["userIds"]), (#"{"userIds": null}"#, ["userIds"]), (#"{"userIds": "\#(dev.id)"}"#, ["userIds"]),
        (#"{"userIds": ["x", "\#(dev.id)", 5, null]}"#, ["userIds[0]", "userIds[2]", "userIds[3]"]),
        (
          #"{"userIds": ["\#(dev.id)", "\#(ben.id)", "\#(UUID().uuidString)", "\#(ana.id)"]}"#,
          ["userIds[1]", "userIds[2]", "userIds[3]"]
        ),
        (
          #"{"userIds": [\#(Array(repeating: "\"\(dev.id)\"", count: 501).joined(separator: ","))]}"#, ["userIds"]
        ),
      ]
    case "answerInvitation":
      [
        ("{}", ["status"]), (#"{"status": 5}"#, ["status"]), (#"{"status": "perhaps"}"#, ["status"]),
        (#"{"status": "waitlisted"}"#, ["status"]), (#"{"status": "GOING"}"#, ["status"]),
      ]
    case "setAnswer":
      [
        ("{}", ["status"]), (#"{"status": 5}"#, ["status"]), (#"{"status": "invited"}"#, ["status"]),
      ]
    case "duplicateEvent":
      [
        ("{}", ["startTime"]),
        (#"{"startTime": "x", "endTime": 5, "invite": "yes"}"#, ["startTime", "endTime", "invite"]),
        (#"{"startTime": "2031-05-01T18:00:00Z", "endTime": "2031-05-01T17:00:00Z"}"#, ["endTime"]),
      ]
    case "createLink":
      [
        ("{}", ["kind"]),
        (
          #"{"kind": "x", "shows": 1, "expiresAt": "2001-01-01T00:00:00Z", "maxGuests": 0}"#,
          ["kind", "shows", "expiresAt", "maxGuests"]
        ),
      ]
    case "editLink":
      [(#"{"kind": null, "maxGuests": 1.5}"#, ["kind", "maxGuests"])]
    case "validateCache":
      [
        (#"{"timestamps": []}"#, ["timestamps"]), (#"{"timestamps": null}"#, ["timestamps"]),
        (#"{"timestamps": "2026-05-01T18:00:00Z", "friends": null}"#, ["timestamps"]),
      ]
    case "markNotificationsRead":
      [
        ("{}", ["ids", "before", "all"]), (#"{"ids": null, "before": null}"#, ["ids", "before", "all"]),
        (#"{"ids": [], "before": "2026-05-01T18:00:00Z"}"#, ["ids", "before", "all"]), (#"{"ids": 5}"#, ["ids"]),
        (#"{"all": false}"#, ["ids", "before", "all"]),
        (#"{"ids": ["x", "\#(ana.id)", 5]}"#, ["ids[0]", "ids[2]"]), (#"{"before": 5}"#, ["before"]),
        (#"{"before": "1969-12-31T23:59:59Z"}"#, ["before"]), (#"{"before": "now"}"#, ["before"]),
        (#"{"ids": [\#(Array(repeating: "\"\(ana.id)\"", count: 501).joined(separator: ","))]}"#, ["ids"]),
      ]
    case "setNotificationPreferences":
      [
        (#"{"event-updated": null, "friend-request": "no"}"#, ["event-updated", "friend-request"]),
        (#"{"event-updated": false, "nonsense": true, "eventUpdated": 5}"#, ["nonsense", "eventUpdated"]),
        (#"{"session-revoked": false}"#, ["session-revoked"]),
      ]
    case "registerDevice":
      [
        ("{}", ["platform", "token"]), (#"{"platform": "windows", "token": 5}"#, ["platform", "token"]),
        (
          #"{"platform": "log", "token": "", "environment": "test", "topic": "", "name": "", "rotateSecret": 1}"#,
          ["token", "environment", "topic", "name", "rotateSecret"]
        ),
        (
          #"{"platform": "log", "token": "a b", "environment": "sandbox", "topic": "app", "rotateSecret": true}"#,
          ["token", "environment", "topic", "rotateSecret"]
        ),
        (#"{"platform": "log", "token": "a", "localizes": true}"#, ["localizes"]),
        (#"{"platform": "webhook", "token": "https://example.com", "localizes": true}"#, ["localizes"]),
        (#"{"platform": "android", "token": "a", "localizes": "yes"}"#, ["localizes"]),
        (#"{"platform": "log", "token": "\#("a".repeated(1025))"}"#, ["token"]),
        (#"{"platform": "ios", "token": "\#("g".repeated(64))", "topic": "a\r\nb"}"#, ["token", "topic"]),
        (#"{"platform": "ios", "token": "\#("a".repeated(65))"}"#, ["token"]),
        (#"{"platform": "android", "token": "a/b"}"#, ["token"]),
        (#"{"platform": "webhook", "token": "http://example.com"}"#, ["token"]),
      ]
    case "register":
      [
        ("{}", ["username", "email"]),
        (
          #"{"username": 1, "email": [], "password": {}, "displayName": true, "device": ""}"#,
          ["username", "email", "password", "displayName", "device"]
        ),
        (
          #"{"username": "a b", "email": "unknown", "password": "short", "displayName": ""}"#,
          ["username", "email", "password", "displayName"]
        ),
        (
          #"{"username": "\#("a".repeated(31))", "email": "a@b", "password": "\#("a".repeated(257))"}"#,
          ["username", "email", "password"]
        ),
      ]
    case "login":
      [
        ("{}", ["login", "password"]),
        (#"{"login": 1, "password": null, "device": []}"#, ["login", "password", "device"]),
      ]
    case "refresh":
      [
        ("{}", ["refreshToken"]), (#"{"refreshToken": 5}"#, ["refreshToken"]),
        (#"{"refreshToken": ""}"#, ["refreshToken"]),
      ]
    case "requestPasswordReset":
      [
        ("{}", ["email"]), (#"{"email": null}"#, ["email"]), (#"{"email": 5}"#, ["email"]),
        (#"{"email": "finn"}"#, ["email"]),
      ]
    case "confirmPasswordReset":
      [
        ("{}", ["token", "newPassword"]), (#"{"token": [], "newPassword": "short"}"#, ["token", "newPassword"]),
        (#"{"token": "x", "newPassword": "correct horse cleo"}"#, ["token"]),
        (#"{"token": "\#(resetToken)", "newPassword": "cleo@example.com"}"#, ["newPassword"]),
      ]
    case "verifyEmail":
      [
        ("{}", ["token"]), (#"{"token": 5}"#, ["token"]), (#"{"token": ""}"#, ["token"]),
        (#"{"token": "\#(resetToken)"}"#, ["token"]),
      ]
    case "undoEmailChange":
      [
        ("{}", ["token"]), (#"{"token": 5}"#, ["token"]), (#"{"token": ""}"#, ["token"]),
        (#"{"token": "\#(verifyToken)"}"#, ["token"]),
      ]
    case "requestCode":
      [
        ("{}", ["email"]), (#"{"email": null}"#, ["email"]), (#"{"email": ["finn@example.com"]}"#, ["email"]),
        (#"{"email": "finn"}"#, ["email"]),
      ]
    case "confirmCode":
      [
        ("{}", ["email", "code"]), (#"{"token": null, "email": "finn@example.com"}"#, ["code"]),
        (#"{"token": 5, "device": ""}"#, ["token", "device"]), (#"{"token": ""}"#, ["token"]),
        (#"{"email": "finn", "code": 123456}"#, ["email", "code"]),
        (#"{"email": "finn@example.com", "code": "1234567"}"#, ["code"]),
        (#"{"email": "finn@example.com", "code": " 12345"}"#, ["code"]),
      ]
    case "signInWithApple":
      wrongSignIns
    case "signInWithGoogle":
      wrongSignIns
    case "notifyOfAppleAccount":
      [
        ("{}", ["payload"]), (#"{"payload": ""}"#, ["payload"]), (#"{"payload": {}}"#, ["payload"]),
        (#"{"payload": "\#("a".repeated(16_385))"}"#, ["payload"]),
      ]
    default: []
    }
  }

  private var wrongTokens: [(body: String, fields: Set<String>)] {
    [
      ("{}", ["idToken"]), (#"{"idToken": null, "nonce": null}"#, ["idToken"]),
      (#"{"idToken": "", "nonce": "", "authorizationCode": ""}"#, ["idToken", "nonce", "authorizationCode"]),
      (#"{"idToken": 5, "nonce": [], "authorizationCode": {}}"#, ["idToken", "nonce", "authorizationCode"]),
      (#"{"idToken": "\#("a".repeated(16_385))"}"#, ["idToken"]),
    ]
  }

  private var wrongLinks: [(body: String, fields: Set<String>)] {
    wrongTokens.map { ($0.body, $0.fields.union(["currentPassword"])) } + [
      (#"{"idToken": "x", "currentPassword": 5}"#, ["currentPassword"]),
      (
        #"{"idToken": "x", "currentIdToken": "", "currentNonce": ""}"#,
        ["currentIdToken", "currentNonce"]
      ),
    ]
  }

  private var wrongSignIns: [(body: String, fields: Set<String>)] {
    wrongTokens + [
      (#"{"idToken": "x", "displayName": "a\nb", "device": true}"#, ["displayName", "device"]),
      (#"{"displayName": "\#("a".repeated(101))"}"#, ["idToken", "displayName"]),
    ]
  }

  private var wrongEvents: [(body: String, fields: Set<String>)] {
    func event(_ rest: String) -> String {
      #"{"title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC", \#(rest)}"#
    }
    return [
      ("{}", ["title", "startTime", "timeZone"]),
      (
        """
        {"title": 1, "note": 2, "startTime": 3, "endTime": 4, "timeZone": 5, "location": 6, "capacity": "7",
         "inviteeIds": 8}
        """,
        ["title", "note", "startTime", "endTime", "timeZone", "location", "capacity", "inviteeIds"]
      ),
      (
        """
        {"title": " ", "note": "\("a".repeated(2001))", "startTime": "1969-12-31T23:59:59Z", "endTime": "soon",
         "timeZone": "Europe/Atlantis", "location": {}, "capacity": 0, "inviteeIds": ["x", "\(ana.id)", 5]}
        """,
        [
          "title", "note", "startTime", "endTime", "timeZone", "location.name", "capacity", "inviteeIds[0]",
          "inviteeIds[2]",
        ]
      ),
      (
        event(#""location": {"name": 1, "latitude": 91, "longitude": "east"}"#),
        ["location.name", "location.latitude", "location.longitude"]
      ),
      (
        event(#""location": {"name": "Park", "latitude": 1e400, "longitude": -1e400}"#),
        ["location.latitude", "location.longitude"]
      ),
      (event(#""location": {"name": "Park", "latitude": 52.5}"#), ["location.longitude"]),
      (event(#""capacity": 1.5"#), ["capacity"]), (event(#""capacity": 99999999999999999999"#), ["capacity"]),
      (event(#""endTime": "2030-05-01T18:00:00Z""#), ["endTime"]),
      (
        event(#""inviteeIds": ["\#(dev.id)", "\#(ben.id)", "\#(UUID().uuidString)"]"#),
        ["inviteeIds[1]", "inviteeIds[2]"]
      ),
      (
        event(#""inviteeIds": [\#(Array(repeating: "\"\(dev.id)\"", count: 501).joined(separator: ","))]"#),
        ["inviteeIds"]
      ),
    ]
  }
}

/// A valid request, and invalid bodies for it.
private struct Call: Sendable, CustomStringConvertible {
  private static let lists: Set = [
    "listSessions", "listFriends", "listFriendRequests", "listBlocks", "listEvents", "listGuests", "listInvitations",
    "listProposals", "listNotifications", "listDevices",
  ]

  let act: Act
  /// Nil for a route that needs no token.
  let token: String?
  let path: String
  private let things: [String: String]
  let body: String?
  /// Invalid bodies, and the fields that the response must name.
  let wrong: [(body: String, fields: Set<String>)]

  init(
    _ act: Act, by caller: Phone?, naming things: [String: String], body: String?,
    wrong: [(body: String, fields: Set<String>)]
  ) {
    self.act = act
    token = caller?.accessToken
    path = act.path { things[$0] ?? "" } + (act.name == "searchUsers" ? "?query=ben" : "")
    self.things = things
    self.body = body
    self.wrong = wrong
  }

  var method: String { act.method }
  /// As in the router.
  var template: String { act.template }
  var isList: Bool { Self.lists.contains(act.name) }
  var bodyIsOptional: Bool { act.name == "validateCache" }
  /// False for a picture, and for no body.
  var takesJSON: Bool { body != nil && act.name != "putPicture" }
  /// Whether all users get the same response for the id in the path.
  var isForAll: Bool { act.name == "getUser" }

  var description: String { "\(method) \(template)" }

  /// The path with another first thing.
  func path(id: String) -> String {
    var isFirst = true
    return act.path { name in
      defer { isFirst = false }
      return isFirst ? id : things[name] ?? ""
    }
  }

  /// The number of parameters in the template.
  var parameters: Int { template.split(separator: "/").count { $0.hasPrefix("{") } }

  func matches(_ path: String) -> Bool {
    let (mine, its) = (template.split(separator: "/"), path.prefix { $0 != "?" }.split(separator: "/"))
    return mine.count == its.count && zip(mine, its).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
  }
}

extension APIResponse {
  /// Expects a complete problem, which reveals no internals.
  fileprivate func expectProblem(
    _ status: Int, _ slug: String, _ what: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let comment: Comment = "\(what): \(self.status) \(body)"
    #expect(self.status == status && problem == slug, comment, sourceLocation: sourceLocation)
    #expect(header("Content-Type") == "application/problem+json", comment, sourceLocation: sourceLocation)
    let members: Set = ["type", "title", "status", "detail", "requestId"]
    #expect(json.keys == members.union(status == 422 ? ["errors"] : []), comment, sourceLocation: sourceLocation)
    #expect(json["status"].int == status, comment, sourceLocation: sourceLocation)
    for name in ["title", "detail", "requestId"] {
      #expect(json[name].string?.isEmpty == false, comment, sourceLocation: sourceLocation)
    }
    #expect(json["requestId"].string == header("X-Request-Id"), comment, sourceLocation: sourceLocation)
    for error in json["errors"].array {
      #expect(
        error.keys == ["field", "code", "message"] && error["message"].string != "", comment,
        sourceLocation: sourceLocation)
      #expect(FieldError.Code(rawValue: error["code"].string ?? "") != nil, comment, sourceLocation: sourceLocation)
    }
    #expect((header("Allow") != nil) == (status == 405), comment, sourceLocation: sourceLocation)
    #expect((header("WWW-Authenticate") != nil) == (status == 401), comment, sourceLocation: sourceLocation)
    for inside in ["SELECT", "INSERT", "SQLSTATE", ".swift", "/Sources/", "Error("] {
      #expect(!body.contains(inside), comment, sourceLocation: sourceLocation)
    }
  }
}

extension String {
  fileprivate func repeated(_ count: Int) -> String { String(repeating: self, count: count) }
}
