import HTTPServer
import Testing
import TestSupport

@testable import App

/// How many pictures are uploaded at once, and for how long.
@Suite struct PictureUploadTests {
  private func head(_ phone: Phone, length: Int) -> String {
    """
    PUT /api/v1/users/me/picture HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer \(phone.accessToken)\r
    Content-Length: \(length)\r\n\r\n
    """
  }

  private func beginUpload(of file: [UInt8], by phone: Phone, in app: TestApp) async throws -> RawConnection {
    let connection = try await RawConnection(to: app)
    try await connection.send(head(phone, length: file.count))
    try await connection.send(Array(file.prefix(10)))
    return connection
  }

  @Test func `a user uploads one picture at a time, and does not block other users`() async throws {
    try await TestApp.run { app in
      let (ana, ben) = (try await app.signUp("ana"), try await app.signUp("ben"))
      let file = Sample.png()
      var first = try await beginUpload(of: file, by: ana, in: app)
      // The first upload has its place once another one is refused.
      try await eventually(within: .seconds(60)) {
        let other = try await app.sendRaw("PUT", "/api/v1/users/me/picture", body: file, token: ana.accessToken)
        guard other.status == 429 else {
          // The other one was faster, and the first was refused.
          first = try await beginUpload(of: file, by: ana, in: app)
          return false
        }
        #expect(other.problem == "upload-in-progress")
        #expect(other.header("Retry-After") == "2")
        return true
      }
      _ = try await ben.show(file)
      // A request without a picture needs no place.
      try await ana.removePicture()
      try await first.send(Array(file.dropFirst(10)))
      #expect(try await first.response(to: "PUT").status == 200)
      _ = try await ana.show(Sample.png(1))
    }
  }

  @Test func `a broken connection gives its place back`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let file = Sample.png()
      var first: RawConnection? = try await beginUpload(of: file, by: ana, in: app)
      try await eventually(within: .seconds(60)) {
        let other = try await app.sendRaw("PUT", "/api/v1/users/me/picture", body: file, token: ana.accessToken)
        if other.status != 429 { first = try await beginUpload(of: file, by: ana, in: app) }
        return other.status == 429
      }
      #expect(first != nil)
      first = nil
      try await eventually(within: .seconds(60)) {
        try await app.sendRaw("PUT", "/api/v1/users/me/picture", body: file, token: ana.accessToken).status == 200
      }
    }
  }

  @Test func `an upload that takes too long is cut off, however steadily it arrives`() async throws {
    try await TestApp.run(limits: .with { $0.connections.uploadSeconds = 1 }) { app in
      let ana = try await app.signUp("ana")
      let connection = try await RawConnection(to: app)
      try await connection.send(head(ana, length: 2_000_000))
      // Many times as fast as the minimum rate of a body.
      let piece = String(repeating: "x", count: 2000)
      async let sent = connection.send(piece, times: 1000, pause: 0.02)
      let text = try await connection.rest(within: 15)
      #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 4"), "\(text)")
      #expect(try await sent < 1000)
      _ = try await ana.show(Sample.png())
    }
  }

  @Test func `only the body of a picture upload may be larger than other bodies`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let body = [UInt8](repeating: 0x20, count: 65_537)
      for (method, path) in [("DELETE", "/api/v1/users/me/picture"), ("PUT", "/api/v1/devices")] {
        let response = try await app.sendRaw(method, path, body: body, token: ana.accessToken)
        #expect(response.status == 413 && response.problem == "body-too-large", "\(method) \(path): \(response.body)")
      }
      // Nor does the route read it before it knows who sends it.
      let stranger = try await app.sendRaw("PUT", "/api/v1/users/me/picture", body: body, token: "garbage")
      #expect(stranger.status == 401)
    }
  }
}
