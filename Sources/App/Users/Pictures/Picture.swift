import Crypto
import Foundation
import NIOCore
import Postgres

/// A user's picture. Its owner, bytes and type are in one table behind these few functions, so that they can move to an
/// object store without a change elsewhere.
struct Picture: Sendable {
  static let maximumLength = 2 << 20
  /// In bytes.
  static let keyLength = 18

  let format: PictureFormat
  private let bytes: Data
  private let small: Data
  private let large: Data

  /// The parts of a file that ``CleanPicture`` keeps.
  ///
  /// - Throws: ``AppError/notAPicture`` unless the bytes are a complete picture in a supported format.
  static func cleaned(_ buffer: ByteBuffer) throws -> CleanPicture {
    guard let clean = CleanPicture(of: Array(buffer.readableBytesView)) else { throw AppError.notAPicture }
    // Keeping the orientation may add a few bytes.
    guard clean.bytes.count <= maximumLength else { throw AppError.pictureTooLarge }
    return clean
  }

  /// Makes the sizes.
  ///
  /// - Throws: the errors of ``PictureResizer/resize(_:)``.
  init(_ clean: CleanPicture, resizedBy resizer: PictureResizer) async throws {
    format = clean.format
    bytes = Data(clean.bytes)
    let sizes = try await resizer.resize(clean.bytes)
    (small, large) = (Data(sizes.small), Data(sizes.large))
  }

  /// A picture whose sizes were made before.
  init(_ clean: CleanPicture, small: Data, large: Data) {
    (format, bytes, self.small, self.large) = (clean.format, Data(clean.bytes), small, large)
  }

  /// Makes it the user's picture. It replaces the previous one, whose URL then stops working. The same picture again
  /// changes nothing.
  ///
  /// - Parameter key: names the picture in its URL. Only a random key keeps the picture from those without the URL.
  /// - Throws: ``AppError/sessionEnded`` if there is no account.
  func put(of user: User.ID, key: String = Picture.freshKey(), in change: Change) async throws {
    // As for a new name: a change that befriends or invites this user waits, or is seen below.
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    let digest = Data(SHA256.hash(data: bytes))
    // Another upload may have come before.
    let present: Data? = try await change.value("SELECT digest FROM pictures WHERE user_id = \(user)")
    guard present != digest else { return }
    try await change.lockEvents(thatShow: user)
    let url = "/pictures/\(key)"
    try await change.pipeline(
      """
      INSERT INTO pictures (user_id, key, type, digest, bytes, jpeg_192, jpeg_768)
      VALUES (\(user), \(key), \(format), \(digest), \(bytes), \(small), \(large))
      ON CONFLICT (user_id) DO UPDATE
      SET key = excluded.key, type = excluded.type, digest = excluded.digest, bytes = excluded.bytes,
        jpeg_192 = excluded.jpeg_192, jpeg_768 = excluded.jpeg_768, created_at = now()
      """,
      "UPDATE users SET picture_url = \(url), updated_at = clock_timestamp() WHERE id = \(user)")
    change.touchWhoSees(user)
  }

  /// Removes a user's picture. Does nothing if there is none.
  ///
  /// - Throws: ``AppError/sessionEnded`` if there is no account.
  static func remove(of user: User.ID, in change: Change) async throws {
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    guard try await change.first("SELECT 1 FROM pictures WHERE user_id = \(user)") != nil else { return }
    try await change.lockEvents(thatShow: user)
    try await change.pipeline(
      "DELETE FROM pictures WHERE user_id = \(user)",
      "UPDATE users SET picture_url = NULL, updated_at = clock_timestamp() WHERE id = \(user)")
    change.touchWhoSees(user)
  }

  static func freshKey() -> String {
    var random = SystemRandomNumberGenerator()
    return Data((0..<keyLength).map { _ in UInt8.random(in: .min ... .max, using: &random) }).base64URL
  }
}

extension CleanPicture {
  /// Whether the user has this picture at the moment.
  func isPicture(of user: User.ID, in database: some Querying) async throws -> Bool {
    let digest = Data(SHA256.hash(data: bytes))
    return try await database.first("SELECT 1 FROM pictures WHERE user_id = \(user) AND digest = \(digest)") != nil
  }
}

extension AppError {
  static let pictureNotFound = AppError(.notFound, "picture-not-found", "This picture does not exist, or was replaced.")
  static let pictureTooLarge = AppError(.tooLarge, "body-too-large", "A picture may have at most 2 MiB.")
  static let notAPicture = AppError(
    .unsupportedMediaType, "unsupported-media-type",
    "The body must be a complete JPEG, PNG, WebP or HEIC picture, at most \(CleanPicture.longestSide) pixels a side.")
}
