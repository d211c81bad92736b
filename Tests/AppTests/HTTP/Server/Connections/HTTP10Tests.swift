import Foundation
import Testing

@testable import App

/// Clients of HTTP/1.0, which know no chunks, no interim responses, and no connections that stay open by themselves.
@Suite struct HTTP10Tests {
  private func head(_ method: String, _ path: String, _ phone: Phone, _ headers: String = "") -> String {
    "\(method) /api/v1/\(path) HTTP/1.0\r\nAuthorization: Bearer \(phone.accessToken)\r\n\(headers)\r\n"
  }

  /// Splits all bytes of a connection into the head, in lower case, and the body.
  private func parts(_ text: String) throws -> (head: String, body: String) {
    let end = try #require(text.firstRange(of: "\r\n\r\n"))
    return (text[..<end.lowerBound].lowercased(), String(text[end.upperBound...]))
  }

  @Test func `the end of the connection is the end of the export`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for headers in ["", "Host: test\r\n", "Connection: keep-alive\r\n"] {
        let connection = try await RawConnection(to: app)
        try await connection.send(head("GET", "users/me/export", ana, headers))
        let (head, body) = try parts(try await connection.rest())
        #expect(head.hasPrefix("http/1.0 200"))
        #expect(!head.contains("transfer-encoding") && !head.contains("content-length"))
        #expect(head.contains("\r\nconnection: close"))
        // Nothing but the document: no lengths of chunks in front, inside or behind.
        let document = try JSON(parsing: body.utf8)
        #expect(document["profile"]["username"].string == "ana")
      }
    }
  }

  @Test func `the stream has no chunks`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let connection = try await RawConnection(to: app)
      try await connection.send(head("GET", "notifications/stream", ana, "Connection: keep-alive\r\n"))
      let response = try await connection.response()
      #expect(response.status == 200 && response.header("Transfer-Encoding") == nil)
      #expect(response.header("Connection") == "close")
      try await ben.sendFriendRequest(to: ana)
      try await app.fanOut()
      #expect(try await ana.send("POST", "auth/logout").status == 204)
      // The stream ends with the session, and the connection with the stream.
      let events = try await connection.rest(within: 30)
      let lines = events.components(separatedBy: "\n").filter { !$0.isEmpty }
      #expect(events.contains("\"friend-request\""))
      for line in lines {
        #expect(line.hasPrefix(":") || line.contains(/^(id|event|data|retry): ?/), "\(line)")
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a connection stays open only if the client asks for it and hears that it does`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let kept = try await RawConnection(to: app)
      for path in ["users/me", "friends", "nothing"] {
        try await kept.send(head("GET", path, ana, "Connection: Keep-Alive\r\n"))
        let response = try await kept.response()
        #expect(response.status == (path == "nothing" ? 404 : 200))
        #expect(response.header("Connection") == "keep-alive" && response.header("Content-Length") != nil)
      }
      let tag = try #require(try await ana.send("GET", "friends").header("ETag"))
      try await kept.send(head("GET", "friends", ana, "Connection: keep-alive\r\nIf-None-Match: \(tag)\r\n"))
      let unchanged = try await kept.response()
      #expect(unchanged.status == 304 && unchanged.header("Connection") == "keep-alive")
      try await kept.send(head("GET", "friends", ana))
      #expect(try await kept.response().header("Connection") == "close")
      #expect(try await kept.rest().isEmpty)
      // A client of HTTP/1.1 needs no such header.
      let new = try await RawConnection(to: app)
      try await new.send("GET /health/live HTTP/1.1\r\nHost: test\r\n\r\n")
      #expect(try await new.response().header("Connection") == nil)
    }
  }

  @Test func `an expectation is ignored, and a request in chunks is refused`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let connection = try await RawConnection(to: app)
      let body = #"{"displayName": "Ana"}"#
      let length = "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n"
      try await connection.send(head("PATCH", "users/me", ana, length + "Expect: 100-continue\r\n"))
      try await connection.send(body)
      #expect(try await connection.rest().hasPrefix("HTTP/1.1 200"))
      let chunked = try await RawConnection(to: app)
      try await chunked.send(
        head("PATCH", "users/me", ana, "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n") + "0\r\n\r\n"
          + head("GET", "users/me", ana))
      let refused = try await chunked.response(to: "PATCH")
      #expect(refused.status == 400 && refused.problem == "malformed-request")
      #expect(try await chunked.rest().isEmpty)
    }
  }
}
