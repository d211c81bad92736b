@testable import App

/// The result of presenting a refresh token, as the client sees it.
enum RefreshOutcome: Equatable, Sendable {
  case given(RefreshToken), theft, ended

  var token: RefreshToken? {
    if case .given(let token) = self { return token }
    return nil
  }
}
