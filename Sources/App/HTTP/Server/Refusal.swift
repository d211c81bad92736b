import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOHTTP1

/// A problem that the server sends before a request reaches a route.
struct Refusal {
  let head: HTTPResponseHead
  let body: ByteBuffer

  static var malformed: Self {
    Self(.badRequest, type: "malformed-request", detail: "This is not a valid HTTP request.")
  }

  static var headTimeout: Self {
    Self(.requestTimeout, type: "request-timeout", detail: "The request's headers did not arrive in time.")
  }

  static var headersTooLarge: Self {
    Self(
      .requestHeaderFieldsTooLarge, type: "headers-too-large", detail: "The request line or the headers are too large.")
  }

  private init(_ status: HTTPResponseStatus, type: String, detail: String) {
    let requestID = RequestID.fresh()
    var json = JSONWriter()
    json.object {
      $0.member("type", type)
      $0.member("title", status.reasonPhrase)
      $0.member("status", Int(status.code))
      $0.member("detail", detail)
      $0.member("requestId", requestID)
    }
    body = json.buffer
    var headers: HTTPHeaders = [
      "Content-Type": "application/problem+json", "Content-Length": "\(body.readableBytes)", "Connection": "close",
      "X-Request-Id": requestID,
    ]
    for field in SecurityHeaders.always + [SecurityHeaders.policy] {
      headers.add(name: field.name.rawName, value: field.value)
    }
    head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
  }
}
