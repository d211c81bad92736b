import Foundation

/// Why a call needs something before it can send a request again: a refresh, or a wait.
struct Interruption: Error {
  /// The outcome of the request. Nil if none was sent, because the access token has expired by the device's clock.
  let outcome: Outcome?
  /// The tokens of the request.
  let tokens: StoredTokens?
  let credentials: Credentials?
  let repeats: APICall.Repeats

  /// Gets other tokens, if the tokens are the reason.
  ///
  /// - Parameter isFirst: whether no tokens were renewed during the call.
  /// - Returns: whether there are other tokens, so that the request may be sent again.
  /// - Throws: ``MusterError/loggedOut`` if the session has ended; what a refresh throws
  func renew(isFirst: Bool) async throws -> Bool {
    guard let credentials, let tokens else { return false }
    guard let outcome else {
      try await credentials.refresh(tokens)
      return true
    }
    guard case .problem(let problem) = outcome, problem.status == 401 else { return false }
    switch problem.type {
    case .tokenExpired: try await credentials.refresh(tokens)
    // The service may have replaced its keys.
    case .invalidToken where isFirst: try await credentials.refresh(tokens)
    case .sessionEnded: try await credentials.end(tokens)
    default: return false
    }
    return true
  }

  /// Whether a refresh or a wait may help.
  var isWorthAnother: Bool {
    guard let outcome else { return true }
    if credentials != nil, case .problem(let problem) = outcome, problem.status == 401 { return true }
    return outcome.allowsRepeat(repeats)
  }

  var error: MusterError { outcome?.error ?? .unreachable("The access tokens expire immediately.") }
}
