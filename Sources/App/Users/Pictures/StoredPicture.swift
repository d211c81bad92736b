import Foundation
import HummingbirdCore
import NIOCore
import Postgres

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
  @concurrent func write(to writer: inout any ResponseBodyWriter, from database: Database) async throws {
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
    try await writer.finish(nil)
  }
}
