import Foundation
import HTTPServer
import Postgres
import Testing
import TestSupport

@testable import App

/// Every route with all kinds of bad input. The calls follow from ``Act/table``.
@Suite struct BadInputTests {
  private typealias Scene = BadInputScene

  @Test func `every route is in the table, and its valid requests succeed`() async throws {
    try await Scene.play { scene in
      #expect(
        scene.app.routes.symmetricDifference(scene.calls.map { "\($0.method) \($0.template)" })
          == Set(Scene.forms.map { "POST \($0)" }))
      #expect(Set(WrongBodies.table.keys).subtracting(scene.calls.map(\.act.name)) == [])
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
    try await Scene.each(\.takesJSON) { scene, call in
      for body in malformed {
        try await scene.send(call, body: body)
          .expectProblem(400, "malformed-body", "\(call) with \(body.prefix(80))")
      }
      let notUTF8 = try await scene.app.sendRaw(
        call.method, call.path, body: Array(#"{"a": ""#.utf8) + [0xc3, 0x28] + Array(#""}"#.utf8), token: call.token)
      notUTF8.expectProblem(400, "malformed-body", "\(call) with bytes that are not UTF-8")
      if call.bodyIsOptional { return }
      try await scene.app.send(call.method, call.path, token: call.token)
        .expectProblem(400, "malformed-body", "\(call) without a body")
    }
  }

  @Test func `every field that breaks a rule is named`() async throws {
    try await Scene.each { scene, call in
      #expect(!call.takesJSON || !call.wrong.isEmpty, "\(call)")
      for (body, fields) in call.wrong {
        let response = try await scene.send(call, body: body)
        response.expectProblem(422, "invalid-fields", "\(call) with \(body)")
        #expect(Set(response.badFields) == fields, "\(call) with \(body)")
      }
    }
  }

  @Test func `text that almost matches a rule is refused quickly`() async throws {
    let texts = [
      "a".repeated(16) + "!", "Europe/" + "a".repeated(16) + "!", "a-".repeated(9) + "!", "a_a".repeated(6) + "/",
      "a@" + ".".repeated(60) + "@", "a@" + "a.".repeated(60) + " ",
    ]
    let fields = ["username", "email", "login", "refreshToken", "startTime", "timeZone", "title", "status"]
    try await Scene.each(\.takesJSON) { scene, call in
      for text in texts {
        let start = ContinuousClock.now
        _ = try await scene.send(call, body: json(fields.map { ($0, text) }))
        #expect(ContinuousClock.now - start < .seconds(2), "\(call) with \(text)")
      }
    }
  }

  @Test func `a body of more than 64 KiB is refused, with or without a Content-Length`() async throws {
    try await Scene.each(\.takesJSON) { scene, call in
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

  @Test func `a body of 64 KiB is accepted`() async throws {
    try await Scene.play { scene in
      let login = try scene.call("login")
      let body = try #require(login.body)
      let response = try await scene.send(login, body: body + " ".repeated(65_536 - body.utf8.count))
      #expect(response.status == 200, "\(response.body)")
    }
  }

  @Test func `the content type of a body, if any, must be JSON`() async throws {
    let foreign = [
      "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", "*/*", "",
    ]
    let ours = [
      "application/json", "Application/JSON; charset=utf-8", "application/json;charset=UTF-8",
      "application/merge-patch+json",
    ]
    try await Scene.play { scene in
      for call in scene.calls where call.takesJSON {
        for type in foreign {
          try await scene.send(call, headers: [("Content-Type", type)])
            .expectProblem(415, "unsupported-media-type", "\(call) as \(type)")
        }
      }
      let login = try scene.call("login")
      for type in ours {
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
      let picture = try scene.call("putPicture")
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
      let login = try scene.call("login")
      for (name, value) in [("Content-Encoding", "identity"), ("Content-Type", "application/json; charset=us-ascii")] {
        #expect(try await scene.send(login, headers: [(name, value)]).status == 200, "\(value)")
      }
    }
  }

  // MARK: Ids

  @Test func `unknown ids, malformed ids and ids of other users' things get the same response`() async throws {
    let malformed = [
      "x", "0", "null", "-1", "%20", "%00", "%ff", "%2e%2e", UUID().uuidString.lowercased() + "0", "a".repeated(2000),
    ]
    try await Scene.play { scene in
      let eve = try await scene.app.signUp("eve")
      for call in scene.calls where call.template.contains("{id}") {
        let unknown = try await scene.send(call, path: call.path(id: UUID().uuidString))
        #expect(unknown.problem?.hasSuffix("-not-found") == true, "\(call)")
        unknown.expectProblem(404, unknown.problem ?? "", "\(call)")
        func expectTheSame(_ response: APIResponse, _ what: String) {
          let isTheSame = response.status == 404 && response.withoutRequestID == unknown.withoutRequestID
          #expect(isTheSame, "\(call) \(what): \(response.body)")
        }
        for id in [UUID().uuidString.lowercased(), User.ID.new().description] + malformed {
          let response = try await scene.app.sendRaw(
            call.method, call.path(id: id), body: call.body.map { Array($0.utf8) }, token: call.token)
          expectTheSame(response, "with \(id.prefix(80))")
        }
        if call.isForAll { continue }
        expectTheSame(try await scene.send(call, token: eve.accessToken), "by a stranger")
        expectTheSame(try await scene.send(call, path: call.path(id: scene.ana.id)), "with a user's id")
      }
    }
  }

  @Test func `a user who does not exist looks like a hidden one`() async throws {
    try await Scene.play { scene in
      let others = [UUID().uuidString, scene.event, scene.request]
      for (method, path) in [("DELETE", "friends"), ("PUT", "blocks"), ("DELETE", "blocks")] {
        for id in ["x", "null", "me", "%00"] {
          let response = try await scene.ana.send(method, "\(path)/\(id)")
          response.expectProblem(404, "user-not-found", "\(method) of \(path)/\(id)")
        }
        for id in others {
          let response = try await scene.ana.send(method, "\(path)/\(id)")
          #expect(response.status == (path == "blocks" ? 204 : 404), "\(method) of \(path)/\(id)")
        }
      }
      for receiver in others {
        let response = try await scene.ana.send("POST", "friend-requests", json([("receiverId", receiver)]))
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
    try await Scene.each({ $0.token != nil }) { scene, call in
      for header in [nil, "Basic YW5hOmhvcnNl", "Bearer", "Bearer ", "Token x", ""] {
        let response = try await scene.app.send(
          call.method, call.path, body: call.body, headers: header.map { [("Authorization", $0)] } ?? [])
        response.expectProblem(401, "no-token", "\(call) with \(header ?? "nothing")")
        #expect(response.header("WWW-Authenticate") == "Bearer", "\(call) with \(header ?? "nothing")")
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
    try await Scene.each({ $0.isList }) { scene, call in
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

  // MARK: Paths and methods

  @Test func `unknown paths are not found`() async throws {
    let paths = [
      "/", "//", "/api", "/api/v1", "/api/v2/friends", "/api/v1/nope", "/API/v1/friends", "/api/v1/friends/x/y", "/%00",
      "/api/v1/%ff", "/api/v1/%zz", "/api/v1/..", "/etc/passwd", "/api/v1/../../etc/passwd", "/api/v1/{id}", "*",
      "/" + "a".repeated(8000), "/?" + "a=b&".repeated(2000),
    ]
    try await Scene.play { scene in
      for path in paths {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
          try await scene.app.sendRaw(method, path, token: scene.ana.accessToken)
            .expectProblem(404, "route-not-found", "\(method) \(path.prefix(80))")
        }
      }
    }
  }

  @Test func `a wrong method is refused, and the response names the allowed ones`() async throws {
    try await Scene.each { scene, call in
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

  @Test func `HEAD gets the response of GET, without the body`() async throws {
    try await Scene.each({ $0.method == "GET" }) { scene, call in
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
      if responses[1].header("Transfer-Encoding") == "chunked" { return }
      #expect(responses[0].header("Content-Length") == responses[1].header("Content-Length"), "\(call)")
      // A picture is no text, so that its bytes cannot be counted in one.
      if responses[1].header("Content-Type")?.hasPrefix("image/") == true { return }
      #expect(responses[1].body.utf8.count == responses[1].header("Content-Length").flatMap { Int($0) }, "\(call)")
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
    let valid = ["a", "0", "abc-DEF_1.2", UUID().uuidString, "a".repeated(128)]
    let invalid = ["a".repeated(129), "a b", "a/b", "<script>", "a\"b", "a,b", "é", "{}", "a".repeated(5000), ""]
    try await Scene.play { scene in
      for call in scene.calls {
        for token in [call.token, "garbage"] {
          let response = try await scene.send(call, token: token)
          #expect(response.header("X-Request-Id")?.wholeMatch(of: /[A-Za-z0-9._-]{1,128}/) != nil, "\(call)")
        }
      }
      for path in ["/health/live", "/nope", "/api/v1/friends?limit=0", "/api/v1/users/me"] {
        for id in valid {
          let response = try await scene.app.send(
            "GET", path, headers: [("X-Request-Id", id)], token: scene.ana.accessToken)
          #expect(response.header("X-Request-Id") == id, "\(path)")
          if response.status >= 400 { #expect(response.json["requestId"].string == id, "\(path)") }
        }
        for id in invalid {
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
  func repeated(_ count: Int) -> String { String(repeating: self, count: count) }
}
