import Foundation
import Testing

@testable import App

/// How the server checks a request's head before a route sees it.
@Suite struct RequestHeadTests {
  private func responses(_ app: TestApp, _ text: String, _ count: Int = 1) async throws -> [APIResponse] {
    let connection = try await RawConnection(to: app)
    try await connection.send(text)
    var responses: [APIResponse] = []
    for _ in 0..<count { responses.append(try await connection.response()) }
    #expect(try await connection.rest().isEmpty, "\(text)")
    return responses
  }

  @Test func `a request without a host, or with two, is refused and ends the connection`() async throws {
    try await TestApp.run { app in
      for headers in [
        "", "Host: a\r\nHost: a\r\n", "Host: a\r\nhost: b\r\n", "Host: a\r\nX: y\r\nHOST:\r\n", "Hos: a\r\n",
        "Hosts: a\r\n",
      ] {
        for (start, body) in [
          ("GET /health/live HTTP/1.1\r\n", ""), ("POST /api/v1/auth/login HTTP/1.1\r\nContent-Length: 2\r\n", "{}"),
        ] {
          let request = start + headers + "\r\n" + body
          let response = try await responses(app, request + "GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n")[0]
          #expect(response.status == 400 && response.problem == "malformed-request", "\(request): \(response.body)")
          #expect(response.header("Content-Type") == "application/problem+json")
        }
      }
    }
  }

  @Test func `requests before a refused one get their responses first`() async throws {
    try await TestApp.run { app in
      let good = "GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n"
      let statuses = try await responses(app, good + good + "GET /health/live HTTP/1.1\r\n\r\n" + good, 3).map(\.status)
      #expect(statuses == [200, 200, 400])
    }
  }

  @Test func `HTTP/1.0 needs no host, and may have one`() async throws {
    try await TestApp.run { app in
      for (headers, status) in [("", 200), ("Host: a\r\n", 200), ("Host: a\r\nHost: b\r\n", 400)] {
        let response = try await responses(app, "GET /health/live HTTP/1.0\r\n\(headers)\r\n")[0]
        #expect(response.status == status, "\(headers)")
      }
    }
  }

  @Test func `a header that is not ASCII matches nothing`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try #require(try await ana.createEvent()["id"].string)
      let calls: [(method: String, path: String, header: (String, String), status: Int, slug: String?)] = [
        ("GET", "/api/v1/users/me", ("Authorization", "Bearer é"), 401, "no-token"),
        ("GET", "/api/v1/users/me", ("Authorization", "Bearer xéx"), 401, "invalid-token"),
        ("GET", "/api/v1/users/me", ("Authorization", "Béarer x"), 401, "no-token"),
        ("GET", "/api/v1/users/me", ("If-None-Match", "\"é\""), 200, nil),
        ("GET", "/api/v1/users/me", ("X-Request-Id", "é"), 200, nil),
        ("GET", "/api/v1/users/me", ("User-Agent", "Müster/1.0 (🍓)"), 200, nil),
        ("PATCH", "/api/v1/events/\(event)", ("If-Match", "\"é\""), 412, nil),
        ("PATCH", "/api/v1/events/\(event)", ("Content-Type", "application/jsön"), 415, "unsupported-media-type"),
      ]
      for (method, path, header, status, slug) in calls {
        let isAboutToken = header.0 == "Authorization"
        var headers = [header]
        if method == "PATCH", header.0 != "Content-Type" { headers.append(("Content-Type", "application/json")) }
        let response = try await app.sendRawHeaders(
          method, path, body: method == "PATCH" ? #"{"title": "Dinner"}"# : nil,
          headers: headers + (isAboutToken ? [] : [("Authorization", "Bearer \(ana.accessToken)")]))
        #expect(response.status == status, "\(header): \(response.body)")
        if let slug { #expect(response.problem == slug, "\(header)") }
      }
    }
  }
}

extension TestApp {
  /// Sends a request with these headers, and no others except Host, Connection and Content-Length.
  fileprivate func sendRawHeaders(
    _ method: String, _ path: String, body: String?, headers: [(String, String)]
  ) async throws -> APIResponse {
    let connection = try await RawConnection(to: self)
    var head = "\(method) \(path) HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if let body { head += "Content-Length: \(body.utf8.count)\r\n" }
    try await connection.send(head + "\r\n" + (body ?? ""))
    return try await connection.response(to: method)
  }
}
