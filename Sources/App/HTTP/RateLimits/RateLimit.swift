import Foundation

/// How often one user, or one address without a user, may make requests of one kind: a token bucket.
enum RateLimit: String, CaseIterable, Sendable {
  case reads, writes, search, uploads, exports, refreshes, registrations
  /// Blocking and unblocking: a user under attack blocks many others at once, whatever they wrote before.
  case blocks
  /// Pictures and pages.
  case files
  /// Forms of pages for people without the app, per address.
  case forms
  /// Reports from the pages of share links, per address.
  case pageReports = "page-reports"
  /// Answers of new visitors, per share link.
  case visitors
  /// Writes with an `Idempotency-Key`, whose responses are kept for a day.
  case repeatable
  /// The same for blocks.
  case repeatableBlocks = "repeatable-blocks"

  /// The limit of requests of this kind with an `Idempotency-Key`.
  var ofRepeatable: RateLimit { self == .blocks ? .repeatableBlocks : .repeatable }

  /// The requests that may come at once.
  var burst: Int {
    switch self {
    case .reads: 100
    case .writes: 30
    case .search: 20
    case .blocks: 200
    case .uploads, .refreshes, .pageReports: 10
    case .exports: 4
    case .registrations, .forms: 60
    case .visitors: 600
    case .files: 1000
    case .repeatable, .repeatableBlocks: 2000
    }
  }

  /// The seconds in which an empty bucket fills up.
  var window: Int {
    switch self {
    case .reads, .files: 5
    case .writes: 6
    case .search: 4
    case .refreshes: 10
    case .blocks: 40
    case .forms, .visitors: 600
    case .uploads, .exports, .registrations, .pageReports: 3600
    case .repeatable, .repeatableBlocks: IdempotentRequest.lifetime
    }
  }

  /// Tokens per second.
  var rate: Double { Double(burst) / Double(window) }

  /// The state of a bucket after a request.
  struct State: Sendable {
    let limit: RateLimit
    /// Requests that may follow at once.
    let remaining: Int
    /// Seconds until the bucket is full.
    let reset: Int
    /// Seconds to wait, for a request that is refused.
    let wait: Int?

    /// The values of `RateLimit` and `RateLimit-Policy`, as in draft-ietf-httpapi-ratelimit-headers-10.
    var headers: (limit: String, policy: String) {
      let name = limit.rawValue
      return ("\"\(name)\";r=\(remaining);t=\(reset)", "\"\(name)\";q=\(limit.burst);w=\(limit.window)")
    }
  }
}
