import NIOCore

/// Finds the HTTP/1.1 messages in the bytes of one direction of a connection.
struct HTTPMessages {
  struct Head: Sendable {
    /// The three words of the first line: method, target and version, or version, status and reason.
    let words: [String]
    /// Names in lower case.
    let headers: [String: String]
    /// The number of bytes up to and including the empty line.
    let length: Int

    /// A body that ends only when the connection does.
    var isStream: Bool { headers["content-type"]?.hasPrefix("text/event-stream") == true }
    var status: Int? { words.count > 1 ? Int(words[1]) : nil }
  }

  private(set) var bytes: [UInt8] = []
  private var known: Head?
  /// The end of the chunks that were found so far.
  private var scanned = 0

  mutating func add(_ buffer: ByteBuffer) {
    bytes += buffer.readableBytesView
  }

  /// The head of the first message. Nil if it is not complete.
  mutating func head() -> Head? {
    if let known { return known }
    guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
    let pairs = lines.dropFirst().map { line -> (String, String) in
      let parts = line.split(separator: ":", maxSplits: 1)
      return (parts[0].lowercased(), parts.count > 1 ? parts[1].trimmingPrefix { $0 == " " }.description : "")
    }
    let words = (lines.first ?? "").split(separator: " ", maxSplits: 2).map(String.init)
    known = Head(words: words, headers: Dictionary(pairs) { $1 }, length: end.upperBound)
    scanned = end.upperBound
    return known
  }

  /// Removes the first message. Nil if it is not complete.
  mutating func next() -> (head: Head, bytes: [UInt8])? {
    guard let head = head(), let length = length(of: head), bytes.count >= length else { return nil }
    let message = Array(bytes[..<length])
    bytes.removeFirst(length)
    known = nil
    return (head, message)
  }

  /// Removes all bytes that have arrived.
  mutating func takeAll() -> [UInt8] {
    defer { bytes = [] }
    return bytes
  }

  private mutating func length(of head: Head) -> Int? {
    if head.isStream { return nil }
    if head.headers["transfer-encoding"]?.lowercased() == "chunked" { return chunkedLength() }
    return head.length + (head.headers["content-length"].flatMap { Int($0) } ?? 0)
  }

  private mutating func chunkedLength() -> Int? {
    let lineEnd = Array("\r\n".utf8)
    while let end = bytes[scanned...].firstRange(of: lineEnd) {
      let line = String(decoding: bytes[scanned..<end.lowerBound], as: UTF8.self)
      guard let size = Int(line.prefix { $0 != ";" }, radix: 16) else { return nil }
      let next = end.upperBound + size + lineEnd.count
      guard bytes.count >= next else { return nil }
      scanned = next
      if size == 0 { return next }
    }
    return nil
  }
}
