import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import NIOHTTP1
import NIOHTTPTypesHTTP1

/// A problem that the server sends before a request reaches a route.
struct Refusal {
  let response: HTTPResponse
  let body: ByteBuffer

  var head: HTTPResponseHead { HTTPResponseHead(response) }

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

  private init(_ status: HTTPResponse.Status, type: String, detail: String) {
    let requestID = RequestID.fresh()
    var json = JSONWriter()
    json.problem(
      type: type, title: status.reasonPhrase, status: status.code, detail: detail, requestId: requestID,
      errors: [FieldError]?.none)
    body = json.buffer
    var headers: HTTPFields = [
      .contentType: "application/problem+json", .contentLength: "\(body.readableBytes)", .connection: "close",
      .xRequestID: requestID,
    ]
    headers.append(contentsOf: SecurityHeaders.always + [SecurityHeaders.policy])
    response = HTTPResponse(status: status, headerFields: headers)
  }
}
