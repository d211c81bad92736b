import Postgres
import Synchronization

/// Bounds how many pictures are in memory on their way in: one of each user, and some in all. How long one may hold its
/// place is up to ``ConnectionLimits/uploadSeconds``.
final class Uploads: Sendable {
  private static let maximum = 32

  private let uploading = Mutex<Set<User.ID>>([])

  /// - Throws: ``AppError/uploadInProgress`` or ``AppError/tooManyUploads``, before `body` begins.
  func hold<Value>(for user: User.ID, _ body: () async throws -> Value) async throws -> Value {
    try uploading.withLock { users in
      guard !users.contains(user) else { throw AppError.uploadInProgress }
      guard users.count < Self.maximum else { throw AppError.tooManyUploads }
      users.insert(user)
    }
    defer { uploading.withLock { _ = $0.remove(user) } }
    return try await body()
  }
}

extension AppError {
  static let tooManyUploads = AppError(
    .unavailable, "busy", "The service receives too many pictures at the moment: try again later.", retryAfter: 2)
  static let uploadInProgress = AppError(
    .tooManyRequests, "upload-in-progress", "You are sending a picture already: wait until it has arrived.",
    retryAfter: 2)
}
