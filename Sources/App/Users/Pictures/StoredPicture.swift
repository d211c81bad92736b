import Foundation
import HummingbirdCore
import NIOCore
import Postgres

/// A stored picture, and its beginning.
struct StoredPicture: Sendable {
  let key: String
  let type: String
  let length: Int
  let beginning: Data

  /// A picture is read in parts of so many bytes, so that it neither holds up the reads of others nor waits in memory,
  /// whole, for a slow client. Most are one part.
  private static let partLength = 128 << 10

  /// - Parameter isShown: whether it will be sent. Otherwise nothing of its bytes is read.
  /// - Throws: ``AppError/pictureNotFound``: there is none of this key, or not any more.
  static func find(_ key: String, isShown: Bool, in database: Database) async throws -> StoredPicture {
    // Nothing else is a key, and not all else has a form in PostgreSQL.
    guard key.utf8.count == 24, Data(base64URL: key) != nil else { throw AppError.pictureNotFound }
    let part: SQL = isShown ? "substring(bytes FROM 1 FOR \(Int32(partLength)))" : "''::bytea"
    let row = try await database.first(
      "SELECT type, octet_length(bytes) AS length, \(part) AS part FROM pictures WHERE key = \(key)")
    guard let row else { throw AppError.pictureNotFound }
    return StoredPicture(key: key, type: try row["type"], length: try row["length"], beginning: try row["part"])
  }

  /// Sends all of it, as fast as the client takes it.
  ///
  /// - Throws: ``AppError/pictureNotFound`` if it was replaced meanwhile.
  func write(to writer: inout any ResponseBodyWriter, from database: Database) async throws {
    try await writer.write(ByteBuffer(bytes: beginning))
    var place = beginning.count
    while place < length {
      let part: Data? = try await database.value(
        """
        SELECT substring(bytes FROM \(Int32(place + 1)) FOR \(Int32(Self.partLength)))
        FROM pictures WHERE key = \(key)
        """)
      guard let part, !part.isEmpty else { throw AppError.pictureNotFound }
      place += part.count
      try await writer.write(ByteBuffer(bytes: part))
    }
    try await writer.finish(nil)
  }
}
