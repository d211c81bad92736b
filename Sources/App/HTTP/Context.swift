import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import Postgres
import Synchronization

/// What is known of a request besides itself.
public struct Context: RequestContext {
  public var coreContext: CoreRequestContextStorage
  /// Sent back as `X-Request-Id`, and in every problem and log line.
  var requestID = ""
  private let unnamedLogger: Logger
  /// Shared by the copies of this context, so that the outermost middleware knows who was let in.
  private let admission = Admission()
  /// What ``address`` is made of.
  let channel: any Channel
  var trustedProxies = TrustedProxies()
  var forwardedFor: [String] = []

  public init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
    unnamedLogger = source.logger
  }

  var caller: AccessTokens.Caller? { admission.caller.withLock { $0 } }

  fileprivate func admit(_ caller: AccessTokens.Caller) {
    admission.caller.withLock { $0 = caller }
  }

  /// Names the request in its lines. Made when it is asked for: most requests say nothing.
  public var logger: Logger {
    var logger = unnamedLogger
    logger[metadataKey: "request"] = "\(requestID)"
    return logger
  }

  /// The signed-in user: on routes behind ``SignedIn``.
  var user: User.ID {
    get throws {
      guard let caller else { throw AppError.noToken }
      return caller.user
    }
  }

  /// The session that the access token belongs to.
  var session: Session.ID {
    get throws {
      guard let caller else { throw AppError.noToken }
      return caller.session
    }
  }

  /// An id in the path. One that is no UUID names nothing, like any unknown one.
  func id<Thing>(_ name: String, else error: AppError) throws -> Identifier<Thing> {
    guard let text = parameters.get(name), let id = Identifier<Thing>(text) else { throw error }
    return id
  }
}

/// Who was let in.
private final class Admission: Sendable {
  let caller = Mutex<AccessTokens.Caller?>(nil)
}

/// Lets only requests pass with a valid access token of a session that has not ended.
struct SignedIn: RouterMiddleware {
  let accessTokens: AccessTokens
  let endedSessions: EndedSessions
  /// Where a PUT brings a picture.
  var uploads: Uploads?

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard let token = request.bearerToken else { throw AppError.noToken }
    let caller = try await accessTokens.verify(token)
    context.admit(caller)
    try endedSessions.check(caller)
    guard let uploads, request.method == .put else {
      return try await next(
        try await whole(request, of: caller, upTo: Request.maximumBody, else: .bodyTooLarge), context)
    }
    return try await uploads.hold(for: caller.user) {
      try await next(
        try await whole(request, of: caller, upTo: Picture.maximumLength, else: .pictureTooLarge), context)
    }
  }

  /// The request once its body is there, if the session still goes on by then.
  private func whole(
    _ request: Request, of caller: AccessTokens.Caller, upTo limit: Int, else refusal: AppError
  ) async throws -> Request {
    guard request.hasBody else { return request }
    var request = request
    // It may trickle in for minutes: a session that ends meanwhile does nothing more, nor does a token that expires,
    // whose session's end may be forgotten.
    request.body = RequestBody(buffer: try await request.bytes(upTo: limit, else: refusal))
    guard caller.isValid(at: .now()) else { throw AppError.tokenExpired }
    try endedSessions.check(caller)
    return request
  }
}

extension Request {
  static let maximumBody = 64 << 10

  fileprivate var hasBody: Bool {
    headers.value(of: .contentLength).map { $0 != "0" } ?? (headers.value(of: .transferEncoding) != nil)
  }

