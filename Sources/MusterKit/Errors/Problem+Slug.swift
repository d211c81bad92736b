extension Problem {
  /// The stable name of a kind of problem. Later releases may add some.
  public struct Slug: WireValue {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }
  }
}

extension Problem.Slug {
  // MARK: 400

  public static let malformedBody: Self = "malformed-body"
  public static let malformedRequest: Self = "malformed-request"

  // MARK: 401

  public static let noToken: Self = "no-token"
  public static let invalidCode: Self = "invalid-code"
  public static let invalidIdentityToken: Self = "invalid-identity-token"
  public static let invalidNotification: Self = "invalid-notification"
  public static let invalidToken: Self = "invalid-token"
  public static let tokenExpired: Self = "token-expired"
  public static let openWhereLoggedIn: Self = "open-where-logged-in"
  public static let sessionEnded: Self = "session-ended"
  public static let wrongCredentials: Self = "wrong-credentials"

  // MARK: 403

  public static let anotherAccount: Self = "another-account"
  public static let identityNotProven: Self = "identity-not-proven"
  public static let linkOnlyShows: Self = "link-only-shows"
  public static let notAHost: Self = "not-a-host"
  public static let notTheCreator: Self = "not-the-creator"
  public static let notYours: Self = "not-yours"
  public static let requestsClosed: Self = "requests-closed"
  public static let wrongCode: Self = "wrong-code"
  public static let wrongPassword: Self = "wrong-password"

  // MARK: 404

  public static let appLinksNotConfigured: Self = "app-links-not-configured"
  public static let calendarNotFound: Self = "calendar-not-found"
  public static let deviceNotFound: Self = "device-not-found"
  public static let eventNotFound: Self = "event-not-found"
  public static let guestNotFound: Self = "guest-not-found"
  public static let friendRequestNotFound: Self = "friend-request-not-found"
  public static let linkNotFound: Self = "link-not-found"
  public static let proposalNotFound: Self = "proposal-not-found"
  public static let sessionNotFound: Self = "session-not-found"
  public static let userNotFound: Self = "user-not-found"
  public static let pictureNotFound: Self = "picture-not-found"
  public static let providerNotConfigured: Self = "provider-not-configured"
  public static let routeNotFound: Self = "route-not-found"

  // MARK: 405

  public static let methodNotAllowed: Self = "method-not-allowed"

  // MARK: 408

  public static let requestTimeout: Self = "request-timeout"

  // MARK: 409

  public static let alreadyFriends: Self = "already-friends"
  public static let approvalPending: Self = "approval-pending"
  public static let answerProposed: Self = "answer-proposed"
  public static let answersClosed: Self = "answers-closed"
  public static let alreadyLinked: Self = "already-linked"
  public static let emailBelongsToAccount: Self = "email-belongs-to-account"
  public static let emailReleased: Self = "email-released"
  public static let emailUnverified: Self = "email-unverified"
  public static let emailTaken: Self = "email-taken"
  public static let linkExpired: Self = "link-expired"
  public static let linkFull: Self = "link-full"
  public static let tooManyLinks: Self = "too-many-links"
  public static let usernameTaken: Self = "username-taken"
  public static let eventArchived: Self = "event-archived"
  public static let eventCancelled: Self = "event-cancelled"
  public static let exportRunning: Self = "export-running"
  public static let friendRequestClosed: Self = "friend-request-closed"
  public static let identityTaken: Self = "identity-taken"
  public static let lastWayIn: Self = "last-way-in"
  public static let noPassword: Self = "no-password"
  public static let ownEvent: Self = "own-event"
  public static let noRoom: Self = "no-room"
  public static let requestRunning: Self = "request-running"
  public static let tooManyDevices: Self = "too-many-devices"
  public static let tooManyHosts: Self = "too-many-hosts"

  // MARK: 412

  public static let lostUpdate: Self = "lost-update"

  // MARK: 413

  public static let bodyTooLarge: Self = "body-too-large"

  // MARK: 415

  public static let unsupportedMediaType: Self = "unsupported-media-type"

  // MARK: 422

  public static let idempotencyKeyReused: Self = "idempotency-key-reused"
  public static let invalidFields: Self = "invalid-fields"

  // MARK: 429

  public static let rateLimited: Self = "rate-limited"
  public static let uploadInProgress: Self = "upload-in-progress"
  public static let tooManyAttempts: Self = "too-many-attempts"
  public static let tooManyFriendRequests: Self = "too-many-friend-requests"
  public static let tooManyReports: Self = "too-many-reports"
  public static let tooManyUsernames: Self = "too-many-usernames"

  // MARK: 431

  public static let headersTooLarge: Self = "headers-too-large"

  // MARK: 500

  public static let internalError: Self = "internal-error"

  // MARK: 503

  public static let busy: Self = "busy"
  public static let picturesUnavailable: Self = "pictures-unavailable"
  public static let providerUnavailable: Self = "provider-unavailable"
  public static let databaseUnavailable: Self = "database-unavailable"
  public static let migrationsAhead: Self = "migrations-ahead"
  public static let migrationsBehind: Self = "migrations-behind"
  public static let stopping: Self = "stopping"
  public static let tooManyStreams: Self = "too-many-streams"
  public static let unknownOutcome: Self = "unknown-outcome"
}
