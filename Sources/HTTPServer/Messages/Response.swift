import HTTPTypes
import NIOCore

/// A response. It has a `Content-Length` if the length of its body is known, and its status permits one.
public struct Response: Sendable {
  public var status: HTTPResponse.Status
  public var headers: HTTPFields
  private var content: ResponseBody

  public init(status: HTTPResponse.Status, headers: HTTPFields = HTTPFields(), body: ResponseBody = ResponseBody()) {
    self.status = status
    self.headers = headers
    content = body
    if let length = body.contentLength, status.mayHaveLength, !headers.contains(.contentLength) {
      self.headers.append(HTTPField(name: .contentLength, value: String(length)))
    }
  }

  public var body: ResponseBody {
    get { content }
    set {
      if content.contentLength != newValue.contentLength {
        headers[.contentLength] = newValue.contentLength.map(String.init)
      }
      content = newValue
    }
  }

  /// The response to HEAD: with the length of the body, if it is known, and without the body.
  public var withoutBody: Response {
    var response = self
    response.content = ResponseBody()
    return response
  }

  var head: HTTPResponse { HTTPResponse(status: status, headerFields: headers) }
}

extension HTTPResponse.Status {
  /// Whether a response may have a `Content-Length` of its own body. That of a 304 would be the length of the body that
  /// the client has (RFC 9110, section 8.6).
  fileprivate var mayHaveLength: Bool { kind != .informational && code != 204 && code != 304 }
}

/// The body of a response.
public struct ResponseBody: Sendable {
  public typealias Writing = @concurrent @Sendable (any ResponseBodyWriter) async throws -> Void

  enum Storage: Sendable {
    case empty
    case bytes(ByteBuffer)
    case stream(length: Int?, Writing)
  }

  let storage: Storage

  public init() {
    storage = .empty
  }

  public init(_ bytes: ByteBuffer) {
    storage = .bytes(bytes)
  }

  /// A body that is made while it is sent.
  ///
  /// - Parameters:
  ///   - length: nil if it is not known before the end.
  ///   - write: must call ``ResponseBodyWriter/finish()`` after the last part. Otherwise, or if the length is another
  ///     one, the connection closes, so that the client sees that the body is not complete.
  public init(length: Int? = nil, write: @escaping Writing) {
    storage = .stream(length: length, write)
  }

  /// Nil if it is not known before the end.
  public var contentLength: Int? {
    switch storage {
    case .empty: 0
    case .bytes(let bytes): bytes.readableBytes
    case .stream(let length, _): length
    }
  }

  /// The complete body.
  public func collect() async throws -> ByteBuffer {
    switch storage {
    case .empty: return ByteBuffer()
    case .bytes(let bytes): return bytes
    case .stream(_, let write):
      let collector = BodyCollector()
      try await write(collector)
      return collector.bytes
    }
  }
}

/// Takes the parts of a body.
public protocol ResponseBodyWriter: AnyObject {
  /// Returns when the client may get more.
  ///
  /// - Throws: also if the body becomes longer than its declared length.
  func write(_ bytes: ByteBuffer) async throws
  func finish()
}

private final class BodyCollector: ResponseBodyWriter {
  private(set) var bytes = ByteBuffer()

  func write(_ part: ByteBuffer) {
    bytes.writeImmutableBuffer(part)
  }

  func finish() {}
}
