import HummingbirdCore
import NIOCore
import Postgres

/// Everything stored about one user, as a JSON document that is generated while it is sent. It is read in pages, and
/// holds no connection while the client reads, so concurrent changes may or may not show.
struct Export: Sendable {
  private let user: User.ID
  private let profile: String
  private let database: Database
  /// Each user gets one export at a time from this process, because it reads all of their data.
  private let place: PerUser.Place

  static let pageLength = 500

  /// - Throws: ``AppError/sessionEnded`` if there is no account, or ``AppError/exportRunning``.
  init(of user: User.ID, turns: PerUser, in database: Database) async throws {
    do {
      place = try turns.take(for: user)
    } catch {
      throw AppError.exportRunning
    }
    let row = try await database.slow.first(Section.profile.page(of: user, after: Section.profile.key.first))
    guard let row else { throw AppError.sessionEnded }
    self.user = user
    self.database = database
    profile = try row["item"]
  }

  /// Sends the document, page by page, as fast as the client takes it.
  ///
  /// - Throws: ``AppError/sessionEnded``, before the end of the document, if the account was deleted meanwhile.
  @concurrent func write(to writer: inout any ResponseBodyWriter) async throws {
    var bytes = ByteBuffer(string: #"{"exportedAt":"\#(Timestamp.now().rfc3339())","profile":\#(profile)"#)
    for section in Section.all {
      bytes.writeString(",\"\(section.name)\":[")
      var separator = ""
      var place: String? = section.key.first
      while let after = place {
        let rows = try await database.slow.rows(section.page(of: user, after: after))
        for row in rows {
          bytes.writeString(separator)
          bytes.writeString(try row["item"])
          separator = ","
        }
        place = try rows.count < Self.pageLength ? nil : rows.last?["place"]
        try await writer.write(bytes)
        bytes.clear()
      }
      bytes.writeString("]")
    }
    // Pages that were read after a deletion are empty. The document must not look complete.
    guard try await database.slow.first("SELECT 1 FROM users WHERE id = \(user)") != nil else {
      throw AppError.sessionEnded
    }
    // A client that has the complete document may ask for the next one.
    place.end()
    bytes.writeString("}")
    try await writer.write(bytes)
    try await writer.finish(nil)
  }
}

extension AppError {
  static let exportRunning = AppError(
    .conflict, "export-running", "Another export is running. Wait until it finishes.")
}