  /// By its bytes: a token's hundreds of characters cost more to tell apart than the request's work.
  fileprivate var bearerToken: String? {
    guard let header = headers.value(of: .authorization) else { return nil }
    let parts = header.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1).map(Substring.init)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
    return String(parts[1])
  }

  /// The body as JSON. Refused when it is declared as something else, and before any decoding when it is not JSON as we
  /// take it. Nil without a body.
  func json() async throws -> JSON? {
    let buffer = try await bytes(upTo: Self.maximumBody, else: .bodyTooLarge)
    guard buffer.readableBytes > 0 else { return nil }
    if let type = headers.value(of: .contentType), !Self.isJSON(type) { throw AppError.notJSON }
    do throws(JSON.Malformed) {
      return try JSON(parsing: buffer.readableBytesView)
    } catch {
      throw AppError(.malformed, "malformed-body", error.message)
    }
  }

  /// The body as it is. Refused unread when it says that it is too large, and otherwise once it turns out to be.
  func bytes(upTo limit: Int, else refusal: AppError) async throws -> ByteBuffer {
    if let length = headers.value(of: .contentLength).flatMap({ Int($0) }), length > limit { throw refusal }
    do {
      return try await body.collect(upTo: limit)
    } catch is NIOTooManyBytesError {
      throw refusal
    }
  }

  private static func isJSON(_ contentType: String) -> Bool {
    if contentType == "application/json" { return true }
    let type = contentType.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    return type == "application/json" || type.hasPrefix("application/") && type.hasSuffix("+json")
  }

  /// The fields of the body, which must be a JSON object. See ``Fields``.
  func read<Value>(_ body: (inout Fields) throws -> Value) async throws -> Value {
    guard let json = try await json() else {
      throw AppError(.malformed, "malformed-body", "This needs a body: a JSON object.")
    }
    return try Fields.read(json, body)
  }

  /// The query's parameters. See ``QueryFields``.
  func query<Value>(_ body: (inout QueryFields) -> Value) throws -> Value {
    var fields = QueryFields(uri)
    let value = body(&fields)
    guard fields.errors.isEmpty else { throw AppError.invalid(fields.errors) }
    return value
  }
}

extension HTTPFields {
  /// What the subscript gives, at a fraction of its cost where there is one such field, or none.
  func value(of name: HTTPField.Name) -> String? {
    var value: String?
    for field in self where field.name == name {
      if value != nil { return self[name] }
      value = field.value
    }
    return value
  }
}

/// Reads a query's parameters and notes every one that breaks its rule, as ``Fields`` does with a body's.
struct QueryFields {
  private let parameters: FlatDictionary<Substring, Substring>
  fileprivate var errors: [FieldError] = []

  fileprivate init(_ uri: URI) {
    parameters = uri.queryParameters
  }

  /// `?limit=` and `?cursor=`.
  mutating func page() -> Page {
    var page = Page()
    if let text = parameters["limit"] {
      if let limit = Int(text), Page.limits.contains(limit) {
        page.limit = limit
      } else {
        errors.append(FieldError(field: "limit", message: "must be a whole number from 1 to 100"))
      }
    }
    if let text = parameters["cursor"] {
      page.cursor = Cursor(String(text))
      if page.cursor == nil { errors.append(.foreignCursor) }
    }
    return page
  }

  /// `?limit=` of a list that has one page and no cursor.
  mutating func onlyPage() -> Int {
    let asked = page()
    if asked.cursor != nil { errors.append(.foreignCursor) }
    return asked.limit
  }

  /// Text by the rule that fields of a body have: see ``Fields/Rule/text(_:)``.
  mutating func text(_ name: String, _ length: ClosedRange<Int>) -> String {
    guard let value = parameters[Substring(name)] else {
      errors.append(FieldError(field: name, message: "is required"))
      return ""
    }
    do {
      let text = try Fields.Rule<String>.text(length).read(.string(String(value)))
      if !text.utf8.contains(0) { return text }
      errors.append(FieldError(field: name, message: "must not contain U+0000"))
    } catch {
      errors += error.errors.map { FieldError(field: name, message: $0.message) }
    }
    return ""
  }

  /// Something with a form of its own; nil if it is absent or empty.
  mutating func parsed<Value>(_ name: String, _ form: String, _ parse: (String) -> Value?) -> Value? {
    guard let text = parameters[Substring(name)], !text.isEmpty else { return nil }
    let value = parse(String(text))
    if value == nil { errors.append(FieldError(field: name, message: form)) }
    return value
  }

  /// One of a few words; nil if it is absent.
  mutating func word<Word: RawRepresentable>(_ name: String, of words: [Word]) -> Word? where Word.RawValue == String {
    guard let text = parameters[Substring(name)] else { return nil }
    let word = words.first { $0.rawValue.hasSameBytes(as: String(text)) }
    if word == nil {
      let known = words.map(\.rawValue).joined(separator: ", ")
      errors.append(FieldError(field: name, message: "must be one of \(known)"))
    }
    return word
  }
}

extension FieldError {
  static let foreignCursor = FieldError(field: "cursor", message: "must be the nextCursor of this list's earlier page")
}

extension AppError {
  static let bodyTooLarge = AppError(.tooLarge, "body-too-large", "A body has at most 64 KiB.")
  static let notJSON = AppError(
    .unsupportedMediaType, "unsupported-media-type", "The body must be JSON: Content-Type: application/json.")
}
