import Crypto
import Foundation
import HTTPServer
import Postgres

/// A user's picture. Its owner and bytes are in one table behind these few functions, so that they can move to an object
/// store without a change elsewhere.
struct Picture: Sendable {
  static let maximumLength = Operation.putPicture.attributes.maximumBody
  /// In bytes.
  static let keyLength = 18

  /// Of the file that was uploaded, which is not kept.
  private let digest: Data
  private let sizes: DecodedPicture

  /// Makes the sizes of an uploaded file.
  ///
  /// - Throws: the errors of ``PictureDecoder/decode(_:)``.
  init(_ upload: UploadedPicture, decodedBy decoder: PictureDecoder) async throws {
    digest = upload.digest
    sizes = try await decoder.decode(upload.bytes)
  }

  /// A picture whose sizes were made before.
  init(_ sizes: DecodedPicture) {
    digest = Data(SHA256.hash(data: sizes.full))
    self.sizes = sizes
  }

  /// Makes it the user's picture. It replaces the previous one, whose URL then stops working. The same picture again
  /// changes nothing.
  ///
  /// - Parameters:
  ///   - key: names the picture in its URL. Only a random key keeps the picture from those without the URL.
  ///   - tags: the stamps of the profile that the client has read. With another one, a change gets 412.
  /// - Throws: ``AppError/sessionEnded`` if there is no account; ``AppError/lostUpdate``
  func put(
    of user: User.ID, key: String = Picture.freshKey(), ifStampIn tags: EntityTags? = nil, in change: Change
  ) async throws {
    // As for a new name: a change that befriends or invites this user waits, or is seen below.
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    // Another upload may have come before.
    let present: Data? = try await change.value("SELECT digest FROM pictures WHERE user_id = \(user)")
    guard present != digest else { return }
    try await User.check(tags, of: user, in: change)
    try change.lockEvents(thatShow: user)
    let url = "/pictures/\(key)"
    try await change.pipeline(
      """
      INSERT INTO pictures (user_id, key, digest, jpeg_192, jpeg_768, jpeg_2048)
      VALUES (\(user), \(key), \(digest), \(sizes.small), \(sizes.large), \(sizes.full))
      ON CONFLICT (user_id) DO UPDATE
      SET key = excluded.key, digest = excluded.digest, jpeg_192 = excluded.jpeg_192, jpeg_768 = excluded.jpeg_768,
        jpeg_2048 = excluded.jpeg_2048, created_at = now()
      """,
      "UPDATE users SET picture_url = \(url), updated_at = clock_timestamp() WHERE id = \(user)")
    try change.touchWhoSees(user)
  }

  /// Removes a user's picture. Does nothing if there is none.
  ///
  /// - Parameter tags: as for ``put(of:key:ifStampIn:in:)``.
  /// - Throws: ``AppError/sessionEnded`` if there is no account; ``AppError/lostUpdate``
  static func remove(of user: User.ID, ifStampIn tags: EntityTags? = nil, in change: Change) async throws {
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    guard try await change.first("SELECT 1 FROM pictures WHERE user_id = \(user)") != nil else { return }
    try await User.check(tags, of: user, in: change)
    try change.lockEvents(thatShow: user)
    try await change.pipeline(
      "DELETE FROM pictures WHERE user_id = \(user)",
      "UPDATE users SET picture_url = NULL, updated_at = clock_timestamp() WHERE id = \(user)")
    try change.touchWhoSees(user)
  }

  private static func freshKey() -> String {
    var random = SystemRandomNumberGenerator()
    return Data((0..<keyLength).map { _ in UInt8.random(in: .min ... .max, using: &random) }).base64URL
  }
}

/// A file as a user has sent it.
struct UploadedPicture: Sendable {
  let bytes: [UInt8]
  /// SHA-256.
  let digest: Data

  init(_ buffer: ByteBuffer) {
    bytes = Array(buffer.readableBytesView)
    digest = Data(SHA256.hash(data: bytes))
  }

  /// Whether the user has this picture at the moment.
  func isPicture(of user: User.ID, in database: some Querying) async throws -> Bool {
    try await database.first("SELECT 1 FROM pictures WHERE user_id = \(user) AND digest = \(digest)") != nil
  }
}

extension AppError {
  static let pictureNotFound = AppError(.notFound, "picture-not-found", "This picture does not exist, or was replaced.")
  static let pictureTooLarge = AppError(
    .tooLarge, "body-too-large", "A picture may be at most \(Picture.maximumLength >> 20) MiB.")
  static let notAPicture = AppError(
    .unsupportedMediaType, "unsupported-media-type",
    "The body must be a complete JPEG, PNG, WebP or HEIC picture, at most \(PictureDecoder.longestSide) pixels a side.")
}

/// A size in which every picture is available, named as in the query of its URL.
enum PictureSize: String, CaseIterable, Sendable {
  case small = "192"
  case large = "768"
  /// Also without a size in the URL.
  case full = "2048"

  /// The maximum number of pixels of the longer side.
  var side: Int {
    switch self {
    case .small: 192
    case .large: 768
    case .full: 2048
    }
  }

  /// In bytes. Noise of 768 by 768 pixels has 390 KB, and noise of 2048 by 2048 pixels 2.8 MB.
  var maximumLength: Int { self == .full ? 4 << 20 : 1 << 20 }

  /// The column with the bytes.
  var column: SQL {
    switch self {
    case .small: "jpeg_192"
    case .large: "jpeg_768"
    case .full: "jpeg_2048"
    }
  }
}

/// A stored picture in one of its sizes, with its first bytes.
struct StoredPicture: Sendable {
  let key: String
  let size: PictureSize
  let length: Int
  let beginning: Data

  /// Bytes per part. A picture is read in parts, so that it does not delay other reads, and does not fill the memory
  /// while a slow client receives it. Most pictures are one part.
  private static let partLength = 128 << 10

  /// - Parameter isShown: whether the picture will be sent. Otherwise none of its bytes are read.
  /// - Throws: ``AppError/pictureNotFound`` if there is no picture with this key, or no longer.
  static func find(
    _ key: String, _ size: PictureSize, isShown: Bool, in database: Database
  ) async throws -> StoredPicture {
    // Nothing else is a key, and PostgreSQL cannot store every text.
    guard key.utf8.count == 24, Data(base64URL: key) != nil else { throw AppError.pictureNotFound }
    let bytes = size.column
    let part: SQL = isShown ? "substring(\(bytes) FROM 1 FOR \(Int32(partLength)))" : "''::bytea"
    let row = try await database.first(
      "SELECT octet_length(\(bytes)) AS length, \(part) AS part FROM pictures WHERE key = \(key)")
    guard let row else { throw AppError.pictureNotFound }
    return StoredPicture(key: key, size: size, length: try row["length"], beginning: try row["part"])
  }

  /// Sends the whole picture, as fast as the client takes it.
  ///
  /// - Throws: ``AppError/pictureNotFound`` if it was replaced meanwhile.
  @concurrent func write(to writer: any ResponseBodyWriter, from database: Database) async throws {
    try await writer.write(ByteBuffer(bytes: beginning))
    var place = beginning.count
    while place < length {
      let part: Data? = try await database.value(
        """
        SELECT substring(\(size.column) FROM \(Int32(place + 1)) FOR \(Int32(Self.partLength)))
        FROM pictures WHERE key = \(key)
        """)
      guard let part, !part.isEmpty else { throw AppError.pictureNotFound }
      place += part.count
      try await writer.write(ByteBuffer(bytes: part))
    }
    writer.finish()
  }
}
