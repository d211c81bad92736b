import HTTPTypes
import Hummingbird
import Postgres

extension Request {
  /// Whether an `If-None-Match` names this tag.
  func alreadyHas(_ eTag: String) -> Bool { EntityTags(.ifNoneMatch, of: self)?.contains(eTag) ?? false }

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
