import Foundation
import HTTPTypes
import Hummingbird
import Postgres

extension Request {
  /// Further tags in a header are ignored: then the response has a body that the client may already have. Clients send
  /// a few.
  private static let maximumTags = 100

  /// Whether an `If-None-Match` names this tag.
  func alreadyHas(_ eTag: String) -> Bool {
    headers[values: .ifNoneMatch].contains { value in
      // Split as bytes and into few parts, because a header may consist of thousands of commas.
      value.utf8.split(separator: UInt8(ascii: ","), maxSplits: Self.maximumTags).contains { candidate in
        let tag = String(Substring(candidate)).trimmingCharacters(in: .whitespaces).plainTag
        // RFC 9110 requires weak comparison for If-None-Match.
        return tag == "*" || tag == eTag || tag == "W/\(eTag)"
      }
    }
  }

  /// Responds with 304 if the client's copy of a collection is current, and reads only its stamp then. Otherwise runs
  /// `body`.
  ///
  /// - Parameter collection: nil for a list that is not a collection.
  func unlessUnchanged(
    _ collection: Collection?, of user: User.ID, in database: Database, _ body: () async throws -> Response
  ) async throws -> Response {
    guard let collection, headers[.ifNoneMatch] != nil, uri.queryParameters["cursor"] == nil,
      let stamp = try await Stamps.read(collection, of: user, in: database), alreadyHas(Stamp(stamp).eTag)
    else { return try await body() }
    return Response(status: .notModified, headers: [.eTag: Stamp(stamp).eTag])
  }
}
