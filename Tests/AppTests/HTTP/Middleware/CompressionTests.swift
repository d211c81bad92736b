import AsyncHTTPClient
import Foundation
import HTTPServer
import NIOCore
import NIOHTTP1
import Testing
import TestSupport

@testable import App

@Suite struct CompressionTests {
  /// A response whose body is not decoded.
  private struct Raw {
    let status: Int
    let headers: HTTPHeaders
    let bytes: ByteBuffer

    func header(_ name: String) -> String? { headers.first(name: name) }
    var isPacked: Bool { header("Content-Encoding") == "gzip" }
    var text: String { String(buffer: bytes) }

    /// The body, decoded by the gzip program.
    func unpacked() async throws -> String {
      let file = "/tmp/muster-packed-\(UUID().uuidString).gz"
      defer { try? FileManager.default.removeItem(atPath: file) }
      try Data(bytes.readableBytesView).write(to: URL(filePath: file))
      let program = try await Program("/usr/bin/env", ["gzip", "-dc", file])
      #expect(try await program.exitStatus() == 0, "\(program.standardError)")
      return program.standardOutput
    }
  }

  /// Runs `body` with a client that does not decode what it receives.
  private func run(_ body: @escaping @Sendable (TestApp) async throws -> Void) async throws {
    try await TestApp.run { app in
      try await app.withConnections(4) { try await body(app) }
    }
  }

  private func send(
    _ path: String, method: String = "GET", body: String? = nil, accept: String? = "gzip",
    headers: [(String, String)] = [], by phone: Phone
  ) async throws -> Raw {
    var request = HTTPClientRequest(url: path.hasPrefix("/") ? phone.app.url + path : "\(phone.app.url)/api/v1/\(path)")
    request.method = .RAW(value: method)
    request.headers.add(name: "Authorization", value: "Bearer \(phone.accessToken)")
    if let accept { request.headers.add(name: "Accept-Encoding", value: accept) }
    if let body {
      request.headers.add(name: "Content-Type", value: "application/json")
      request.body = .bytes(ByteBuffer(string: body))
    }
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    let response = try await TestApp.client.execute(request, timeout: .seconds(60))
    return Raw(
      status: Int(response.status.code), headers: response.headers,
      bytes: try await response.body.collect(upTo: 16 << 20))
  }

  private static func draft(_ title: String = "Picnic") -> String {
    let note = (1...60).map { "Bring \($0) blankets." }.joined(separator: " ")
    return #"{"title": "\#(title)", "note": "\#(note)", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC"}"#
  }

