import Foundation
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import Postgres
import Synchronization

/// The outermost middleware: gives each request its id, makes a problem of every error, and logs.
struct Envelope: RouterMiddleware {
  let log: RequestLog
  let allowedMethods: AllowedMethods
  let trustedProxies: TrustedProxies
  let publicURL: PublicURL
  let requests: RequestMetrics

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    var context = context
    context.requestID = RequestID.of(request)
    if !trustedProxies.isEmpty {
      context.trustedProxies = trustedProxies
      context.forwardedFor = request.headers[values: .xForwardedFor]
    }
    let start = ContinuousClock.now
    var response: Response
    var problem: AppError?
    var cause: (any Error)?
    do {
      response = try await PublicURL.$base.withValue(publicURL.text) { try await next(request, context) }
    } catch let error where error is HTTPParserError || error is IOError {
      // The client broke off or sent what is not HTTP: the connection deals with it.
      throw error
    } catch {
      let refusal = self.problem(error, request)
      response = .problem(refusal, requestID: context.requestID)
      problem = refusal
      // What a refusal says, the client knows.
      if !(error is AppError), refusal.kind.status.code >= 500 { cause = error }
    }
    // The answer to a HEAD has no body, whatever went wrong: one would be taken for the next answer.
    if request.method == .head { response = response.createHeadResponse() }
    response.headers[.xRequestID] = context.requestID
    let duration = ContinuousClock.now - start
    requests.count(request.method, context.endpointPath, response.status.code, after: duration)
    log.answered(request.method, response.status.code, problem, cause: cause, after: duration, in: context)
    return response
  }

  private func problem(_ error: any Error, _ request: Request) -> AppError {
    switch error {
    case let error as AppError:
      return error
    // Cut off because the process stops: nothing else cancels a request.
    case _ where Task.isCancelled || error is CancellationError:
      return .stopping
    case let error as PostgresError where error.isLockTimeout:
      return .contended
    case let error as PostgresError where error.isUnavailable:
      return error.kind == .unknownOutcome ? .unknownOutcome : .databaseAway
    case let error as HTTPError where error.status == .notFound:
      guard let methods = allowedMethods.of(path: request.uri.path) else {
        return AppError(.notFound, "route-not-found", "There is nothing at this path.")
      }
      var refusal = AppError(.methodNotAllowed, "method-not-allowed", "This path takes \(methods).")
      refusal.allow = methods
      return refusal
    case let error as HTTPError where error.status.code < 500:
      return AppError(.malformed, "malformed-request", "This is not a valid HTTP request.")
    default:
      return AppError(.internalError, "internal-error", "Something went wrong on our side.")
    }
  }
}

/// The word by which an answer, its problem and its log line are known to be of one request.
enum RequestID {
  /// The client's own, when it is one word of reasonable length; else a fresh one.
  static func of(_ request: Request) -> String {
    guard let given = request.headers.value(of: .xRequestID), (1...128).contains(given.utf8.count),
      given.utf8.allSatisfy(isAllowed)
    else { return fresh() }
    return given
  }

  /// Unlike any other of this process, and hardly like another process's.
  static func fresh() -> String {
    String(first &+ count.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9e37_79b9_7f4a_7c15, radix: 16)
  }

  private static let first = UInt64.random(in: .min ... .max)
  private static let count = Atomic<UInt64>(0)

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}

/// Which methods each path takes, for `Allow`.
struct AllowedMethods: Sendable {
  private let routes: [(segments: [String], method: String)]

  init(_ routes: [(path: String, method: String)]) {
    self.routes = routes.map { ($0.path.split(separator: "/").map(String.init), $0.method) }
  }

  /// Nil if there is no such path.
  func of(path: String) -> String? {
    let segments = path.split(separator: "/")
    let matching = routes.filter { route in
      route.segments.count == segments.count
        && zip(route.segments, segments).allSatisfy { $0.hasPrefix("{") || $0 == $1 }
    }
    // A word wins over a parameter, as it does in the router: `me` is not somebody's id.
    func parameters(_ segments: [String]) -> Int { segments.count { $0.hasPrefix("{") } }
    guard let fewest = matching.map({ parameters($0.segments) }).min() else { return nil }
    var names = Set(matching.filter { parameters($0.segments) == fewest }.map(\.method))
    if names.contains("GET") { names.insert("HEAD") }
    return names.sorted().joined(separator: ", ")
  }
}

extension HTTPField.Name {
  static let xRequestID = HTTPField.Name("X-Request-Id")!
}

extension AppError {
  static var databaseAway: AppError {
    var error = AppError(
      .unavailable, "database-unavailable", "The database is away for a moment. Nothing was changed.")
    error.retryAfter = 1
    return error
  }

  static var unknownOutcome: AppError {
    var error = AppError(
      .unavailable, "unknown-outcome",
      "The database went away while this was being saved: it may or may not have happened. Repeat the request.")
    error.retryAfter = 1
    return error
  }
}
