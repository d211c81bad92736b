/// Joining events through share links.
public struct LinksAPI: Sendable {
  let caller: APICaller

  /// Makes the caller a guest of the event behind a link. For a guest, nothing changes. Answer the event afterwards.
  ///
  /// - Parameter token: the last part of the link's URL. See ``ShareLink/token(in:)``.
  /// - Throws: ``MusterError``: `link-not-found`, `link-only-shows`, `link-expired`, `link-full`, `own-event`,
  ///   `event-cancelled`, `event-archived`
  @discardableResult
  public func join(using token: String, key: IdempotencyKey = .random()) async throws -> Event {
    try await caller.get(.write(.joinByLink(token), key: key))
  }
}
