import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// The response to bytes that never become a request, after which the connection or the stream ends.
public struct Refusal: Sendable {
  public enum Reason: CaseIterable, Sendable {
    case malformed, headTimeout, headersTooLarge

    public var status: HTTPResponse.Status {
      switch self {
      case .malformed: .badRequest
      case .headTimeout: .requestTimeout
      case .headersTooLarge: .requestHeaderFieldsTooLarge
      }
    }
  }

  /// Makes a refusal, so that it looks like the other errors of a service.
  public typealias Maker = @Sendable (Reason) -> Refusal

  let response: HTTPResponse
  let body: ByteBuffer

  var head: HTTPResponseHead { HTTPResponseHead(response) }

  /// - Parameter headers: without the length of the body.
  public init(_ reason: Reason, headers: HTTPFields, body: ByteBuffer) {
    self.body = body
    let own: HTTPFields = [.contentLength: "\(body.readableBytes)", .connection: "close"]
    response = HTTPResponse(status: reason.status, headerFields: headers + own)
  }

  /// A refusal without a body.
  public static func empty(_ reason: Reason) -> Refusal {
    Refusal(reason, headers: HTTPFields(), body: ByteBuffer())
  }
}
