import Postgres

extension Identity {
  /// Signs in to the account that has the identity's address, if nothing else lets its owner in yet: it was registered
  /// without a password, and its address was never verified. The provider has verified the address, so this counts as
  /// the first login with a mailed code does. Sessions that someone else may have started end.
  ///
  /// - Returns: nil if there is no such account, or if another sign-in took the identity.
  static func adopt(_ identity: Identity, in change: Change) async throws -> User.ID? {
    let orphan: SQL =
      "SELECT u.id FROM users AS u WHERE u.email_key = \(identity.email?.key) AND \(User.hasNoWayIn)"
    guard let user: User.ID = try await change.value(orphan),
      try await change.lock(user, for: .update).contains(user)
    else { return nil }
    let linked = try await change.rows(
      """
      INSERT INTO identities (provider, subject, user_id)
      SELECT \(identity.provider), \(identity.subject), u.id FROM users AS u
      WHERE u.id = \(user) AND u.email_key = \(identity.email?.key) AND \(User.hasNoWayIn)
      ON CONFLICT DO NOTHING
      """)
    guard linked.affected == 1 else { return nil }
    try await User.claim(user, keepingIdentities: true, in: change)
    change.mail(.identityLinked(user))
    return user
  }
}

extension User {
  /// A condition on `users AS u`: no password, no identity and no verified address lets the owner in.
  static let hasNoWayIn: SQL = """
    (u.password_hash IS NULL AND u.email_verified_at IS NULL AND NOT \(hasOrHadIdentity))
    """

  /// A condition on `users AS u`: an identity lets the owner in, or did so until the owner revoked it at the provider.
  static let hasOrHadIdentity: SQL = """
    (EXISTS (SELECT FROM identities AS i WHERE i.user_id = u.id)
      OR EXISTS (SELECT FROM revoked_identities AS r WHERE r.user_id = u.id))
    """
}
