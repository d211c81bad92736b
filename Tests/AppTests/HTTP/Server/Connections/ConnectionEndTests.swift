import Foundation
import HTTPServer
import Logging
import NIOCore
import Synchronization
import Testing

@testable import App

/// How a connection ends: after everything that the client must get, and before anything that gets no response.
@Suite struct ConnectionEndTests {
  /// More than the system's buffers hold for a client with a small one.
  private static let length = 4 << 20
  private let body = ByteBuffer(repeating: UInt8(ascii: "x"), count: length)

  /// - Returns: the number of bytes after the head.
  private func bodyLength(_ text: String) throws -> Int {
    text.utf8.count
      - text.utf8.distance(from: text.startIndex, to: try #require(text.firstRange(of: "\r\n\r\n")).upperBound)
  }

  @Test(arguments: ["HTTP/1.1\r\nHost: t\r\n", "HTTP/1.1\r\nHost: t\r\nConnection: close\r\n", "HTTP/1.0\r\n"])
  func `a client that has finished sending gets all of a large response, even if it reads late`(
    rest: String
  ) async throws {
    try await serving({ [body] request, _ in
      let pieces = ResponseBody(length: Self.length) { writer in
        var rest = body
        while let piece = rest.readSlice(length: min(rest.readableBytes, 1 << 20)), piece.readableBytes > 0 {
          try await writer.write(piece)
        }
        writer.finish()
      }
      return Response(status: .ok, body: request.uri.path == "/pieces" ? pieces : ResponseBody(body))
    }) { port in
      for path in ["/whole", "/pieces"] {
        let connection = try await RawConnection(port: port, receiveBuffer: 4096)
        try await connection.send("GET \(path) \(rest)\r\n")
        try await connection.finishSending()
        try await Task.sleep(for: .milliseconds(300))
        let text = try await connection.rest(within: 60)
        #expect(text.hasPrefix("HTTP/1.1 200 "))
        #expect(try bodyLength(text) == Self.length, "\(path)")
      }
    }
  }

  @Test func `no request is handled after a response that has announced the end of the connection`() async throws {
    let handled = Mutex<[String]>([])
    try await serving({ [body] request, _ in
      handled.withLock { $0.append(request.uri.path) }
      return Response(status: .forbidden, body: ResponseBody(body))
    }) { port in
      let connection = try await RawConnection(port: port, receiveBuffer: 4096)
      let rest = String(repeating: "x", count: 100_000)
      try await connection.send("POST /1 HTTP/1.1\r\nHost: t\r\nContent-Length: \(rest.utf8.count)\r\n\r\n")
      // The response comes before the body, and so slowly that more arrives before its end.
      try await connection.waitForSome()
      try await connection.send(rest + "POST /2 HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n")
      let text = try await connection.rest(within: 60, pause: 0.001)
      #expect(text.contains("\r\nconnection: close\r\n"))
      #expect(try bodyLength(text) == Self.length)
      #expect(handled.withLock { $0 } == ["/1"])
    }
  }

  @Test func `no request is handled behind a body that ends with the connection`() async throws {
    let handled = Mutex<[String]>([])
    try await serving({ [body] request, _ in
      handled.withLock { $0.append(request.uri.path) }
      return Response(
        status: .ok,
        body: ResponseBody { writer in
          try await writer.write(body)
          writer.finish()
        })
    }) { port in
      let connection = try await RawConnection(port: port, receiveBuffer: 4096)
      try await connection.send(["/1", "/2"].map { "GET \($0) HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" }.joined())
      #expect(try bodyLength(try await connection.rest(within: 60, pause: 0.001)) == Self.length)
      #expect(handled.withLock { $0 } == ["/1"])
    }
  }

  @Test func `a response during a shutdown announces the end of the connection`() async throws {
    let (began, mayRespond) = (AsyncStream.makeStream(of: Void.self), AsyncStream.makeStream(of: Void.self))
    let connections = Mutex<[RawConnection]>([])
    try await serving({ _, _ in
      began.continuation.finish()
      for await _ in mayRespond.stream {}
      return Response(status: .ok)
    }) { port in
      let connection = try await RawConnection(port: port)
      try await connection.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n")
      for await _ in began.stream {}
      connections.withLock { $0 = [connection] }
      Task {
        // The server stops as soon as this closure returns.
        try await Task.sleep(for: .milliseconds(300))
        mayRespond.continuation.finish()
      }
    }
    let text = try await #require(connections.withLock { $0.first }).rest()
    #expect(text.hasPrefix("HTTP/1.1 200 ") && text.contains("\r\nconnection: close\r\n"), "\(text)")
  }

  @Test func `HEAD of a body without a known length has no length, and the connection stays in step`() async throws {
    try await serving({ request, _ in
      let response = Response(
        status: .ok,
        body: ResponseBody { writer in
          try await writer.write(ByteBuffer(string: "text"))
          writer.finish()
        })
      return request.method == .head ? response.withoutBody : response
    }) { port in
      for version in ["HTTP/1.1\r\nHost: t", "HTTP/1.0\r\nConnection: keep-alive"] {
        let connection = try await RawConnection(port: port)
        for _ in 1...2 {
          try await connection.send("HEAD / \(version)\r\n\r\n")
          let head = try await connection.response(to: "HEAD")
          #expect(head.status == 200 && head.header("Content-Length") == nil, "\(version)")
        }
        try await connection.send("GET / \(version)\r\n\r\n")
        if version.hasPrefix("HTTP/1.1") {
          #expect(try await connection.response().body == "text")
        } else {
          #expect(try await connection.rest().hasSuffix("\r\n\r\ntext"))
        }
      }
    }
  }
}
