import Foundation

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

/// The share links of events that the caller hosts.
public struct EventLinksAPI: Sendable {
  let caller: APICaller

  /// All links of an event, oldest first, expired ones included.
  ///
  /// - Throws: ``MusterError``: `event-not-found`, `not-a-host`
  public func list(of event: Event.ID) async throws -> [ShareLink] {
    let page: Page<ShareLink> = try await caller.get(.read(.listLinks(event)))
    return page.items
  }

  /// - Throws: ``MusterError``: `event-not-found`, `link-not-found`, `not-a-host`
  public func get(_ id: ShareLink.ID, of event: Event.ID) async throws -> ShareLink {
    try await caller.get(.read(.getLink(event, id)))
  }

  /// Creates a link. An event has at most 20.
  ///
  /// - Throws: ``MusterError``: `event-not-found`, `not-a-host`, `too-many-links`, `event-cancelled`,
  ///   `event-archived`, `invalid-fields`
  public func create(
    _ draft: ShareLinkDraft, for event: Event.ID, key: IdempotencyKey = .random()
  ) async throws -> ShareLink {
    try await caller.get(.write(.createLink(event), draft, key: key))
  }

  /// Changes a link. Its URL stays the same.
  ///
  /// - Throws: ``MusterError``: `event-not-found`, `link-not-found`, `not-a-host`, `event-cancelled`,
  ///   `event-archived`, `invalid-fields`
  @discardableResult
  public func edit(
    _ id: ShareLink.ID, of event: Event.ID, applying edit: ShareLinkEdit, key: IdempotencyKey = .random()
  ) async throws -> ShareLink {
    try await caller.get(.write(.editLink(event, id), edit, key: key))
  }

  /// Revokes a link for good. Users who have joined stay.
  ///
  /// - Parameter removingVisitors: whether to also remove the visitors who came through it. That also works for a link
  ///   that was revoked before.
  /// - Throws: ``MusterError``: `event-not-found`, `not-a-host`; if visitors are removed, `event-cancelled`,
  ///   `event-archived`
  public func revoke(
    _ id: ShareLink.ID, of event: Event.ID, removingVisitors: Bool = false, key: IdempotencyKey = .random()
  ) async throws {
    var call = APICall.write(.revokeLink(event, id), key: key)
    if removingVisitors { call.query = [("visitors", "remove")] }
    try await caller.send(call)
  }
}
