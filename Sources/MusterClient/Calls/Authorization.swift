import Foundation

/// The tokens of one call, which is made for one user from its first request to its last.
struct Authorization: Sendable {
  private static let maximumRenewals = 3

  private let credentials: Credentials?
  private var user = Sender.actingUser
  private var renewals = 0

  /// - Parameter credentials: nil for a call without a token.
  init(_ credentials: Credentials?) { self.credentials = credentials }

  /// - Returns: nil if the call needs no token.
  /// - Throws: ``MusterError/loggedOut`` if there are no tokens, or if they are another user's by now; what a refresh
  ///   throws
  mutating func tokens() async throws -> StoredTokens? {
    guard let credentials else { return nil }
    let tokens = try await credentials.current()
    guard user == nil || user == tokens.user else { throw MusterError.loggedOut }
    user = tokens.user
    return tokens
  }

  /// Gets other tokens if the response says that these are no longer good.
  ///
  /// - Returns: whether there are other tokens, so that the request may be sent again.
  /// - Throws: ``MusterError/loggedOut`` if the session has ended; what a refresh throws
  mutating func renew(_ tokens: StoredTokens?, after outcome: Outcome) async throws -> Bool {
    guard let credentials, let tokens, case .problem(let problem) = outcome, problem.status == 401,
      renewals < Self.maximumRenewals
    else { return false }
    switch problem.type {
    case .tokenExpired: try await credentials.refresh(tokens)
    // The service may have replaced its keys.
    case .invalidToken where renewals == 0: try await credentials.refresh(tokens)
    case .sessionEnded: try await credentials.end(tokens)
    default: return false
    }
    renewals += 1
    return true
  }
}
