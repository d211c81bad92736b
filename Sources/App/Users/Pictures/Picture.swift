import Crypto
import Foundation
import NIOCore
import Postgres

/// Somebody's picture. Who it is of, its bytes and what they are live in one table behind these few verbs, so that they
/// can move to an object store without anybody noticing.
struct Picture: Sendable {
  static let maximumLength = 2 << 20

  let format: PictureFormat
  private let bytes: Data

  /// Keeps of a file what ``CleanPicture`` does.
  ///
  /// - Throws: ``AppError/notAPicture`` unless the bytes are a whole picture of a kind that the service takes.
  init(_ buffer: ByteBuffer) throws {
    guard let clean = CleanPicture(of: Array(buffer.readableBytesView)) else { throw AppError.notAPicture }
    // What keeps the orientation may take a few bytes more than before.
    guard clean.bytes.count <= Self.maximumLength else { throw AppError.pictureTooLarge }
    format = clean.format
    bytes = Data(clean.bytes)
  }

  /// Makes it somebody's picture in place of the one before, whose URL leads nowhere from then on. The picture that they
  /// have already changes nothing.
  ///
  /// - Throws: ``AppError/sessionEnded`` without an account.
  func put(of user: User.ID, in change: Change) async throws {
    // As for a new name: who befriends or invites this person at the moment waits, or is seen below.
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    let digest = Data(SHA256.hash(data: bytes))
    let present: Data? = try await change.value("SELECT digest FROM pictures WHERE user_id = \(user)")
    guard present != digest else { return }
    try await change.lockEvents(thatShow: user)
    let key = Self.freshKey()
    let url = "/pictures/\(key)"
    try await change.pipeline(
      """
      INSERT INTO pictures (user_id, key, type, digest, bytes)
      VALUES (\(user), \(key), \(format), \(digest), \(bytes))
      ON CONFLICT (user_id) DO UPDATE
      SET key = excluded.key, type = excluded.type, digest = excluded.digest, bytes = excluded.bytes,
        created_at = now()
      """,
      "UPDATE users SET picture_url = \(url), updated_at = clock_timestamp() WHERE id = \(user)")
    change.touchWhoSees(user)
  }

  /// Takes somebody's picture away. Without one this changes nothing.
  ///
  /// - Throws: ``AppError/sessionEnded`` without an account.
  static func remove(of user: User.ID, in change: Change) async throws {
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    guard try await change.first("SELECT 1 FROM pictures WHERE user_id = \(user)") != nil else { return }
    try await change.lockEvents(thatShow: user)
    try await change.pipeline(
      "DELETE FROM pictures WHERE user_id = \(user)",
      "UPDATE users SET picture_url = NULL, updated_at = clock_timestamp() WHERE id = \(user)")
    change.touchWhoSees(user)
  }

  /// 144 random bits.
  private static func freshKey() -> String {
    var random = SystemRandomNumberGenerator()
    return Data((0..<18).map { _ in UInt8.random(in: .min ... .max, using: &random) }).base64URL
  }
}

extension AppError {
  static let pictureNotFound = AppError(.notFound, "picture-not-found", "There is no such picture, or not any more.")
  static let pictureTooLarge = AppError(.tooLarge, "body-too-large", "A picture has at most 2 MiB.")
  static let notAPicture = AppError(
    .unsupportedMediaType, "unsupported-media-type",
    "The body must be a whole picture: JPEG, PNG, WebP or HEIC, of at most \(CleanPicture.longestSide) pixels a side.")
}
