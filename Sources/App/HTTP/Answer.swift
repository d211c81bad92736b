import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import Postgres

extension Response {
  static func json(_ value: some JSONWritable, status: HTTPResponse.Status = .ok) -> Response {
    var json = JSONWriter()
    value.write(to: &json)
    return Response(
      status: status, headers: [.contentType: "application/json; charset=utf-8"],
      body: ResponseBody(byteBuffer: json.buffer))
  }

  /// There is nothing more to say, and nothing to keep.
  static var done: Response { Response(status: .noContent, headers: [.cacheControl: "no-store"]) }

  /// A problem as in RFC 9457.
  static func problem(_ error: AppError, requestID: String) -> Response {
    let status = error.kind.status
    var json = JSONWriter()
    json.object {
      $0.member("type", error.slug)
      $0.member("title", status.reasonPhrase)
      $0.member("status", status.code)
      $0.member("detail", error.message)
      $0.member("requestId", requestID)
      if !error.fields.isEmpty { $0.member("errors", error.fields) }
    }
    var headers: HTTPFields = [.contentType: "application/problem+json"]
    if let seconds = error.retryAfter { headers[.retryAfter] = String(seconds) }
    if let methods = error.allow { headers[.allow] = methods }
    if error.kind == .unauthorized {
      // RFC 6750: no error code unless a bearer token was shown.
      let isAboutToken = [AppError.invalidToken, .tokenExpired, .sessionEnded].map(\.slug).contains(error.slug)
      headers[.wwwAuthenticate] =
        isAboutToken ? #"Bearer error="invalid_token", error_description="\#(error.slug)""# : "Bearer"
    }
    return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: json.buffer))
  }

  /// A list in its envelope. `collection` items carry the ETag that ``unchanged(_:of:in:)`` looks for.
  static func list<Item>(_ list: List<Item>, item: (Item) -> some JSONWritable) -> Response {
    var json = JSONWriter()
    json.object {
      $0.member("items", list.items.map(item))
      $0.member("nextCursor", list.next?.text)
      $0.member("timestamp", list.stamp.map(Stamp.init))
    }
    var response = Response(
      status: .ok, headers: [.contentType: "application/json; charset=utf-8"],
      body: ResponseBody(byteBuffer: json.buffer))
    // Of a later page the stamp says when the first one was read, and not what is on it.
    if let stamp = list.stamp, !list.isContinued { response.headers[.eTag] = Stamp(stamp).eTag }
    return response
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
    json.string(time.rfc3339(microseconds: true))
  }
}

extension Request {
  /// Whether an `If-None-Match` names this tag.
  func alreadyHas(_ eTag: String) -> Bool {
    headers[values: .ifNoneMatch].joined(separator: ",").split(separator: ",").contains { candidate in
      let tag = candidate.trimmingCharacters(in: .whitespaces)
      // Tags are compared weakly here, as RFC 9110 wants it for If-None-Match.
      return tag == "*" || tag == eTag || tag == "W/\(eTag)"
    }
  }

  /// Answers 304 if the client's copy of a collection is the current one; reads only its stamp.
  func unchanged(_ collection: Collection, of user: User.ID, in database: Database) async throws -> Response? {
    guard headers[.ifNoneMatch] != nil, uri.queryParameters["cursor"] == nil,
      let stamp = try await Stamps.read(collection, of: user, in: database), alreadyHas(Stamp(stamp).eTag)
    else { return nil }
    return Response(status: .notModified, headers: [.eTag: Stamp(stamp).eTag])
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
