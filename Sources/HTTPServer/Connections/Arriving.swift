import HTTPTypes
import NIOCore

/// The request that is arriving. It decides what becomes of each part, and the handler does it.
enum Arriving<Source> {
  case nothing
  case request(HTTPRequest, ByteBuffer)
  /// The task reads the body while it arrives.
  case body(Source, isWanted: Bool)
  /// The body of a request that already has its response, or gets none.
  case unwantedBody

  /// The end of a request that someone waits for.
  enum End {
    case request(HTTPRequest, ByteBuffer)
    case body(Source)
  }

  var isNothing: Bool {
    if case .nothing = self { true } else { false }
  }

  /// Whether a part of the body may be with the task, or was refused.
  var isPastHead: Bool {
    switch self {
    case .body, .unwantedBody: true
    case .nothing, .request: false
    }
  }

  /// Whether more bytes may be read. The reader of a body may be behind.
  var takesMore: Bool {
    if case .body(_, isWanted: false) = self { false } else { true }
  }

  /// A request whose rest has not arrived, and which could be given without it.
  var incomplete: (head: HTTPRequest, body: ByteBuffer)? {
    if case .request(let head, let body) = self { (head, body) } else { nil }
  }

  mutating func headArrives(_ head: HTTPRequest, isHandled: Bool) {
    self = isHandled ? .request(head, ByteBuffer()) : .unwantedBody
  }

  /// - Returns: the reader that gets the bytes.
  mutating func bytesArrive(_ bytes: ByteBuffer) -> Source? {
    switch self {
    case .request:
      append(bytes)
      return nil
    case .body(let source, _):
      return source
    case .nothing, .unwantedBody:
      return nil
    }
  }

  private mutating func append(_ bytes: ByteBuffer) {
    guard case .request(let head, var body) = self else { return }
    // Otherwise the body would be copied.
    self = .nothing
    if body.readableBytes == 0 { body = bytes } else { body.writeImmutableBuffer(bytes) }
    self = .request(head, body)
  }

  mutating func endArrives() -> End? {
    defer { self = .nothing }
    return switch self {
    case .request(let head, let body): .request(head, body)
    case .body(let source, _): .body(source)
    case .nothing, .unwantedBody: nil
    }
  }

  /// The request is given to the task, and the rest of its body goes to a reader.
  mutating func isGiven(readBy source: Source) {
    if case .request = self { self = .body(source, isWanted: true) }
  }

  mutating func readerIsBehind() {
    if case .body(let source, _) = self { self = .body(source, isWanted: false) }
  }

  /// - Returns: whether the reader was behind.
  mutating func readerCatchesUp() -> Bool {
    guard case .body(let source, isWanted: false) = self else { return false }
    self = .body(source, isWanted: true)
    return true
  }

  /// The response is complete. The rest of the body still arrives.
  ///
  /// - Returns: the reader, whose body ends.
  mutating func responseEnds() -> Source? {
    guard case .body(let source, _) = self else { return nil }
    self = .unwantedBody
    return source
  }

  /// Nothing more of the body arrives.
  ///
  /// - Returns: the reader, whose body breaks off.
  mutating func bodyBreaks() -> Source? {
    guard case .body(let source, _) = self else { return nil }
    self = .nothing
    return source
  }

  /// A request that is not complete is not given, even if its rest has arrived already.
  mutating func isDropped() {
    if case .request = self { self = .unwantedBody }
  }
}

extension Arriving: Equatable where Source: Equatable {}
extension Arriving.End: Equatable where Source: Equatable {}
