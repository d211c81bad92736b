import HTTPServer

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
