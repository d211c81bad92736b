import Crypto
import Foundation
import Postgres

/// The tokens that the form of a share link sends back: the link, the time, and the id of the visitor that the form
/// creates. Sending a form twice makes one answer. A form that was never shown is refused. Forms need no cookie.
struct FormTokens: Sendable {
  /// In seconds.
  static let lifetime = 24 * 3600
  private static let label = "mf1"

  private let keys: SigningKeys

  init(keys: SigningKeys) {
    self.keys = keys
  }

  struct Content: Sendable {
    let link: ShareLink.ID
    let visitor: Visitor.ID
    let isExpired: Bool
  }

  func token(for link: ShareLink.ID, _ visitor: Visitor.ID = .new(), at now: Timestamp = .now()) -> String? {
    keys.token(Self.label, Data(packing: link, visitor, now.microseconds), kid: keys.signing.kid)
  }

  /// Deletes the ids of spent forms that have expired anyway.
  ///
  /// - Returns: how many it deleted.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("spent_forms", by: "expires_at", upTo: "now()", atMost: limit)
  }

  /// Nil unless one of the keys made the token.
  func read(_ token: String, at now: Timestamp = .now()) -> Content? {
    guard token.utf8.count <= 200, let (_, content) = keys.read(token, Self.label),
      let (link, visitor, time) = content.unpacked(as: ShareLink.ID.self, Visitor.ID.self, Int64.self)
    else { return nil }
    return Content(
      link: link, visitor: visitor,
      isExpired: Timestamp(microseconds: time).adding(seconds: Self.lifetime) < now)
  }
}
