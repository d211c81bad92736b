import Foundation

/// The caller's own account.
public struct MeAPI: Sendable {
  let caller: APICaller

  /// The profile: the collection `profile`.
  public func get() async throws -> User {
    try await caller.get(.read(.getMe))
  }

  /// Changes the profile.
  ///
  /// - Parameter stamp: that of the profile that the edit is based on. Without it, the last edit wins.
  /// - Throws: ``MusterError``: `lost-update`, `username-taken`, `email-taken`, `too-many-usernames`, `wrong-password`,
  ///   `wrong-code`, `invalid-fields`
  @discardableResult
  public func edit(
    _ edit: ProfileEdit, ifStamp stamp: Stamp? = nil, key: IdempotencyKey = .random()
  ) async throws -> User {
    try await caller.get(.write(.editMe, edit, key: key).basedOn(stamp?.rawValue))
  }

  /// Sets the picture. The service re-encodes it as JPEG, without metadata, and does not keep the original.
  ///
  /// - Parameters:
  ///   - data: a JPEG, PNG, WebP or HEIC of at most 2 MiB and 4096 pixels a side.
  ///   - contentType: such as `image/jpeg`.
  ///   - stamp: that of the profile that the change is based on. Without it, the last picture wins.
  /// - Throws: ``MusterError``: `lost-update`, `unsupported-media-type`, `body-too-large`, `pictures-unavailable`
  @discardableResult
  public func setPicture(
    _ data: Data, contentType: String, ifStamp stamp: Stamp? = nil, key: IdempotencyKey = .random()
  ) async throws -> User {
    var call = APICall.write(.putPicture, key: key).basedOn(stamp?.rawValue)
    call.headers["Content-Type"] = contentType
    call.body = data
    call.timeout = 90
    return try await caller.get(call)
  }

  /// Removes the picture. Changes nothing if there is none.
  ///
  /// - Parameter stamp: that of the profile that the change is based on.
  /// - Throws: ``MusterError``: `lost-update`
  public func removePicture(ifStamp stamp: Stamp? = nil, key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.removePicture, key: key).basedOn(stamp?.rawValue))
  }

  /// The link to the calendar feed. Nil if there is none.
  public func calendarLink() async throws -> CalendarLink? {
    let found: CalendarLink.Shown = try await caller.get(.read(.getCalendarLink))
    return found.link
  }

  /// Makes a link to the calendar feed. It replaces the previous one, which stops working.
  @discardableResult
  public func makeCalendarLink(key: IdempotencyKey = .random()) async throws -> CalendarLink {
    try await caller.get(.write(.makeCalendarLink, key: key))
  }

  /// Revokes the link to the calendar feed. Changes nothing if there is none.
  public func revokeCalendarLink(key: IdempotencyKey = .random()) async throws {
    try await caller.send(.write(.revokeCalendarLink, key: key))
  }

  /// Deletes the account, immediately and for good, and forgets the tokens.
  ///
  /// - Parameter reauthentication: nil only for an account without any other way to log in.
  /// - Throws: ``MusterError``: `wrong-password`, `wrong-code`, `identity-not-proven`, `no-password`,
  ///   `email-unverified`
  public func delete(reauthentication: Reauthentication?) async throws {
    let body = AccountDeletion(
      password: reauthentication?.password, idToken: reauthentication?.idToken, nonce: reauthentication?.nonce,
      code: reauthentication?.code)
    try await caller.send(.write(.deleteMe, body, key: nil))
    try await caller.credentials.clear()
  }

  /// Everything that Muster holds about the caller, as one JSON document.
  ///
  /// - Throws: ``MusterError``: `export-running`, `rate-limited`
  public func export() async throws -> Data {
    var call = APICall.read(.exportMe)
    call.timeout = 90
    return try await caller.bytes(of: call)
  }
}

/// The secret link to a user's calendar feed. Anyone who has it can read the user's events.
public struct CalendarLink: Codable, Sendable, Equatable {
  /// For calendar apps that ask for a URL.
  public let url: URL
  /// The same with the scheme `webcal`. Opening it adds the calendar on iOS and macOS.
  public let webcalUrl: URL
  /// When the link was made.
  public let createdAt: Date

  /// The service's response, whose members are null without a link.
  struct Shown: Decodable {
    let url: URL?
    let webcalUrl: URL?
    let createdAt: Date?

    var link: CalendarLink? {
      guard let url, let webcalUrl, let createdAt else { return nil }
      return CalendarLink(url: url, webcalUrl: webcalUrl, createdAt: createdAt)
    }
  }
}
