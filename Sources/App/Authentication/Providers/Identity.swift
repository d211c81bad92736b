import Crypto
import Foundation
import Logging
import Postgres

/// A person's identity at Apple or Google, from a verified token.
struct Identity: Sendable {
  let provider: IdentityProvider.Name
  /// The provider's own id for the person. Unlike an address, it never changes and never passes to another person.
  let subject: String
  /// The one of our clients that the token was made for.
  let clientID: String
  /// Nil unless the provider has verified it, and if it is not an address that mail can be sent to.
  let email: EmailAddress?
  let name: String?
  let issuedAt: Date

  /// Whether a text can be a provider's id for a person.
  static func isSubject(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count) && !text.utf8.contains(0)
  }

  /// The maximum age of a token for reauthentication, in seconds.
  private static let freshness = 600.0

  /// Finds the account of an identity, or creates one with a free username. If the same new person signs in several
  /// times concurrently, one sign-in creates the account and the others find it.
  ///
  /// An address that another account has verified is not taken over. An unverified address is: the account that holds
  /// it loses it, because its user has not shown that they can read its mail. An account that would be left without any
  /// way in is adopted instead: see ``adopt(_:in:)``.
  ///
  /// - Throws: ``AppError`` `email-belongs-to-account`.
  static func signIn(
    _ identity: Identity, displayName: String?, in change: Change
  ) async throws -> (user: User.ID, isNew: Bool) {
    for _ in 1...8 {
      if let user = try await owner(of: identity, in: change) { return (user, false) }
      if let user = try await restore(identity, in: change) { return (user, false) }
      if identity.email != nil, let user = try await adopt(identity, in: change) { return (user, false) }
      if let email = identity.email, try await !free(email, in: change) {
        // The same person may have verified it a moment ago.
        guard let user = try await owner(of: identity, in: change) else { throw AppError.emailBelongsToAccount }
        return (user, false)
      }
      // The username is not made from the address, because others must not learn the address.
      guard let username = try await Username.free(like: [displayName, identity.name], in: change) else { continue }
      let user = User.ID.new()
      if try await create(user, username, displayName ?? identity.name ?? username, identity, in: change) {
        return (user, true)
      }
      // Another sign-in took the identity, the address or the username, and has committed: look again.
    }
    throw AppError.busy
  }

  /// The accounts that a sign-in would lock at the moment: the one that has or had the identity, or one that would lose
  /// its unverified address.
  static func accounts(of identity: Identity, in database: some Querying) async throws -> [User.ID] {
    try await database.rows(
      """
      SELECT user_id FROM identities WHERE provider = \(identity.provider) AND subject = \(identity.subject)
      UNION
      SELECT user_id FROM revoked_identities
      WHERE provider = \(identity.provider) AND subject = \(identity.subject)
      UNION
      SELECT id FROM users WHERE email_key = \(identity.email?.key) AND email_verified_at IS NULL
      """
    ).map { try $0["user_id"] }
  }

  /// The account that has an identity at the moment.
  static func owners(
    of subject: String, at provider: IdentityProvider.Name, in database: some Querying
  ) async throws -> [User.ID] {
    try await database.rows(
      "SELECT user_id FROM identities WHERE provider = \(provider) AND subject = \(subject)"
    ).map { try $0["user_id"] }
  }

  /// The account of an identity. Until this change ends, the account stays and keeps the identity.
  private static func owner(of identity: Identity, in change: Change) async throws -> User.ID? {
    let owner: SQL = """
      SELECT user_id FROM identities WHERE provider = \(identity.provider) AND subject = \(identity.subject)
      """
    guard let user: User.ID = try await change.value(owner) else { return nil }
    // Reads again once the account is locked: a reset that held the lock may have removed the identity.
    try change.takeTurns(at: [user], for: .share)
    let results = try await change.pipeline("SELECT 1 FROM users WHERE id = \(user) FOR SHARE", owner)
    return try results[1].first.map { try $0[0] }
  }

  /// Takes an address from an account that has not verified it, and deletes the account's tokens and mails for it.
  ///
  /// - Parameter owner: the account that gets the address, and may have it.
  /// - Returns: false if another account has verified it.
  static func free(_ email: EmailAddress, for owner: User.ID? = nil, in change: Change) async throws -> Bool {
    let holder: SQL = """
      SELECT id, email_verified_at IS NOT NULL AS is_verified FROM users
      WHERE email_key = \(email.key) AND id IS DISTINCT FROM \(owner)
      """
    guard let row = try await change.first(holder) else { return true }
    if try row["is_verified"] { return false }
    let loser: User.ID = try row["id"]
    try change.takeTurns(at: [loser], for: .update)
    let freed = try await change.rows(
      """
      UPDATE users SET email = NULL, updated_at = now()
      WHERE id = \(loser) AND email_key = \(email.key) AND email_verified_at IS NULL
      """)
    guard freed.affected == 1 else { return try await change.first(holder) == nil }
    try change.write(
      """
      WITH gone AS (
        DELETE FROM mail_tokens
        WHERE user_id = \(loser) AND email_key = \(email.key) AND purpose <> 'undo-email-change'
        RETURNING id
      )
      DELETE FROM mails AS m USING gone
      WHERE m.user_id = \(loser) AND m.mail_token_id = gone.id
      """)
    change.touch(.profile, of: loser)
    return true
  }

  /// - Returns: whether the account and its identity were created: both or neither.
  private static func create(
    _ user: User.ID, _ username: String, _ displayName: String, _ identity: Identity, in change: Change
  ) async throws -> Bool {
    let verifiedAt: Timestamp? = identity.email == nil ? nil : .now()
    let results = try await change.pipeline(
      """
      INSERT INTO users (id, username, email, email_verified_at, display_name)
      VALUES (\(user), \(username), \(identity.email), \(verifiedAt), \(displayName))
      ON CONFLICT DO NOTHING
      """,
      """
      INSERT INTO identities (provider, subject, user_id)
      SELECT \(identity.provider), \(identity.subject), id FROM users WHERE id = \(user)
      ON CONFLICT ON CONSTRAINT identity_taken DO NOTHING
      """,
      User.firstStamps(of: user))
    if results[1].affected == 1 {
      if identity.email != nil { try await Visitor.claim(for: user, in: change) }
      return true
    }
    try change.write("DELETE FROM users WHERE id = \(user)")
    return false
  }

  /// Links an identity to an account, so that it can be used to sign in. The owner gets a mail. Idempotent.
  ///
  /// - Throws: ``AppError`` `identity-taken` if another account has it; `already-linked` if this account has another
  ///   identity of the same provider.
  static func link(
    _ identity: Identity, to user: User.ID, by session: Session.ID, in change: Change
  ) async throws {
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    let inserted = try await change.rows(
      """
      INSERT INTO identities (provider, subject, user_id)
      VALUES (\(identity.provider), \(identity.subject), \(user))
      ON CONFLICT DO NOTHING
      """)
    if inserted.affected == 1 {
      try await FriendRequest.release(of: user, in: change)
      change.touch(.profile, of: user)
      change.mail(.identityLinked(user))
      return
    }
    let mine: String? = try await change.value(
      "SELECT subject FROM identities WHERE user_id = \(user) AND provider = \(identity.provider)")
    guard let mine else { throw AppError.identityTaken }
    guard mine == identity.subject else { throw AppError.alreadyLinked }
  }

  /// Removes the identity of a provider from an account, and queues Apple's grant for revocation. The owner gets a
  /// mail. Idempotent.
  ///
  /// - Throws: ``AppError`` `last-way-in` if the user could no longer sign in. With a verified address, mailed codes
  ///   are a way in.
  static func unlink(
    _ provider: IdentityProvider.Name, from user: User.ID, by session: Session.ID, in change: Change
  ) async throws {
    guard try await change.lock(user, for: .update).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    let row = try await change.first(
      """
      SELECT password_hash IS NOT NULL OR email_verified_at IS NOT NULL OR EXISTS (
        SELECT FROM identities WHERE user_id = \(user) AND provider <> \(provider)
      ) AS has_another
      FROM users WHERE id = \(user)
      """)
    guard try await remove("user_id = \(user) AND provider = \(provider)", in: change) > 0 else { return }
    guard let row, try row["has_another"] else { throw AppError.lastWayIn }
    change.touch(.profile, of: user)
    change.mail(.identityUnlinked(user))
  }

  /// Whether a token is enough for this user's reauthentication: its identity is linked to the account, and it was
  /// issued within the last ten minutes.
  ///
  /// - Throws: `provider-unavailable` if the token cannot be verified at the moment.
  static func confirms(
    _ token: IdentityToken, is user: User.ID, providers: IdentityProviders, logger: Logger, in database: some Querying
  ) async throws -> Bool {
    let identity: Identity
    do {
      identity = try await providers.verify(token, logger: logger)
    } catch let error as AppError where error == .invalidIdentityToken {
      return false
    }
    guard identity.issuedAt.addingTimeInterval(freshness) > Date() else { return false }
    let linked = try await database.first(
      """
      SELECT 1 FROM identities
      WHERE provider = \(identity.provider) AND subject = \(identity.subject) AND user_id = \(user)
      """)
    return linked != nil
  }

  // MARK: Apple's grant

  /// Stores Apple's grant, to revoke it later, in place of an older one. If a deletion or a reset has removed the
  /// identity by now, the grant is queued for revocation instead.
  static func keep(_ grant: AppleGrant, of identity: Identity, in change: Change) async throws {
    let kept = try await change.rows(
      """
      UPDATE identities SET sealed_grant = \(grant.sealed)
      WHERE provider = \(identity.provider) AND subject = \(identity.subject)
      """)
    if kept.affected == 0 { change.revoke(grant) }
  }

  /// Removes all identities from an account, and queues Apple's grants for revocation. The caller has locked the
  /// account.
  static func unlinkAll(from user: User.ID, in change: Change) async throws {
    try await remove("user_id = \(user)", in: change)
    // Otherwise the one who linked it could still come back.
    try change.write("DELETE FROM revoked_identities WHERE user_id = \(user)")
  }

  /// - Returns: the number of identities that were removed.
  @discardableResult
  private static func remove(_ condition: SQL, in change: Change) async throws -> Int {
    // One statement: if a grant is being stored concurrently, it waits and then returns that grant.
    let gone = try await change.rows("DELETE FROM identities WHERE \(condition) RETURNING sealed_grant")
    for row in gone {
      let sealed: Data? = try row["sealed_grant"]
      if let grant = sealed.flatMap({ AppleGrant(sealed: $0) }) { change.revoke(grant) }
    }
    return gone.count
  }
}

extension AppError {
  static let emailBelongsToAccount = AppError(
    .conflict, "email-belongs-to-account",
    "This e-mail address belongs to an existing account. Log in to that account, then link the provider to it.")
  static let identityTaken = AppError(
    .conflict, "identity-taken", "This identity is linked to another account.")
  static let lastWayIn = AppError(
    .conflict, "last-way-in",
    "This is the only way to log in to the account. Set a password or verify an e-mail address first.")
  static let alreadyLinked = AppError(
    .conflict, "already-linked", "The account is already linked to another identity of this provider.")
}

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
