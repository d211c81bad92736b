import Foundation

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
