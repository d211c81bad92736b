import Foundation

/// Why a call did not succeed. Calls throw this or `CancellationError`, and nothing else.
public enum MusterError: Error, Sendable, Hashable {
  /// Muster refused the request, or could not carry it out even after repeats. Switch on the problem's `type`.
  case refused(Problem)
  /// There are no tokens, or the session has ended: show the login.
  case loggedOut
  /// No response arrived: the phone is offline, or connections fail. The text is for developers. A write may have
  /// happened.
  case unreachable(String)
  /// A response that does not come from Muster, or whose body cannot be decoded. `detail` is for developers.
  case unexpectedResponse(status: Int, detail: String)
  /// The tokens could not be read or saved, for example because the phone has not been unlocked since it started. The
  /// session has not ended: try again later. The text is for developers.
  case tokensUnavailable(String)

  /// Whether the same call may succeed later: the network, a proxy or the service was not ready for it.
  public var isTemporary: Bool {
    switch self {
    case .refused(let problem):
      problem.status >= 500 || [408, 429].contains(problem.status) || problem.type == .requestRunning
    case .loggedOut: false
    case .unreachable, .unexpectedResponse, .tokensUnavailable: true
    }
  }

  /// The problem, if the service refused.
  public var problem: Problem? {
    guard case .refused(let problem) = self else { return nil }
    return problem
  }
}

extension MusterError: LocalizedError {
  public var errorDescription: String? {
    switch self {
    case .refused(let problem): problem.detail ?? problem.title
    case .loggedOut: "You are logged out."
    case .unreachable(let reason): "Muster cannot be reached: \(reason)"
    case .unexpectedResponse(let status, let detail): "Unexpected response with status \(status): \(detail)"
    case .tokensUnavailable(let reason): "The tokens cannot be read or saved: \(reason)"
    }
  }
}

/// Why the store cannot take a write or open its folder.
public enum StoreError: Error, Sendable, Hashable {
  /// The folder cannot be read or written, for example because the disk is full. The text is for developers.
  case disk(String)
  /// Another process has been sending writes for a minute.
  case locked
  /// The write needs a password, a code or an identity token, which are not kept on the disk. Call the API.
  case needsReauthentication
  /// The picture has more bytes than ``NewPicture/maximumLength``. Make it smaller.
  case pictureTooLarge
  /// The write is about a list that was never read. Refresh first.
  case notLoaded
  /// The refusal was dismissed, or another process has sent the write again.
  case dismissed
  /// The file of the write is damaged, and the write cannot be read. Dismiss it.
  case damaged
  /// ``MusterStore/forgetEverything()`` was called. Make a new store after the next login.
  case forgotten
}

extension StoreError: LocalizedError {
  public var errorDescription: String? {
    switch self {
    case .disk(let reason): "The data cannot be stored: \(reason)"
    case .locked: "Another process is sending changes."
    case .needsReauthentication: "This change needs a connection."
    case .pictureTooLarge: "The picture has more than 2 MiB."
    case .notLoaded: "The list is not loaded yet."
    case .damaged: "This change cannot be read any more."
    case .dismissed: "This change was dismissed or sent again before."
    case .forgotten: "You are logged out."
    }
  }
}
