import Foundation
import HTTPServer
import Postgres
import Testing
import Yams

@testable import App

/// The router and the published document must agree, in both directions.
@Suite struct OpenAPITests {
  private func document() throws -> [String: Any] {
    try #require(try Yams.load(yaml: Resources.openAPI) as? [String: Any])
  }

  @Test func `every route is in the document, and nothing else`() async throws {
    try await TestApp.run { app in
      let served = app.routes
      let paths = try #require(try document()["paths"] as? [String: [String: Any]])
      let methods: Set = ["get", "put", "post", "delete", "patch", "head", "options"]
      var described: Set<String> = []
      for (path, item) in paths {
        for key in item.keys where methods.contains(key) { described.insert("\(key.uppercased()) \(path)") }
      }
      #expect(served.subtracting(described).sorted() == [], "not in the document")
      #expect(described.subtracting(served).sorted() == [], "not served")
    }
  }

  @Test func `no operation of the API accepts a query parameter that it does not have`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for route in app.routes.sorted() {
        let parts = route.split(separator: " ")
        guard parts[1].hasPrefix("/api/v1/") else { continue }
        let path = parts[1].dropFirst("/api/v1/".count).replacing("{userId}", with: ana.id)
          .replacing(/\{\w+\}/, with: Event.ID.new().description)
        let response = try await ana.send(String(parts[0]), "\(path)?surprise=1&limits=2", "{}")
        #expect(response.status == 422, "\(route): \(response.body)")
        let errors = response.json["errors"].array.filter { $0["code"].string == "unknown" }
        #expect(errors.map { $0["field"].string } == ["surprise", "limits"], "\(route): \(response.body)")
      }
      let repeated = try await ana.send("GET", "friends?limit=1&limit=1")
      #expect(repeated.badFields == ["limit"] && repeated.json["errors"][0]["code"].string == "repeated")
      // A hostile query gets a short answer.
      let hostile = try await ana.send("GET", "friends?" + (1...300).map { "a\($0)=1" }.joined(separator: "&"))
      #expect(hostile.badFields.count == 10)
      #expect(try await app.value("SELECT count(*) FROM users") == 1)
    }
  }

  @Test func `responses to signed-in users are kept from shared caches`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for path in ["users/me", "friends", "events?when=past", "users/\(ana.id)", "notifications"] {
        #expect(try await ana.send("GET", path).header("Cache-Control") == "private, no-cache", "\(path)")
      }
      let tag = try #require(try await ana.send("GET", "friends").header("ETag"))
      let unchanged = try await ana.send("GET", "friends", headers: [("If-None-Match", tag)])
      #expect(unchanged.status == 304 && unchanged.header("Cache-Control") == "private, no-cache")
      #expect(try await ana.send("GET", "users/me/export").header("Cache-Control") == "no-store")
    }
  }

  /// ``TestApp/send(_:_:body:headers:token:)`` checks every response of every test in this way.
  @Test func `a response that the document does not allow is found`() throws {
    let document = try #require(APIDocument.published)
    func faults(_ status: Int, _ body: String, _ method: String = "POST", _ path: String = "notifications/read")
      -> [String]
    {
      let type = status < 400 ? "application/json; charset=utf-8" : "application/problem+json"
      let response = APIResponse(status: status, headers: [("Content-Type", type)], body: body)
      return document.faults(in: response, to: method, "/api/v1/" + path)
    }
    #expect(faults(200, #"{"unread": 0}"#) == [])
    for body in [#"{"unread": -1}"#, #"{"unread": "0"}"#, "{}", #"{"unread": 0, "more": 1}"#, "[]", "null"] {
      #expect(faults(200, body) != [], "\(body)")
    }
    #expect(faults(201, #"{"unread": 0}"#) != [])
    let problem = #"{"type": "x", "title": "X", "status": 422, "detail": "X", "requestId": "x"}"#
    #expect(faults(422, problem) == [])
    #expect(faults(422, problem.replacing(#""title": "X", "#, with: "")) != [])
    let person =
      #"{"id": "01900000-0000-7000-8000-000000000002", "username": "a", "displayName": "A", "pictureUrl": null}"#
    func friends(_ stamp: String) -> String {
      #"{"items": [{"user": \#(person), "since": "2026-05-01T18:00:00Z"}], "nextCursor": null, "timestamp": \#(stamp)}"#
    }
    #expect(faults(200, friends("null"), "GET", "friends?limit=1") == [])
    #expect(faults(200, friends(#""2026-05-01T18:00:00.123456Z""#), "HEAD", "friends") == [])
    for stamp in ["5", #""2026-05-01T18:00:00Z""#, "{}"] {
      #expect(faults(200, friends(stamp), "GET", "friends") != [], "\(stamp)")
    }
    #expect(faults(200, friends("null").replacing("01900000", with: "x"), "GET", "friends") != [])
    // Members have an order, also those of a schema's parts.
    let swapped = friends("null").replacing(
      #""nextCursor": null, "timestamp": null"#, with: #""timestamp": null, "nextCursor": null"#)
    #expect(faults(200, swapped, "GET", "friends") == [".nextCursor is after .timestamp"])
    #expect(
      faults(422, #"{"title": "X", "type": "x", "status": 422, "detail": "X", "requestId": "x"}"#)
        == [".type is after .title"])
  }

  @Test func `a word that the document does not know is found, although other clients take it`() throws {
    let document = try #require(APIDocument.published)
    let example = #"""
      {"id": "01900000-0000-7000-8000-0000000000d1", "platform": "ios", "environment": null, "topic": null, "name": null,
       "localizes": false, "createdAt": "2026-05-01T18:00:00Z", "current": true}
      """#
    func faults(_ device: String) -> [String] {
      let list = #"{"items": [\#(device)], "nextCursor": null, "timestamp": null}"#
      let response = APIResponse(status: 200, headers: [("Content-Type", "application/json")], body: list)
      return document.faults(in: response, to: "GET", "/api/v1/devices")
    }
    #expect(faults(example) == [])
    #expect(faults(example.replacing("ios", with: "watch")) == [".items[0].platform is not in enum"])
    #expect(faults(example.replacing(#""environment": null"#, with: #""environment": "sandbox""#)) == [])
    #expect(faults(example.replacing(#""environment": null"#, with: #""environment": "both""#)) != [])
  }

  @Test func `the document marks the deprecated routes, and each stays for a year at least`() throws {
    let paths = try #require(try document()["paths"] as? [String: [String: Any]])
    var marked: Set<String> = []
    for (path, item) in paths {
      for (method, operation) in item where (operation as? [String: Any])?["deprecated"] as? Bool == true {
        marked.insert("\(method.uppercased()) \(path)")
      }
    }
    let routes = App.Operation.allCases.map(\.attributes)
    #expect(marked == Set(routes.filter { $0.deprecation != nil }.map { "\($0.method.rawValue) \($0.path)" }))
    for route in routes {
      guard let deprecation = route.deprecation else { continue }
      #expect(deprecation.sunset >= deprecation.since.adding(seconds: 365 * 86_400), "\(route.path)")
    }
  }

  @Test func `the document is served unchanged`() async throws {
    try await TestApp.run { app in
      let response = try await app.send("GET", "/openapi.yaml")
      #expect(response.status == 200)
      #expect(response.body == Resources.openAPI)
      #expect(response.header("Content-Type")?.hasPrefix("application/yaml") == true)
    }
  }

  @Test func `the document is also served as JSON`() async throws {
    try await TestApp.run { app in
      let response = try await app.send("GET", "/openapi.json")
      #expect(response.status == 200 && response.body == Resources.openAPIJSON)
      #expect(response.header("Content-Type")?.hasPrefix("application/json") == true)
      // The same values, for another parser.
      let yaml = try #require(try Yams.load(yaml: Resources.openAPI, Resolver.default.removing(.timestamp)))
      let json = try JSONSerialization.jsonObject(with: Data(response.body.utf8))
      let texts = try [yaml, json].map { try JSONSerialization.data(withJSONObject: $0, options: .sortedKeys) }
      #expect(texts[0] == texts[1] && texts[0].count > 300_000)
      // In the order of the document.
      #expect(response.body.hasPrefix(#"{"openapi": "3.1.0", "info": {"title": "Muster""#))
    }
  }

  @Test func `every operation has an id and responses, and says whether it needs a token`() async throws {
    try await TestApp.run { app in
      let document = try document()
      #expect(document["openapi"] as? String == "3.1.0")
      #expect((document["info"] as? [String: Any])?["version"] as? String == Release.version)
      let paths = try #require(document["paths"] as? [String: [String: Any]])
      var ids: [String] = []
      for (path, item) in paths {
        for (method, value) in item where method != "parameters" {
          let operation = try #require(value as? [String: Any], "\(method) \(path)")
          ids.append(try #require(operation["operationId"] as? String, "\(method) \(path)"))
          let responses = try #require(operation["responses"] as? [String: Any], "\(method) \(path)")
          let response = try await app.send(
            method.uppercased(), path.replacing(/\{\w+\}/, with: User.ID.new().description))
          let isOpen = response.problem != "no-token"
          // Signed-in operations inherit the document's requirement or state it; open ones lift it, or also allow none.
          let security = (operation["security"] ?? document["security"]) as? [[String: Any]] ?? []
          let allowsNone = security.isEmpty || security.contains { $0.isEmpty }
          #expect(allowsNone == isOpen, "\(method) \(path)")
          #expect(responses["401"] != nil || isOpen, "\(method) \(path)")
        }
      }
      #expect(Set(ids).count == ids.count)
    }
  }
}
