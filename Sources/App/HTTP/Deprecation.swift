import Postgres

/// The end of a route, announced in its responses (RFC 9745, RFC 8594).
struct Deprecation: Sendable {
  let since: Timestamp
  /// A year after `since` at the earliest. From then on, the route may be gone.
  let sunset: Timestamp

  /// The values of `Deprecation` and `Sunset`.
  var headers: (since: String, sunset: String) {
    ("@\(since.microseconds / 1_000_000)", sunset.httpDate)
  }
}
