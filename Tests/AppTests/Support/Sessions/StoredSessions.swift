import Postgres

@testable import App

/// The real implementation: one user's sessions in the database.
struct StoredSessions: RefreshMachine {
  let database: Database
  let user: User.ID

  func logIn(at now: Timestamp, keys: SigningKeys) async throws -> RefreshToken {
    try await database.change {
      try await Session.start(for: user, device: nil, from: nil, keys: keys, now: now, in: $0).refresh
    }
  }

  func show(_ token: RefreshToken, at now: Timestamp, keys: SigningKeys) async throws -> RefreshOutcome {
    let rotation = try await database.change {
      try await Session.rotate(token, from: nil, keys: keys, now: now, in: $0)
    }
    switch rotation {
    case .rotated(let next) where next.user == user: return .given(next.refresh)
    case .rotated(let next): throw RefreshViolation(kind: .unlikeTheModel, description: "belongs to \(next.user)")
    case .theft: return .theft
    case .ended: return .ended
    }
  }

  func restore(_ handout: RefreshModel.Handout) async throws {
    let token = handout.token
    try await database.execute(
      """
      UPDATE sessions
      SET counter = \(token.counter), branch = \(Int32(token.branch)),
        parent_branch = \(Int32(handout.parent?.branch ?? 0)), rotated_at = \(handout.time), kid = \(token.kid)
      WHERE id = \(token.session)
      """)
  }
}
