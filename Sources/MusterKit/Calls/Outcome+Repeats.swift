extension Outcome {
  /// Statuses of a proxy that do not tell whether the request reached Muster.
  private static let gatewayStatuses = [408, 502, 503, 504]
  /// Problems with a wait that is the user's business.
  private static let limitsOfUsers: Set<Problem.Slug> = [
    .tooManyAttempts, .tooManyFriendRequests, .tooManyReports, .tooManyUsernames,
  ]
  /// Problems of 503 that say that nothing was changed.
  private static let withoutEffect: Set<Problem.Slug> = [
    .busy, .databaseUnavailable, .picturesUnavailable, .providerUnavailable, .stopping, .tooManyStreams,
  ]

  /// Whether the same request may be sent again.
  func allowsRepeat(_ repeats: APICall.Repeats) -> Bool {
    switch (self, repeats) {
    case (.success, _), (_, .never): false
    case (.lost, let repeats): repeats == .always
    case (.foreign(let status, _, _), let repeats): repeats == .always && Self.gatewayStatuses.contains(status)
    case (.problem(let problem), let repeats):
      switch problem.status {
      case 408: true
      case 409: repeats == .always && problem.type == .requestRunning
      case 429: !Self.limitsOfUsers.contains(problem.type)
      case 503: repeats == .always || Self.withoutEffect.contains(problem.type)
      default: false
      }
    }
  }
}
