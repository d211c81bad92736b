import Dispatch
import Foundation
import Synchronization

@testable import App

/// A TCP connection to the service that sends exactly the given bytes. Its blocking calls run on its own threads.
final class RawConnection: Sendable {
  enum Failure: Error { case connect(Int32), send(Int32), closed(String), timedOut(String) }

  private let socket: Int32
  private let received = Mutex<[UInt8]>([])
  private let sending = DispatchQueue(label: "raw connection: sending")
  private let receiving = DispatchQueue(label: "raw connection: receiving")

  /// - Parameter receiveBuffer: the approximate number of bytes that the system buffers for a client that does not
  ///   read.
  convenience init(to app: TestApp, receiveBuffer: Int32? = nil) async throws {
    try await self.init(port: URL(string: app.url)?.port ?? 0, receiveBuffer: receiveBuffer)
  }

  init(port: Int, receiveBuffer: Int32? = nil) async throws {
    socket = try await Self.run(on: receiving) { try Self.connect(UInt16(port), receiveBuffer) }
  }

  deinit { close(socket) }

  private static func run<Value: Sendable>(
    on queue: DispatchQueue, _ work: @escaping @Sendable () throws -> Value
  ) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result(catching: work)) }
    }
  }

  private static func connect(_ port: UInt16, _ receiveBuffer: Int32?) throws -> Int32 {
    #if canImport(Darwin)
      let socket = Foundation.socket(AF_INET, SOCK_STREAM, 0)
      set(SO_NOSIGPIPE, 1, on: socket)
    #else
      let socket = Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #endif
    // A program that another test starts at this moment must not keep the connection open.
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    if let receiveBuffer { set(SO_RCVBUF, receiveBuffer, on: socket) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(socket, $0, length) }
    }
    guard status == 0 else {
      let reason = errno
      close(socket)
      throw Failure.connect(reason)
    }
    return socket
  }

  private static func set(_ option: Int32, _ value: Int32, on socket: Int32) {
    var value = value
    setsockopt(socket, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  // MARK: Sending

  /// - Parameters:
  ///   - times: the number of repetitions. Ends earlier if the server closes the connection.
  ///   - pause: seconds to wait after each.
  /// - Returns: the number of times that the bytes were sent.
  @discardableResult
  func send(_ bytes: [UInt8], times: Int = 1, pause: Double = 0) async throws -> Int {
    try await Self.run(on: sending) { [self] in
      for time in 0..<times {
        do { try sendAll(bytes) } catch  where time > 0 { return time }
        Thread.sleep(forTimeInterval: pause)
      }
      return times
    }
  }

  @discardableResult
  func send(_ text: String, times: Int = 1, pause: Double = 0) async throws -> Int {
    try await send(Array(text.utf8), times: times, pause: pause)
  }

  private func sendAll(_ bytes: [UInt8]) throws {
    #if canImport(Darwin)
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    var start = 0
    while start < bytes.count {
      let count = bytes[start...].withUnsafeBytes { Foundation.send(socket, $0.baseAddress, $0.count, flags) }
      guard count >= 0 else { throw Failure.send(errno) }
      start += count
    }
  }

  /// Closes the sending side of the connection.
  func finishSending() async throws {
    try await Self.run(on: sending) { [socket] in _ = shutdown(socket, Int32(SHUT_WR)) }
  }

  // MARK: Receiving

  /// The next complete response.
  ///
  /// - Parameter method: the method of the request. Responses to HEAD have no body.
  func response(to method: String = "GET", within seconds: Double = 10) async throws -> APIResponse {
    try await Self.run(on: receiving) { [self] in
      let deadline = Date().addingTimeInterval(seconds)
      while true {
        if let response = received.withLock({ Self.takeResponse(from: &$0, to: method) }) { return response }
        guard try receive(upTo: 65_536, before: deadline) else { throw Failure.closed(buffered) }
      }
    }
  }

  /// All bytes until the server closes the connection.
  ///
  /// - Parameters:
  ///   - pause: seconds to wait after every 4 KiB.
  /// - Throws: `timedOut` if the server does not close it.
  func rest(within seconds: Double = 10, pause: Double = 0) async throws -> String {
    try await Self.run(on: receiving) { [self] in
      let deadline = Date().addingTimeInterval(seconds)
      while try receive(upTo: pause > 0 ? 4096 : 65_536, before: deadline) { Thread.sleep(forTimeInterval: pause) }
      defer { received.withLock { $0 = [] } }
      return buffered
    }
  }

  /// Waits for the first bytes, and reads only one of them.
  func waitForSome(within seconds: Double = 10) async throws {
    try await Self.run(on: receiving) { [self] in
      guard try receive(upTo: 1, before: Date().addingTimeInterval(seconds)) else { throw Failure.closed(buffered) }
    }
  }

  private var buffered: String { received.withLock { String(decoding: $0, as: UTF8.self) } }

  /// - Returns: false if the connection was closed first.
  private func receive(upTo limit: Int, before deadline: Date) throws -> Bool {
    var descriptor = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
    let milliseconds = max(0, deadline.timeIntervalSinceNow * 1000)
    guard poll(&descriptor, 1, Int32(milliseconds)) > 0 else { throw Failure.timedOut(buffered) }
    var bytes = [UInt8](repeating: 0, count: limit)
    let count = recv(socket, &bytes, limit, 0)
    // A reset also counts as closed.
    guard count > 0 else { return false }
    received.withLock { $0 += bytes[..<count] }
    return true
  }

  private static func takeResponse(from bytes: inout [UInt8], to method: String) -> APIResponse? {
    guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    let headers = lines.dropFirst().map { line in
      let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
      return (name: parts.first ?? "", value: parts.count > 1 ? parts[1] : "")
    }
    let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    let head = APIResponse(status: status, headers: headers, body: "")
    let hasBody = method != "HEAD" && status >= 200 && status != 204 && status != 304
    // The body of a stream does not end, so the head alone is the response.
    if hasBody, head.header("Content-Type") == "text/event-stream" {
      bytes.removeFirst(end.upperBound)
      return head
    }
    if hasBody, head.header("Transfer-Encoding")?.lowercased() == "chunked" {
      var place = end.upperBound
      guard let body = takeChunks(from: bytes, at: &place) else { return nil }
      bytes.removeFirst(place)
      return APIResponse(status: status, headers: headers, body: String(decoding: body, as: UTF8.self))
    }
    let length = hasBody ? head.header("Content-Length").flatMap { Int($0) } ?? 0 : 0
    guard bytes.count >= end.upperBound + length else { return nil }
    let body = String(decoding: bytes[end.upperBound..<end.upperBound + length], as: UTF8.self)
    bytes.removeFirst(end.upperBound + length)
    return APIResponse(status: status, headers: headers, body: body)
  }

  /// The content of chunks, without extensions and trailers. Nil if the body is not complete.
  private static func takeChunks(from bytes: [UInt8], at place: inout Int) -> [UInt8]? {
    let lineEnd = Array("\r\n".utf8)
    var body: [UInt8] = []
    while let end = bytes[place...].firstRange(of: lineEnd) {
      guard let length = Int(String(decoding: bytes[place..<end.lowerBound], as: UTF8.self), radix: 16),
        bytes.count >= end.upperBound + length + lineEnd.count
      else { return nil }
      body += bytes[end.upperBound..<end.upperBound + length]
      place = end.upperBound + length + lineEnd.count
      if length == 0 { return body }
    }
    return nil
  }
}

extension TestApp {
  /// Sends a request unchanged on its own connection, so that no HTTP client validates or corrects it.
  ///
  /// - Parameter target: the request target, as in the request line.
  func sendRaw(
    _ method: String, _ target: String, body: [UInt8]? = nil, type: String = "application/json",
    headers: [(String, String)] = [], token: String? = nil
  ) async throws -> APIResponse {
    let connection = try await RawConnection(to: self)
    var head = "\(method) \(target) HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
    if let token { head += "Authorization: Bearer \(token)\r\n" }
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if let body { head += "Content-Type: \(type)\r\nContent-Length: \(body.count)\r\n" }
    // The server may respond and close the connection before it has received everything.
    _ = try? await connection.send(Array((head + "\r\n").utf8) + (body ?? []))
    return try await connection.response(to: method)
  }
}
