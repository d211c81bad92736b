import Postgres
import Synchronization

/// Limits how many uploads are in memory: one per user, and some in total. ``ConnectionLimits/uploadSeconds`` and
/// the patience of ``PictureDecoder`` limit how long an upload may keep its place.
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
    .unavailable, "busy", "Too many pictures are being uploaded. Try again later.", retryAfter: 2)
  static let uploadInProgress = AppError(
    .tooManyRequests, "upload-in-progress", "Your previous picture is still being processed. Try again later.",
    retryAfter: 2)
}
