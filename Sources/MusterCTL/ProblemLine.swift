import MusterKit

/// A refusal of the service, explained to the user of this program in one line.
enum ProblemLine {
  static func text(for problem: Problem) -> String {
    var line = sentences[problem.type] ?? problem.detail ?? fallback(problem)
    if !problem.errors.isEmpty {
      // The service's sentence names the fields as a request does.
      line = problem.errors.map { "\(fieldNames[$0.field] ?? $0.field): \($0.message)." }.joined(separator: " ")
    }
    if let seconds = problem.retryAfter {
      for ending in endings where line.hasSuffix(ending) { line.removeLast(ending.count) }
      line += " Try again in \(duration(seconds))."
    }
    // What went wrong inside the service is in its log, under this id.
    if problem.status >= 500, let id = problem.requestId { line += " (request \(id))" }
    return line.safeLine
  }

  /// The ends of the service's sentences about waiting, which do not say how long.
  private static let endings = [" Try again later.", " Try again."]

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
    "maxPlusOnes": "--plus-ones", "displayName": "name", "newPassword": "new password", "token": "url",
    "answerBy": "--answer-by", "maxGuests": "--max-guests", "expiresAt": "--expires",
  ]

  /// Sentences that name a command or this program, in place of the service's own.
  static let sentences: [Problem.Slug: String] = [
    .malformedBody: "The service could not read the request: this musterctl may be too old.",
    .malformedRequest: "The service could not read the request: this musterctl may be too old.",
    .unsupportedMediaType: "The service could not read the request: this musterctl may be too old.",
    .bodyTooLarge: "The request is too large. Repeat the command with less text.",
    .requestRunning: "The same request is still running. Repeat the command later.",
    .notYours: "You are logged in as another user. Use `musterctl login`.",
    .routeNotFound: "The service does not have this call: it may be older than this musterctl, or not Muster.",
    .methodNotAllowed: "The service does not have this call: it may be older than this musterctl, or not Muster.",
    .noToken: "You are not logged in. Use `musterctl login`.",
    .invalidToken: "This service does not know your session. Use `musterctl login`.",
    .sessionEnded: "Your session has ended. Use `musterctl login`.",
    .invalidCode: "The code is wrong, expired or already used. Use `musterctl login --code` again.",
    .noPassword: "The account has no password. Repeat the command with --code.",
    .tokenExpired: "The access token has expired. Repeat the command.",
    .idempotencyKeyReused: "Another request with the same key was sent before. Repeat the command.",
    .lostUpdate: "The event was edited in the meantime. Look at it, then repeat the command.",
    .unknownOutcome: "The change may or may not have happened. Check before you repeat the command.",
  ]
}
