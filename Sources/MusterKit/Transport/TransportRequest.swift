import Foundation

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
