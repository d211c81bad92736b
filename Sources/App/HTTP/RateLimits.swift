import Foundation
import HTTPServer
import Postgres
import Synchronization

/// The token buckets of this process. Each of several processes counts alone, so each allows its share.
final class RateLimits: Sendable {
  /// Whose requests a bucket counts.
  enum Subject: Hashable, Sendable {
    case user(User.ID)
    case session(Session.ID)
    case address(String)
    case link(ShareLink.ID)
  }

  private struct Key: Hashable {
    let limit: RateLimit
    let subject: Subject
  }

  private struct Bucket {
    var tokens: Double
    var filledAt: ContinuousClock.Instant
  }

  /// Bounds the memory: some 10 MB.
  private static let maximumBuckets = 100_000

  private let isOn: Bool
  private let processes: Int
  private let buckets = Mutex<[Key: Bucket]>([:])

  /// - Parameter processes: over which the requests of each subject are spread.
  init(isOn: Bool, processes: Int = 1) {
    self.isOn = isOn
    self.processes = processes
  }

  /// The number of buckets.
  var count: Int { buckets.withLock { $0.count } }

  /// Counts requests: all of them, or none.
  ///
  /// - Returns: nil if the limits are off.
  func take(
    _ limit: RateLimit, count: Int = 1, of subject: Subject, at now: ContinuousClock.Instant = .now
  ) -> RateLimit.State? {
    guard isOn else { return nil }
    let share = limit.share(ofOneIn: processes)
    // A group costs at most a full bucket. Otherwise it would never be allowed.
    let cost = Double(min(count, share.burst))
    return buckets.withLock { buckets in
      let key = Key(limit: limit, subject: subject)
      if buckets[key] == nil, buckets.count >= Self.maximumBuckets { forget(&buckets, at: now) }
      var bucket = buckets[key] ?? Bucket(tokens: Double(share.burst), filledAt: now)
      bucket.tokens = tokens(in: bucket, limit, at: now)
      bucket.filledAt = now
      let isAllowed = bucket.tokens >= cost
      if isAllowed { bucket.tokens -= cost }
      buckets[key] = bucket
      return RateLimit.State(
        limit: limit, share: share, remaining: Int(bucket.tokens),
        reset: share.seconds(for: Double(share.burst) - bucket.tokens),
        wait: isAllowed ? nil : max(1, share.seconds(for: cost - bucket.tokens)))
    }
  }

  /// Forgets a counted request.
  fileprivate func giveBack(_ limit: RateLimit, to subject: Subject) {
    buckets.withLock { buckets in
      let key = Key(limit: limit, subject: subject)
      let burst = Double(limit.share(ofOneIn: processes).burst)
      if let tokens = buckets[key]?.tokens { buckets[key]?.tokens = min(burst, tokens + 1) }
    }
  }

  private func tokens(in bucket: Bucket, _ limit: RateLimit, at now: ContinuousClock.Instant) -> Double {
    let share = limit.share(ofOneIn: processes)
    let seconds = max(0, (now - bucket.filledAt) / .seconds(1))
    return min(Double(share.burst), bucket.tokens + seconds * Double(share.burst) / Double(share.window))
  }

  /// Makes room for a tenth more. Full buckets are the same as new ones. If too many are in use, buckets of addresses
  /// go first: a user has one address or a few, but an attacker may have many.
  private func forget(_ buckets: inout [Key: Bucket], at now: ContinuousClock.Instant) {
    buckets = buckets.filter {
      tokens(in: $1, $0.limit, at: now) < Double($0.limit.share(ofOneIn: processes).burst)
    }
    var excess = buckets.count - Self.maximumBuckets / 10 * 9
    guard excess > 0 else { return }
    buckets = buckets.filter { key, _ in
      guard excess > 0, case .address = key.subject else { return true }
      excess -= 1
      return false
    }
    if buckets.count >= Self.maximumBuckets { buckets = [:] }
  }
}

extension RateLimits {
  /// Counts requests of the caller, or of the client's address if there is no caller: all of them, or none.
  ///
  /// - Throws: `rate-limited`
  func count(_ limit: RateLimit, times: Int = 1, in context: Context) throws {
    if let caller = context.caller { return try count(limit, times: times, of: .user(caller.user), in: context) }
    let address = context.address
    try count(limit, times: times, of: .address(IPAddress(address)?.network ?? address), in: context)
  }

  /// Forgets a request of the caller that failed through no fault of theirs, and that they are asked to repeat.
  func giveBack(_ limit: RateLimit, in context: Context) {
    if let caller = context.caller { giveBack(limit, to: .user(caller.user)) }
  }

  func count(_ limit: RateLimit, times: Int = 1, of subject: Subject, in context: Context) throws {
    guard let state = take(limit, count: times, of: subject) else { return }
    context.note(state)
    if let wait = state.wait { throw AppError.rateLimited(retryAfter: wait) }
  }
}

extension HTTPField.Name {
  static let rateLimit = HTTPField.Name("RateLimit")!
  static let rateLimitPolicy = HTTPField.Name("RateLimit-Policy")!
}

extension AppError {
  static func rateLimited(retryAfter seconds: Int) -> AppError {
    AppError(.tooManyRequests, "rate-limited", "Too many requests. Slow down.", retryAfter: seconds)
  }
}

/// How often one user, or one address without a user, may make requests of one kind, in all processes together: a
/// token bucket.
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

  /// The part of a limit that one process allows.
  struct Share: Sendable {
    let burst: Int
    let window: Int

    /// The time until as many tokens have come back, rounded up.
    fileprivate func seconds(for tokens: Double) -> Int {
      Int((tokens * Double(window) / Double(burst)).rounded(.up))
    }
  }

  /// At least one request in each window.
  func share(ofOneIn processes: Int) -> Share {
    Share(burst: (burst + processes - 1) / processes, window: window)
  }

  /// The state of a bucket after a request.
  struct State: Sendable {
    let limit: RateLimit
    let share: Share
    /// Requests that may follow at once.
    let remaining: Int
    /// Seconds until the bucket is full.
    let reset: Int
    /// Seconds to wait, for a request that is refused.
    let wait: Int?

    /// The values of `RateLimit` and `RateLimit-Policy`, as in draft-ietf-httpapi-ratelimit-headers-10.
    var headers: (limit: String, policy: String) {
      let name = limit.rawValue
      return ("\"\(name)\";r=\(remaining);t=\(reset)", "\"\(name)\";q=\(share.burst);w=\(share.window)")
    }
  }
}
