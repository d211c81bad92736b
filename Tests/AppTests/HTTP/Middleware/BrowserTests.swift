import Foundation
import Testing

@testable import App

/// Headers that tell browsers who may read a response, and what it may do.
@Suite struct BrowserTests {
  private static let page = "https://app.example.com"
  private static let origins = ["MUSTER_CORS_ORIGINS": "http://localhost:3000, \(page)"]

  private func preflight(_ app: TestApp, _ path: String, _ origin: String, _ method: String = "POST") async throws
    -> APIResponse
  {
    try await app.send(
      "OPTIONS", path,
      headers: [
        ("Origin", origin), ("Access-Control-Request-Method", method),
        ("Access-Control-Request-Headers", "authorization,content-type"),
      ])
  }

  // MARK: Origins

  @Test func `a preflight request from an allowed origin gets the methods of the path`() async throws {
    try await TestApp.run(Self.origins) { app in
      for (path, methods) in [
        ("events", "GET, HEAD, POST"), ("users/me", "DELETE, GET, HEAD, PATCH"), ("auth/login", "POST"),
        ("/health/live", "GET, HEAD"),
      ] {
        let response = try await preflight(app, path, Self.page)
        #expect(response.status == 204 && response.body.isEmpty)
        #expect(response.header("Access-Control-Allow-Origin") == Self.page)
        #expect(response.header("Access-Control-Allow-Methods") == methods)
        #expect(response.header("Vary") == "Origin")
        #expect(response.header("Access-Control-Max-Age") == "7200")
        let allowed = try #require(response.header("Access-Control-Allow-Headers")).lowercased()
        for name in ["authorization", "content-type", "idempotency-key", "if-match", "if-none-match", "traceparent"] {
          #expect(allowed.contains(name), "\(name)")
        }
      }
      #expect(try await preflight(app, "nowhere", Self.page).problem == "route-not-found")
    }
  }

  @Test func `a page may read the responses to its own requests, including those that refuse it`() async throws {
    try await TestApp.run(Self.origins) { app in
      let ana = try await app.signUp("ana")
      for origin in [Self.page, "http://localhost:3000"] {
        let response = try await ana.send("GET", "events", headers: [("Origin", origin)])
        #expect(response.status == 200)
        #expect(response.header("Access-Control-Allow-Origin") == origin)
        #expect(response.header("Vary") == "Origin")
        let exposed = try #require(response.header("Access-Control-Expose-Headers"))
        for name in ["ETag", "Idempotent-Replayed", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id"] {
          #expect(exposed.split(separator: ", ").contains(Substring(name)), "\(name)")
        }
        #expect(response.header("Access-Control-Allow-Credentials") == nil)
        let refused = try await app.send("GET", "events", headers: [("Origin", origin)])
        #expect(refused.status == 401)
        #expect(refused.header("Access-Control-Allow-Origin") == origin)
      }
    }
  }

  @Test func `other origins, and all of them by default, get no permission`() async throws {
    for (environment, vary) in [(Self.origins, "Origin"), ([:], nil)] as [([String: String], String?)] {
      try await TestApp.run(environment) { app in
        for origin in [
          "https://evil.example", "https://app.example.com.evil.example", "http://app.example.com", "null",
          "https://app.example.com:8443", "HTTPS://APP.EXAMPLE.COM", "",
        ] {
          let refused = try await preflight(app, "events", origin)
          #expect(refused.problem == "method-not-allowed", "\(origin)")
          let response = try await app.send("GET", "/health/live", headers: [("Origin", origin)])
          #expect(response.status == 200)
          for response in [refused, response] {
            #expect(response.headers.allSatisfy { !$0.name.lowercased().hasPrefix("access-control-") }, "\(origin)")
            #expect(response.header("Vary") == vary)
          }
        }
        // Not every request with OPTIONS is a preflight request.
        #expect(try await app.send("OPTIONS", "events", headers: [("Origin", Self.page)]).status == 405)
      }
    }
  }

  @Test func `an asterisk allows every origin, still without credentials`() async throws {
    try await TestApp.run(["MUSTER_CORS_ORIGINS": "*"]) { app in
      let response = try await app.send("GET", "/health/live", headers: [("Origin", "https://anywhere.example")])
      #expect(response.header("Access-Control-Allow-Origin") == "*")
      #expect(response.header("Access-Control-Allow-Credentials") == nil)
      #expect(response.header("Vary") == nil)
      // A cache may keep a picture that an image view has requested, and give it to a page.
      #expect(try await app.send("GET", "/health/live").header("Access-Control-Allow-Origin") == "*")
      #expect(try await preflight(app, "events", "null").status == 204)
    }
  }

  @Test(arguments: [
    "https://app.example.com/", "app.example.com", "https://", "https://app.example.com/path", "https://*.example.com/",
    "https://App.example.com", "https://app.example.com:443", "http://localhost:80", "null", "https://a.example,*", ",",
    "https://user@app.example.com", "https://app.example.com?x", "https://app.example.com#x", "https://ü.example",
  ])
  func `an origin that no browser sends is refused`(text: String) {
    #expect(CORS(text) == nil)
  }

  @Test(arguments: [
    "*", "https://app.example.com", "http://localhost:3000", "https://a.example,https://b.example:8443",
    "capacitor://localhost",
  ])
  func `origins as browsers send them are accepted`(text: String) {
    #expect(CORS(text) != nil)
  }

  // MARK: Headers

  @Test func `every response tells browsers that it is nothing but data`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let picture = try #require(URL(string: try await ana.show(Sample.png())))
      let tag = try #require(try await ana.send("GET", "events").header("ETag"))
      let responses = [
        try await ana.send("GET", "events"), try await ana.send("HEAD", "events"),
        try await ana.send("GET", "events", headers: [("If-None-Match", tag)]),
        try await app.send("GET", "events"), try await app.send("GET", "nowhere"), try await app.send("PUT", "events"),
        try await app.send("GET", "/health/live"), try await app.send("GET", "/openapi.yaml"),
        try await app.sendRaw("GET", picture.path), try await ana.send("GET", "notifications/stream"),
        // Refused before it reaches a route.
        try await app.sendRaw("GET", "/health/live", headers: [("Host", "again")]),
      ]
      #expect(responses.map(\.status) == [200, 200, 304, 401, 404, 405, 200, 200, 200, 200, 400])
      for (place, response) in responses.enumerated() {
        func values(_ name: String) -> [String] {
          response.headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        }
        #expect(values("X-Content-Type-Options") == ["nosniff"], "\(response.status)")
        #expect(values("Referrer-Policy") == ["no-referrer"], "\(response.status)")
        // A picture has a policy of its own.
        let policy = place == 8 ? "default-src 'none'; sandbox" : "default-src 'none'; frame-ancestors 'none'"
        #expect(values("Content-Security-Policy") == [policy], "\(response.status)")
        #expect(response.header("Strict-Transport-Security") == nil, "the service's URL is not https")
      }
    }
  }

  @Test func `a service with an https URL tells browsers to stay with https`() async throws {
    try await TestApp.run(["MUSTER_PUBLIC_URL": "https://api.example.com"]) { app in
      for path in ["/health/live", "nowhere"] {
        let response = try await app.send("GET", path)
        #expect(response.header("Strict-Transport-Security") == "max-age=31536000")
      }
    }
  }
}