  @Test func `a long response is compressed for a client that takes gzip, and is otherwise the same`() async throws {
    try await run { app in
      let ana = try await app.signUp("ana")
      for number in 1...3 { _ = try await ana.send("POST", "events", Self.draft("\(number)")) }
      for path in ["events", "/openapi.yaml", "/openapi.json"] {
        let plain = try await send(path, accept: nil, by: ana)
        let packed = try await send(path, by: ana)
        #expect(!plain.isPacked && packed.isPacked)
        #expect(packed.bytes.readableBytes < plain.bytes.readableBytes / 2)
        #expect(try await packed.unpacked() == plain.text)
        // The client above decodes nothing, so that this is the length on the wire.
        #expect(packed.header("Content-Length") == "\(packed.bytes.readableBytes)")
        for response in [plain, packed] {
          #expect(response.header("Vary") == "Accept-Encoding")
          #expect(response.header("Content-Type") == plain.header("Content-Type"))
        }
        let head = try await send(path, method: "HEAD", by: ana)
        #expect(head.bytes.readableBytes == 0)
        for name in ["Content-Encoding", "Content-Length", "ETag", "Vary"] {
          #expect(head.header(name) == packed.header(name), "\(name)")
        }
      }
      let fields = (1...40).map { _ in #""x""# }.joined(separator: ",")
      let problem = try await send("events", method: "POST", body: #"{"inviteeIds": [\#(fields)]}"#, by: ana)
      #expect(problem.status == 422 && problem.isPacked)
      #expect(try await problem.unpacked().contains("inviteeIds[39]"))
    }
  }

  @Test func `short responses, secrets, streams, exports and pictures are not compressed`() async throws {
    try await run { app in
      let ana = try await app.signUp("ana")
      _ = try await ana.send("POST", "events", Self.draft())
      for _ in 0..<10 { _ = try await ana.signInAgain(device: String(repeating: "phone ", count: 10)) }
      let url = try await ana.show(Sample.png(length: 4096))
      for path in [
        "users/me", "auth/sessions", "users/me/export", String(url.dropFirst(app.url.count)), "/health/live",
      ] {
        let response = try await send(path, by: ana)
        #expect(response.status == 200 && !response.isPacked, "\(path)")
        #expect(response.header("Vary") == nil, "\(path)")
      }
      #expect(try await send("auth/sessions", by: ana).bytes.readableBytes > 1024)
      let stream = try await ana.send("GET", "notifications/stream", headers: [("Accept-Encoding", "gzip")])
      #expect(stream.header("Content-Type") == "text/event-stream" && stream.header("Content-Encoding") == nil)
    }
  }

  @Test func `the tag of a compressed list gets 304, and that of a compressed event is its version`() async throws {
    try await run { app in
      let ana = try await app.signUp("ana")
      let created = try await send("events", method: "POST", body: Self.draft(), by: ana)
      #expect(created.isPacked && created.header("ETag") == "\"1-gzip\"")
      let id = try JSON(parsing: try await created.unpacked().utf8)["id"].string ?? ""

      let (plain, packed) = (try await send("events", accept: nil, by: ana), try await send("events", by: ana))
      let tags = [try #require(plain.header("ETag")), try #require(packed.header("ETag"))]
      #expect(tags[1] == tags[0].dropLast() + "-gzip\"")
      for tag in tags {
        for accept in [nil, "gzip"] {
          for sent in [tag, "W/\(tag)", "\"1\", \(tag)"] {
            let unchanged = try await send("events", accept: accept, headers: [("If-None-Match", sent)], by: ana)
            #expect(unchanged.status == 304 && !unchanged.isPacked, "\(sent)")
            #expect(unchanged.header("ETag") == tag && unchanged.header("Vary") == "Accept-Encoding")
          }
        }
      }
      for (tag, status) in [("1-gzip", 200), ("1-gzip", 412), ("1", 412), ("2-gzip", 200), ("3", 200)] {
        let edit = try await send(
          "events/\(id)", method: "PATCH", body: #"{"title": "\#(UUID())"}"#, headers: [("If-Match", "\"\(tag)\"")],
          by: ana)
        #expect(edit.status == status, "\(tag)")
      }
      let changed = try await send("events", headers: [("If-None-Match", tags.joined(separator: ", "))], by: ana)
      #expect(changed.status == 200)
    }
  }

  @Test func `a repeated request gets the first response in the form that it takes`() async throws {
    try await run { app in
      let ana = try await app.signUp("ana")
      let key = [("Idempotency-Key", "one")]
      let first = try await send("events", method: "POST", body: Self.draft(), accept: nil, headers: key, by: ana)
      let second = try await send("events", method: "POST", body: Self.draft(), headers: key, by: ana)
      #expect(first.status == 201 && !first.isPacked && first.header("ETag") == "\"1\"")
      #expect(second.status == 201 && second.isPacked && second.header("ETag") == "\"1-gzip\"")
      #expect(second.header("Idempotent-Replayed") == "true")
      #expect(try await second.unpacked() == first.text)
    }
  }

  private func request(_ accept: String) -> Request {
    let head = HTTPRequest(
      method: .get, scheme: nil, authority: nil, path: "/api/v1/events", headerFields: [.acceptEncoding: accept])
    return Request(head: head, body: RequestBody(ByteBuffer()))
  }

  @Test(
    arguments: [
      ("gzip", true), ("GZIP", true), ("x-gzip", true), ("*", true), ("br, gzip;q=0.5", true),
      ("gzip, deflate, br", true), ("gzip;q=0.001", true), ("gzip ; q=1.000", true), ("br;q=1.0,*;q=0.5", true),
      ("identity;q=0.5, gzip;q=0.5", true), ("identity;q=0, gzip;q=0.1", true),
      ("", false), ("identity", false), ("br", false), ("gzip;q=0", false), ("gzip;q=0.000", false), ("*;q=0", false),
      ("gzip;q=0, *", false), ("identity, gzip;q=0.5", false), ("gzip;q=2", false), ("gzip;q=nan", false),
      ("gzip;q=", false), (",;,", false), ("gzipped", false),
    ])
  func `Accept-Encoding decides`(accept: String, isTaken: Bool) {
    #expect(request(accept).takesGzip == isTaken)
  }

  @Test func `texts from 1 KiB to 1 MiB are compressed`() async throws {
    func isPacked(_ length: Int, _ type: String = "application/json; charset=utf-8") async throws -> Bool {
      let body = ResponseBody(ByteBuffer(repeating: 0x61, count: length))
      let response = Response(status: .ok, headers: [.contentType: type], body: body)
      return try await Compression.apply(to: response, for: request("gzip")).headers[.contentEncoding] != nil
    }
    #expect(try await !isPacked(1023))
    #expect(try await isPacked(1024))
    #expect(try await isPacked(1 << 20))
    #expect(try await !isPacked(1 << 20 + 1))
    #expect(try await isPacked(2000, "text/html"))
    #expect(try await !isPacked(2000, "image/png"))
  }
}
