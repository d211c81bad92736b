import Foundation

/// Reports to the operators. The reported user is not notified.
public struct ReportsAPI: Sendable {
  let caller: APICaller

  /// Reports a user. Every id is accepted, also of a user who has blocked the caller or deleted the account.
  ///
  /// - Parameter text: at most 2,000 characters, in the caller's own words.
  /// - Throws: ``MusterError``: `too-many-reports`
  @discardableResult
  public func report(
    user userID: User.ID, reason: ReportReason, text: String? = nil, key: IdempotencyKey = .random()
  ) async throws -> Report {
    try await send(UserReport(userId: userID, reason: reason, text: text), key)
  }

  /// Reports an event. Report it before you block its creator, because a block hides it.
  ///
  /// - Parameter text: at most 2,000 characters, in the caller's own words.
  /// - Throws: ``MusterError``: `event-not-found`, `too-many-reports`
  @discardableResult
  public func report(
    event id: Event.ID, reason: ReportReason, text: String? = nil, key: IdempotencyKey = .random()
  ) async throws -> Report {
    try await send(EventReport(eventId: id, reason: reason, text: text), key)
  }

  /// Reports a visitor: a guest without an account, in a guest list that the caller sees.
  ///
  /// - Parameter text: at most 2,000 characters, in the caller's own words.
  /// - Throws: ``MusterError``: `guest-not-found`, `too-many-reports`
  @discardableResult
  public func report(
    guest id: Guest.ID, reason: ReportReason, text: String? = nil, key: IdempotencyKey = .random()
  ) async throws -> Report {
    try await send(GuestReport(guestId: id, reason: reason, text: text), key)
  }

  private func send(_ draft: some Encodable, _ key: IdempotencyKey) async throws -> Report {
    try await caller.get(.write(.report, draft, key: key))
  }
}
