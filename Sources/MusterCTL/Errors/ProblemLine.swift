import MusterKit

/// A refusal of the service, explained to the user of this program in one line.
enum ProblemLine {
  static func text(for problem: Problem) -> String {
    var line = sentences[problem.type] ?? problem.detail ?? fallback(problem)
    if !problem.errors.isEmpty {
      line += " " + problem.errors.map { "\(fieldNames[$0.field] ?? $0.field): \($0.message)." }.joined(separator: " ")
    }
    if let seconds = problem.retryAfter { line += " Try again in \(duration(seconds))." }
    // What went wrong inside the service is in its log, under this id.
    if problem.status >= 500, let id = problem.requestId { line += " (request \(id))" }
    return line.safeLine
  }

  private static func fallback(_ problem: Problem) -> String {
    problem.title.isEmpty ? "The service responded with status \(problem.status)." : problem.title
  }

  private static func duration(_ seconds: Int) -> String {
    switch seconds {
    case ..<120: "\(seconds) s"
    case ..<7200: "\((seconds + 59) / 60) minutes"
    case ..<172_800: "\((seconds + 3599) / 3600) hours"
    default: "\((seconds + 86_399) / 86_400) days"
    }
  }

  /// Fields that have another name on the command line.
  private static let fieldNames = [
    "startTime": "time", "endTime": "end", "timeZone": "zone", "location.name": "place", "plusOnes": "--plus-ones",
    "maxPlusOnes": "--plus-ones", "answerBy": "--answer-by", "maxGuests": "--max-guests", "expiresAt": "--expires",
  ]

  /// One sentence for each type of problem in the OpenAPI document. A test compares the two.
  static let sentences: [Problem.Slug: String] = [
    .malformedBody: "The service could not read the request: this musterctl may be too old.",
    .malformedRequest: "The service could not read the request: this musterctl may be too old.",

    .noToken: "You are not logged in. Use `musterctl login`.",
    .invalidCode: "The code is wrong, expired or already used. Use `musterctl login --code` again.",
    .invalidIdentityToken: "Apple or Google did not confirm the identity.",
    .invalidNotification: "Apple did not sign this notification.",
    .invalidToken: "This service does not know your session. Use `musterctl login`.",
    .tokenExpired: "The access token has expired. Repeat the command.",
    .openWhereLoggedIn: "This link works only where you are logged in to its account.",
    .sessionEnded: "Your session has ended. Use `musterctl login`.",
    .wrongCredentials: "No account has this login and password.",

    .anotherAccount: "This link belongs to a different account.",
    .identityNotProven: "The Apple or Google identity could not be confirmed.",
    .linkOnlyShows: "This link only shows the event. Ask a host for an invitation.",
    .notAHost: "Only the hosts of the event may do this.",
    .notTheCreator: "Only the creator of the event may do this.",
    .notYours: "This belongs to another user.",
    .requestsClosed: "This user does not accept your friend requests.",
    .wrongCode: "The code is wrong, expired or already used.",
    .wrongPassword: "This is not the current password.",

    .appLinksNotConfigured: "No app for this platform is configured to open links.",
    .calendarNotFound: "This calendar does not exist, or its link was revoked or replaced.",
    .deviceNotFound: "There is no such device.",
    .eventNotFound: "There is no such event, or you are not invited.",
    .friendRequestNotFound: "There is no such friend request.",
    .guestNotFound: "The event has no such guest.",
    .linkNotFound: "There is no such share link, or it was revoked.",
    .proposalNotFound: "There is no such proposal, or it was accepted, declined or withdrawn.",
    .sessionNotFound: "There is no such session.",
    .userNotFound: "There is no such user.",
    .pictureNotFound: "There is no such picture.",
    .providerNotConfigured: "This service does not accept logins with this provider.",
    .routeNotFound: "The service does not have this call: it may be older than this musterctl, or not Muster.",
    .methodNotAllowed: "The service does not have this call: it may be older than this musterctl, or not Muster.",
    .requestTimeout: "The request took too long to arrive. Try again.",

    .alreadyFriends: "You are already friends.",
    .alreadyLinked: "Another identity of this provider is linked to the account.",
    .emailBelongsToAccount: "Another account has this e-mail address. Log in to it first.",
    .emailReleased: "The account with this e-mail address has lost it. Register with the address.",
    .emailUnverified: "Verify your e-mail address first: follow the link in the mail, or log in with a code.",
    .emailTaken: "An account with this e-mail address already exists.",
    .usernameTaken: "This username is taken.",
    .eventArchived: "The event is over and no longer changes.",
    .answerProposed: "The account with the visitor's e-mail address decides about this answer.",
    .answersClosed: "The deadline for answers has passed. Ask a host to set your answer.",
    .approvalPending: "A host must approve the guest first. Until then, the answer cannot be set.",
    .eventCancelled: "The event is cancelled and no longer changes.",
    .exportRunning: "Another export of yours is running. Wait until it ends.",
    .friendRequestClosed: "The friend request was already accepted, declined or cancelled.",
    .identityTaken: "This identity is linked to another account.",
    .lastWayIn: "This is your only way to log in. Set a password or verify an e-mail address first.",
    .linkExpired: "This link has expired. Ask a host for another one.",
    .linkFull: "No more guests can join through this link. Ask a host for an invitation.",
    .noPassword: "The account has no password. Use `musterctl login --code`.",
    .noRoom: "The event has no room for this many people.",
    .ownEvent: "You are a host of this event, so it needs no answer.",
    .requestRunning: "The same request is still running.",
    .tooManyHosts: "The event has the maximum number of co-hosts. Remove one first.",
    .tooManyLinks: "The event has the maximum number of share links. Revoke one first.",
    .tooManyDevices: "You have the maximum number of devices. Remove one first.",

    .lostUpdate: "The event was edited in the meantime. Look at it, then repeat the command.",
    .bodyTooLarge: "The request is too large.",
    .unsupportedMediaType: "The service does not accept this type of content.",
    .idempotencyKeyReused: "Another request with the same key was sent before. Repeat the command.",
    .invalidFields: "Some values are not allowed.",

    .rateLimited: "Too many requests.",
    .uploadInProgress: "Your previous picture is still being processed.",
    .tooManyAttempts: "Too many attempts.",
    .tooManyFriendRequests: "You cannot send this friend request yet.",
    .tooManyReports: "You have sent the maximum number of reports for one day.",
    .tooManyUsernames: "You have changed your username too often.",
    .headersTooLarge: "The request is too large.",

    .internalError: "The service has a bug. Report this to its operator.",
    .busy: "The service is busy.",
    .picturesUnavailable: "The service cannot store pictures at the moment.",
    .providerUnavailable: "Apple or Google cannot be reached at the moment.",
    .databaseUnavailable: "The service's database is unavailable.",
    .migrationsAhead: "The service is older than its database. Tell its operator.",
    .migrationsBehind: "The service's database is not migrated yet. Tell its operator.",
    .stopping: "The service is restarting.",
    .tooManyStreams: "The service has too many open streams.",
    .unknownOutcome: "The change may or may not have happened. Check before you repeat the command.",
  ]
}
