import Foundation
import HTTPServer
import Logging
import Postgres
import Synchronization

/// Passes each request to its endpoint: gives it its id, turns every error into a problem, compresses, adds the headers
/// that all responses have, and logs.
struct Envelope: Sendable {
  let routes: RouteTable
  /// Of requests without an endpoint.
  let otherMetrics: RequestMetrics
  let log: RequestLog
  let trustedProxies: TrustedProxies
  let untrusted: UntrustedProxies
  let publicURL: PublicURL
  let cors: CORS?
  var readiness = Readiness()

  func respond(to request: Request, context: Context) async throws -> Response {
    var context = context
    context.requestID = RequestID.of(request)
    if !trustedProxies.isEmpty {
      context.trustedProxies = trustedProxies
      context.forwardedFor = request.headers[values: .xForwardedFor]
    }
    if request.headers.contains(.xForwardedFor) { untrusted.note(context, trustedProxies) }
    context.trace = request.headers.value(of: .traceparent).flatMap { Trace(traceparent: $0) }
    let found = routes.route(of: request.uri.path)
    let endpoint = found?.route.endpoint(for: request.method)
    if let found { context.parameters = found.parameters }
    context.endpoint = endpoint
    let start = ContinuousClock.now
    let base = publicURL.text
    var response: Response
    var problem: AppError?
    var cause: (any Error)?
    do {
      if let preflight = cors?.preflight(request, allow: found?.route.allow) {
        response = preflight
      } else {
        guard let endpoint else { throw AppError.noEndpoint(allow: found?.route.allow) }
        if readiness.isUnchecked, !endpoint.path.hasPrefix("/health/") { throw AppError.databaseUnavailable }
        response =
          request.mayTakeLong
          ? try await GlobalPool.run { try await respond(to: request, context, endpoint, base: base) }
          : try await respond(to: request, context, endpoint, base: base)
      }
    } catch let error where error is MalformedRequest || error is ConnectionLost {
      // The client disconnected, or did not send HTTP. The connection handles that.
      throw error
    } catch {
      let refusal = self.problem(error)
      response = .problem(refusal, requestID: context.requestID)
      problem = refusal
      // The response already contains an `AppError`. Log any other failure of the server as the cause.
      if !(error is AppError), refusal.kind.status.code >= 500 { cause = error }
    }
    response = try await Compression.apply(to: response, for: request)
    // A response to HEAD has no body, not even for an error: the client would take it for the next response.
    if request.method == .head { response = response.withoutBody }
    response.headers.append(HTTPField(name: .xRequestID, value: context.requestID))
    SecurityHeaders.add(to: &response.headers, isSecure: base.hasPrefix("https:"))
    cors?.expose(&response, to: request)
    if let (limit, policy) = context.rateLimit?.headers {
      response.headers[.rateLimit] = limit
      response.headers[.rateLimitPolicy] = policy
    }
    if let (since, sunset) = endpoint?.deprecation?.headers {
      response.headers[.deprecation] = since
      response.headers[.sunset] = sunset
    }
    let duration = ContinuousClock.now - start
    (endpoint?.metrics ?? otherMetrics).count(response.status.code, after: duration)
    log.responded(request.method, response.status.code, problem, cause: cause, after: duration, in: context)
    return response
  }

  /// Binds what verbs and statements cannot get as parameters.
  private func respond(
    to request: Request, _ context: Context, _ endpoint: Endpoint, base: String
  ) async throws -> Response {
    try await PublicURL.$base.withValue(base) {
      try await SQL.$comment.withValue(endpoint.comment) {
        guard let trace = context.trace else { return try await endpoint.respond(request, context) }
        return try await Trace.$current.withValue(trace) { try await endpoint.respond(request, context) }
      }
    }
  }

  private func problem(_ error: any Error) -> AppError {
    switch error {
    case let error as AppError:
      return error
    // Nothing cancels a request except the end of the process.
    case _ where Task.isCancelled || error is CancellationError:
      return .stopping
    case let error as PostgresError where error.isLockTimeout:
      return .contended
    case let error as PostgresError where error.isUnavailable:
      return error.kind == .unknownOutcome ? .unknownOutcome : .databaseUnavailable
    default:
      return AppError(
        .internalError, "internal-error", "An internal error occurred. If it persists, report the request id.")
    }
  }
}

