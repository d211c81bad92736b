import Foundation

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
