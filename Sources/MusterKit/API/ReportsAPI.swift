import Foundation

/// Reports to the operators. The reported user is not notified.
public struct ReportsAPI: Sendable {
  let caller: APICaller

  /// Reports a user, an event or a visitor.
  ///
  /// - Parameters:
  ///   - text: at most 2,000 characters, in the caller's own words.
  ///   - id: of the new report. With it, the call can be repeated at any age.
  /// - Throws: ``MusterError``: `event-not-found`, `guest-not-found`, `too-many-reports`, `id-taken`
  @discardableResult
  public func report(
    _ subject: Report.Subject, reason: ReportReason, text: String? = nil, id: Report.ID? = nil,
    key: IdempotencyKey = .random()
  ) async throws -> Report {
    switch subject {
    case .user(let user): try await send(UserReport(id: id, userId: user, reason: reason, text: text), key)
    case .event(let event): try await send(EventReport(id: id, eventId: event, reason: reason, text: text), key)
    case .guest(let guest): try await send(GuestReport(id: id, guestId: guest, reason: reason, text: text), key)
    }
  }

  /// Reports a user. Every id is accepted, also of a user who has blocked the caller or deleted the account.
  ///
  /// - Parameter text: at most 2,000 characters, in the caller's own words.
  /// - Throws: ``MusterError``: `too-many-reports`
  @discardableResult
  public func report(
    user userID: User.ID, reason: ReportReason, text: String? = nil, key: IdempotencyKey = .random()
  ) async throws -> Report {
    try await report(.user(userID), reason: reason, text: text, key: key)
  }

  /// Reports an event. Report it before you block its creator, because a block hides it.
  ///
  /// - Parameter text: at most 2,000 characters, in the caller's own words.
  /// - Throws: ``MusterError``: `event-not-found`, `too-many-reports`
  @discardableResult
  public func report(
    event id: Event.ID, reason: ReportReason, text: String? = nil, key: IdempotencyKey = .random()
  ) async throws -> Report {
    try await report(.event(id), reason: reason, text: text, key: key)
  }

  /// Reports a visitor: a guest without an account, in a guest list that the caller sees.
  ///
  /// - Parameter text: at most 2,000 characters, in the caller's own words.
  /// - Throws: ``MusterError``: `guest-not-found`, `too-many-reports`
  @discardableResult
  public func report(
    guest id: Guest.ID, reason: ReportReason, text: String? = nil, key: IdempotencyKey = .random()
  ) async throws -> Report {
    try await report(.guest(id), reason: reason, text: text, key: key)
  }

  private func send(_ draft: some Encodable, _ key: IdempotencyKey) async throws -> Report {
    try await caller.get(.write(.report, draft, key: key))
  }
}

extension Report {
  /// The thing that a report is about.
  public enum Subject: Codable, Sendable, Hashable {
    case user(User.ID)
    case event(Event.ID)
    /// A visitor: a guest without an account.
    case guest(Guest.ID)

    // The names on the disk: see ``Write``.
    enum UserCodingKeys: String, CodingKey { case _0 = "id" }
    enum EventCodingKeys: String, CodingKey { case _0 = "id" }
    enum GuestCodingKeys: String, CodingKey { case _0 = "id" }

    var id: UUID {
      switch self {
      case .user(let id): id.rawValue
      case .event(let id): id.rawValue
      case .guest(let id): id.rawValue
      }
    }
  }
}