extension Envelope {
  /// Responds to the requests of the whole service.
  ///
  /// - Parameter streams: the caller must run them.
  init(_ dependencies: Dependencies, streams: NotificationStreams? = nil) {
    let endpoints = Endpoint.all(dependencies, streams: streams ?? NotificationStreams(dependencies))
    self.init(
      routes: RouteTable(endpoints), otherMetrics: RequestMetrics("any", "none", in: dependencies.metrics),
      log: RequestLog(all: dependencies.logsAllRequests, addresses: dependencies.logsAddresses),
      trustedProxies: dependencies.trustedProxies,
      untrusted: UntrustedProxies(in: dependencies.metrics, logsAddresses: dependencies.logsAddresses),
      publicURL: dependencies.publicURL, cors: dependencies.cors,
      readiness: dependencies.readiness)
  }
}

extension HTTPField.Name {
  static let xRequestID = HTTPField.Name("X-Request-Id")!
  fileprivate static let deprecation = HTTPField.Name("Deprecation")!
  fileprivate static let sunset = HTTPField.Name("Sunset")!
}

extension AppError {
  /// - Parameter allow: the methods of the path; nil if there is no such path.
  fileprivate static func noEndpoint(allow: String?) -> AppError {
    guard let allow else { return AppError(.notFound, "route-not-found", "No route has this path.") }
    var error = AppError(.methodNotAllowed, "method-not-allowed", "This path allows \(allow).")
    error.allow = allow
    return error
  }

  static var databaseUnavailable: AppError {
    var error = AppError(
      .unavailable, "database-unavailable", "The database is temporarily unavailable. Nothing was changed.")
    error.retryAfter = 1
    return error
  }

  static var unknownOutcome: AppError {
    var error = AppError(
      .unavailable, "unknown-outcome",
      "The database became unavailable during the change, which may or may not be saved. Repeat it with its Idempotency-Key, or read first."
    )
    error.retryAfter = 1
    return error
  }
}

/// Headers that make browsers treat a response as nothing but data, whatever it contains.
enum SecurityHeaders {
  /// In every response.
  static let always = [
    HTTPField(name: .xContentTypeOptions, value: "nosniff"),
    HTTPField(name: HTTPField.Name("Referrer-Policy")!, value: "no-referrer"),
  ]
  /// Unless a route has set one of its own, such as a page with scripts.
  static let policy = HTTPField(name: .contentSecurityPolicy, value: "default-src 'none'; frame-ancestors 'none'")
  /// If the service's URL is https. A year.
  static let strictTransport = HTTPField(name: .strictTransportSecurity, value: "max-age=31536000")

  static func add(to headers: inout HTTPFields, isSecure: Bool) {
    headers.append(contentsOf: always)
    if !headers.contains(.contentSecurityPolicy) { headers.append(policy) }
    if isSecure { headers.append(strictTransport) }
  }
}

/// Notes requests that a proxy has forwarded although it is not trusted: all clients behind it share one address, and
/// its limits.
final class UntrustedProxies: Sendable {
  private static let interval = Duration.seconds(3600)

  private let requests: CounterCell
  private let logsAddresses: Bool
  private let warned = Mutex<ContinuousClock.Instant?>(nil)

  init(in metrics: MetricsRegistry, logsAddresses: Bool = false) {
    self.logsAddresses = logsAddresses
    requests = metrics.cell("muster_untrusted_proxy_requests_total", of: CounterCell.self)
  }

  /// Warns once an hour at the most: anyone can send the header.
  func note(_ context: Context, _ trusted: TrustedProxies) {
    guard let peer = context.peer?.address, !trusted.contains(peer) else { return }
    requests.increment(by: 1)
    let isDue = warned.withLock { warned in
      if let last = warned, .now < last + Self.interval { return false }
      warned = .now
      return true
    }
    guard isDue else { return }
    context.logger.warning(
      "X-Forwarded-For is ignored, because its sender is not in MUSTER_TRUSTED_PROXIES",
      metadata: logsAddresses ? ["proxy": "\(peer)"] : [:])
  }
}
