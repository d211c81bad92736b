import Foundation
import HTTPServer

/// Lets web pages of other origins call the API: `MUSTER_CORS_ORIGINS`. Cookies and other credentials of the browser
/// are never allowed, because the API takes tokens.
public struct CORS: Sendable {
  /// The headers of requests that a page may set.
  private static let requestHeaders = [
    "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "Traceparent",
    "Tracestate", "X-Request-Id",
  ].joined(separator: ", ")
  /// The headers of responses that a page may read, besides those that browsers always show.
  private static let responseHeaders =
    [
      "Allow", "Deprecation", "ETag", "Idempotent-Replayed", "RateLimit", "RateLimit-Policy", "Retry-After", "Sunset",
      "WWW-Authenticate", "X-Request-Id",
    ].joined(separator: ", ")
  /// How long a browser may remember the response to a preflight request. Browsers do not remember it for longer.
  private static let preflightSeconds = 7200

  /// Nil for all origins.
  private let origins: Set<String>?

  /// `*`, or comma-separated origins as browsers send them; nil if any is not an origin.
  init?(_ text: String) {
    if text == "*" {
      self.origins = nil
      return
    }
    let origins = text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    guard !origins.isEmpty, origins.allSatisfy(Self.isOrigin) else { return nil }
    self.origins = Set(origins)
  }

  /// A browser sends a scheme, a host, and a port unless it is the scheme's own, all in lower case.
  private static func isOrigin(_ text: String) -> Bool {
    guard let url = URL(string: text), let scheme = url.scheme, let host = url.host(), !host.isEmpty else {
      return false
    }
    let port = url.port.map { ":\($0)" } ?? ""
    let isUsual = url.port != nil && url.port == ["http": 80, "https": 443][scheme]
    return text == "\(scheme)://\(host)\(port)" && text == text.lowercased() && !isUsual
  }

  /// The response to a preflight request, which a browser sends before a page's own request.
  ///
  /// - Parameter allow: the methods of the path; nil if it is unknown.
  /// - Returns: nil for any other request, and for an unknown path.
  func preflight(_ request: Request, allow: String?) -> Response? {
    guard request.method == .options, allowed(request) != nil, request.headers.contains(.accessControlRequestMethod),
      let allow
    else { return nil }
    return Response(
      status: .noContent,
      headers: [
        .accessControlAllowMethods: allow, .accessControlAllowHeaders: Self.requestHeaders,
        .accessControlMaxAge: "\(Self.preflightSeconds)",
      ])
  }

  /// Lets the page that has sent the request read the response.
  func expose(_ response: inout Response, to request: Request) {
    // A cache must not give one origin the response for another.
    if origins != nil { response.headers.append(HTTPField(name: .vary, value: "Origin")) }
    guard let origin = allowed(request) else { return }
    response.headers[.accessControlAllowOrigin] = origin
    response.headers[.accessControlExposeHeaders] = Self.responseHeaders
  }

  /// The origin that the response names; nil if the request has none or one that is not allowed.
  private func allowed(_ request: Request) -> String? {
    // Also without an Origin header: a cache may later serve this response to a page.
    guard let origins else { return "*" }
    guard let origin = request.headers.value(of: .origin) else { return nil }
    return origins.contains(origin) ? origin : nil
  }
}
