import Foundation

/// Reads Server-Sent Events from bytes, however these are cut into pieces. Use a new one for each connection.
struct EventStreamParser: Sendable {
  /// Bytes of one event. A longer event is left out, but its `id` counts.
  static let maximumBytes = 1 << 20

  /// The last `id` of the complete blocks so far. To be sent as `Last-Event-ID` when connecting again. A block without
  /// an `id`, and one with an empty `id`, leave it as it is.
  private(set) var lastEventID: String?
  /// Whether a blank line has ended a block, be it a comment only. A connection that is cut before it has said nothing.
  private(set) var hasBlock = false
  /// Milliseconds to wait before connecting again, if the stream says so.
  private(set) var retry: Int?

  private let maximumBytes: Int
  private var line: [UInt8] = []
  /// The line is too long, and its rest is skipped.
  private var isLineTooLong = false
  /// A line feed that follows belongs to the line before.
  private var endedWithReturn = false
  private var isFirstLine = true
  private var event = ""
  private var data: [String] = []
  private var size = 0
  private var id: String?

  init(lastEventID: String? = nil, maximumBytes: Int = Self.maximumBytes) {
    self.lastEventID = lastEventID
    self.maximumBytes = maximumBytes
    id = lastEventID
  }

  /// - Returns: the events that these bytes complete.
  mutating func read(_ bytes: Data) -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    for byte in bytes {
      let followsReturn = endedWithReturn
      endedWithReturn = false
      switch byte {
      case UInt8(ascii: "\n") where followsReturn: break
      case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
        endedWithReturn = byte == UInt8(ascii: "\r")
        if let event = endLine() { events.append(event) }
      default: add(byte)
      }
    }
    return events
  }

  private mutating func add(_ byte: UInt8) {
    if line.count < maximumBytes { line.append(byte) } else { isLineTooLong = true }
  }

  private mutating func endLine() -> ServerSentEvent? {
    defer {
      line.removeAll(keepingCapacity: line.count < 4096)
      isLineTooLong = false
    }
    if isFirstLine, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
    isFirstLine = false
    if line.isEmpty { return dispatch() }
    if isLineTooLong {
      size = .max
    } else {
      readField()
    }
    return nil
  }

  private mutating func readField() {
    let colon = line.firstIndex(of: UInt8(ascii: ":"))
    let name = String(decoding: line[..<(colon ?? line.endIndex)], as: UTF8.self)
    var rest = colon.map { line[($0 + 1)...] } ?? []
    if rest.first == UInt8(ascii: " ") { rest = rest.dropFirst() }
    let value = String(decoding: rest, as: UTF8.self)
    switch name {
    case "event": event = value
    case "data":
      // Empty lines also count: a stream of them must not fill the memory.
      let more = value.utf8.count + 1
      size = size > maximumBytes - more ? .max : size + more
      if size <= maximumBytes { data.append(value) }
    case "id" where !value.isEmpty && !value.contains("\0"): id = value
    case "retry": retry = Int(value).flatMap { $0 >= 0 ? $0 : nil } ?? retry
    default: break
    }
  }

  private mutating func dispatch() -> ServerSentEvent? {
    defer { (event, data, size) = ("", [], 0) }
    lastEventID = id
    hasBlock = true
    guard !data.isEmpty, size <= maximumBytes else { return nil }
    return ServerSentEvent(event: event.isEmpty ? "message" : event, data: data.joined(separator: "\n"), id: id)
  }
}

/// One event of a stream of Server-Sent Events.
struct ServerSentEvent: Sendable, Hashable {
  /// The type; `message` if the stream names none.
  var event: String
  /// The lines of data, with line feeds between them.
  var data: String
  /// The last `id` of the stream so far.
  var id: String?
}
