import Foundation

/// Carries requests to the service: ``URLSessionTransport`` in apps, others in previews and tests.
///
/// Both calls throw only if no complete response arrived; the request may have had its effect, unless they throw
/// ``UnsentRequest``. If the task is cancelled, they give up the request and throw `CancellationError`.
public protocol Transport: Sendable {
  /// Sends a request and reads its whole response, whatever its status.
  func send(_ request: TransportRequest) async throws -> TransportResponse

  /// Sends a request and returns as soon as the head of the response is there.
  func open(_ request: TransportRequest) async throws -> TransportStream
}

/// A transport throws this if it is certain that no byte of the request has left the device. If in doubt, it throws
/// another error.
public struct UnsentRequest: Error, LocalizedError {
  public let reason: any Error

  public init(_ reason: any Error) { self.reason = reason }

  public var errorDescription: String? { reason.localizedDescription }
}

/// A request, as the client gives it to its transport.
public struct TransportRequest: Sendable {
  /// Such as `GET`.
  public var method: String
  public var url: URL
  public var headers: [String: String]
  public var body: Data?
  /// Seconds without any progress after which the transport gives up.
  public var timeout: TimeInterval

  public init(
    method: String, url: URL, headers: [String: String] = [:], body: Data? = nil, timeout: TimeInterval = 30
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.timeout = timeout
  }
}

/// A complete response.
public struct TransportResponse: Sendable {
  public var status: Int
  /// The names are in lower case.
  public var headers: [String: String]
  public var body: Data

  public init(status: Int, headers: [String: String] = [:], body: Data = Data()) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// A response whose body arrives bit by bit.
public struct TransportStream: Sendable {
  public var status: Int
  /// The names are in lower case.
  public var headers: [String: String]
  /// The body. Ends when the response ends, throws when it breaks off. Releasing or cancelling its iteration closes the
  /// connection.
  public var chunks: AsyncThrowingStream<Data, any Error>

  public init(status: Int, headers: [String: String] = [:], chunks: AsyncThrowingStream<Data, any Error>) {
    self.status = status
    self.headers = headers
    self.chunks = chunks
  }
}
