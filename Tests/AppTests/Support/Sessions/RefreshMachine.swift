import Postgres

@testable import App

/// Sessions and their refresh tokens, with correct or flawed rules.
protocol RefreshMachine: Sendable {
  func logIn(at now: Timestamp, keys: SigningKeys) async throws -> RefreshToken
  func show(_ token: RefreshToken, at now: Timestamp, keys: SigningKeys) async throws -> RefreshOutcome
  /// Restores the database to the time when this token was issued.
  func restore(_ handout: RefreshModel.Handout) async throws
}
