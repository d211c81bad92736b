import HTTPServer

extension Refusal {
  /// A problem that the server sends before a request reaches a route.
  @Sendable static func problem(_ reason: Reason) -> Refusal {
    let (type, detail) =
      switch reason {
      case .malformed: ("malformed-request", "This is not a valid HTTP request.")
      case .headTimeout: ("request-timeout", "The request's headers did not arrive in time.")
      case .headersTooLarge: ("headers-too-large", "The request line or the headers are too large.")
      }
    let requestID = RequestID.fresh()
    var json = JSONWriter()
    json.problem(
      type: type, title: reason.status.reasonPhrase, status: reason.status.code, detail: detail, requestId: requestID,
      errors: [FieldError]?.none)
    var headers: HTTPFields = [.contentType: "application/problem+json", .xRequestID: requestID]
    headers.append(contentsOf: SecurityHeaders.always + [SecurityHeaders.policy])
    return Refusal(reason, headers: headers, body: json.buffer)
  }
}
