import HTTPTypes
import Hummingbird
import HummingbirdCore
import Postgres
import Synchronization

/// Limits how many validations with larger bodies than usual are in memory: a few per user, and some in total. Only
/// phones with more than a thousand items send such bodies.
///
/// A request takes its place before its body is read: a body is in memory while it arrives, so that places taken later
/// would bound nothing. A slow phone keeps one of its user's few places then.
final class LargeBodies: Sendable {
  /// In bytes: the digests of some 5,000 items.
  static let maximumLength = 256 << 10
  private static let maximum = 64
  private static let maximumPerUser = 4

  private let holders = Mutex<[User.ID: Int]>([:])

  /// Whether a request may have a large body: with `include=changes`, if the body's length is large or unknown.
  static func may(_ request: Request) -> Bool {
    // The length first, because nearly all bodies are short.
    let length = request.headers.value(of: .contentLength).flatMap { Int($0) }
    guard length.map({ $0 > Request.maximumBody }) ?? request.hasBody else { return false }
    return request.uri.queryParameters["include"] == "changes"
  }

  /// - Throws: ``AppError/tooManyLargeBodies``, before `body` begins.
  func hold<Value>(for user: User.ID, _ body: () async throws -> Value) async throws -> Value {
    try holders.withLock { holders in
      guard holders[user, default: 0] < Self.maximumPerUser, holders.values.reduce(0, +) < Self.maximum else {
        throw AppError.tooManyLargeBodies
      }
      holders[user, default: 0] += 1
    }
    defer {
      holders.withLock { holders in
        let rest = (holders[user] ?? 1) - 1
        holders[user] = rest > 0 ? rest : nil
      }
    }
    return try await body()
  }
}

extension AppError {
  static let claimsTooLarge = AppError(
    .tooLarge, "body-too-large", "With include=changes, the body must be at most 256 KiB.")
  static let tooManyLargeBodies = AppError(
    .unavailable, "busy", "Too many large validations are running. Try again later.", retryAfter: 1)
}
