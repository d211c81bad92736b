import HTTPServer
import Postgres

extension Response {
  static func json(_ value: some JSONWritable, status: HTTPResponse.Status = .ok) -> Response {
    var json = JSONWriter()
    value.write(to: &json)
    return Response(
      status: status, headers: [.contentType: "application/json; charset=utf-8"],
      body: ResponseBody(json.buffer))
  }

  /// An object that is a collection, with its ETag.
  static func json(_ value: some JSONWritable, stamp: Timestamp?) -> Response {
    var response = json(value)
    if let stamp { response.headers.append(HTTPField(name: .eTag, value: Stamp(stamp).eTag)) }
    return response
  }

  /// 204 No Content, which must not be cached.
  static var noContent: Response { Response(status: .noContent, headers: [.cacheControl: "no-store"]) }

  /// A problem in the format of RFC 9457.
  static func problem(_ error: AppError, requestID: String) -> Response {
    let status = error.kind.status
    var json = JSONWriter()
    json.problem(
      type: error.slug, title: status.reasonPhrase, status: status.code, detail: error.message, requestId: requestID,
      errors: error.fields.isEmpty ? nil : error.fields, current: error.current)
    var headers: HTTPFields = [.contentType: "application/problem+json"]
    if let seconds = error.retryAfter { headers[.retryAfter] = String(seconds) }
    if let methods = error.allow { headers[.allow] = methods }
    if error.kind == .unauthorized {
      // RFC 6750: an error code only if the request has a bearer token.
      let isAboutToken = [AppError.invalidToken, .tokenExpired, .sessionEnded].map(\.slug).contains(error.slug)
      headers[.wwwAuthenticate] =
        isAboutToken ? #"Bearer error="invalid_token", error_description="\#(error.slug)""# : "Bearer"
    }
    return Response(status: status, headers: headers, body: ResponseBody(json.buffer))
  }

  /// A list in its envelope. The first page of a collection carries its ETag, which
  /// ``Request/unlessUnchanged(_:of:in:_:)`` compares. A list with digests has none, because its bytes also depend on
  /// the server's key.
  ///
  /// - Parameters:
  ///   - digests: makes the digests of the items, if they are wanted.
  ///   - more: writes further members of the envelope.
  static func list(
    _ list: List<some JSONWritable>, digests: ItemDigests? = nil, more: (inout JSONWriter) -> Void = { _ in }
  ) -> Response {
    var json = JSONWriter(capacity: 512 * (list.items.count + 1))
    json.object {
      var found: [String] = []
      $0.member("items") {
        $0.array(list.items.indices) { json, index in
          let start = json.count
          list.items[index].write(to: &json)
          if let digests { json.withBytes(from: start) { found.append(digests.digest(of: $0)) } }
        }
      }
      $0.member("nextCursor", list.next?.text)
      $0.member("timestamp", list.stamp.map(Stamp.init))
      if digests != nil { $0.member("digests", found) }
      more(&$0)
    }
    var response = Response(
      status: .ok, headers: [.contentType: "application/json; charset=utf-8"],
      body: ResponseBody(json.buffer))
    // A later page carries the stamp of the first page, which is not the ETag of its own items.
    if let stamp = list.stamp, !list.isContinued, digests == nil {
      response.headers.append(HTTPField(name: .eTag, value: Stamp(stamp).eTag))
    }
    return response
  }
}

extension AppError.Kind {
  var status: HTTPResponse.Status {
    switch self {
    case .malformed: .badRequest
    case .unauthorized: .unauthorized
    case .forbidden: .forbidden
    case .notFound: .notFound
    case .methodNotAllowed: .methodNotAllowed
    case .conflict: .conflict
    case .lostUpdate: .preconditionFailed
    case .tooLarge: .contentTooLarge
    case .unsupportedMediaType: .unsupportedMediaType
    case .invalid: .unprocessableContent
    case .tooManyRequests: .tooManyRequests
    case .unavailable: .serviceUnavailable
    case .internalError: .internalServerError
    }
  }
}

/// The time of a collection's last change, to the microsecond, for clients to echo.
struct Stamp: JSONWritable {
  let time: Timestamp

  init(_ time: Timestamp) {
    self.time = time
  }

  var eTag: String { "\"\(time.microseconds)\"" }

  func write(to json: inout JSONWriter) {
    json.time(time, microseconds: true)
  }
}

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
      errors: [FieldError]?.none, current: Party?.none)
    var headers: HTTPFields = [.contentType: "application/problem+json", .xRequestID: requestID]
    headers.append(contentsOf: SecurityHeaders.always + [SecurityHeaders.policy])
    return Refusal(reason, headers: headers, body: json.buffer)
  }
}
