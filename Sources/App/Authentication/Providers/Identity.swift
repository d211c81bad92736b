import Crypto
import Foundation
import Logging
import Postgres

/// Who somebody is at Apple or Google, as a verified token tells.
struct Identity: Sendable {
  let provider: IdentityProvider.Name
  /// The provider's own id for the person: it never changes and never passes to another, as an address may.
  let subject: String
  /// Which of our clients the token was made for.
  let clientID: String
  /// Only if the provider has verified it.
  let email: String?
  let name: String?
  let issuedAt: Date

  /// How old a token may be that proves who is asking just now, in seconds.
  private static let freshness = 600.0

  /// Finds the account of an identity, or makes one, with a free username. Of several who sign in at once as the same
  /// new person, one makes the account and the others find it.
  ///
  /// An address that somebody else has verified is not taken over. One that nobody has is: whoever wrote it into an
  /// account without being able to read its mail loses it there.
  ///
  /// - Throws: ``AppError`` `email-belongs-to-account`.
  static func signIn(
    _ identity: Identity, displayName: String?, in change: Change
  ) async throws -> (user: User.ID, isNew: Bool) {
    for _ in 1...8 {
      if let user = try await owner(of: identity, in: change) { return (user, false) }
      if let email = identity.email, try await !free(email, in: change) {
        // It may be this very person who has verified it, a moment ago.
        guard let user = try await owner(of: identity, in: change) else { throw AppError.emailBelongsToAccount }
        return (user, false)
      }
      // Not like the address, which nobody else is to know.
      guard let username = try await Username.free(like: [displayName, identity.name], in: change) else { continue }
      let user = User.ID.new()
      if try await create(user, username, displayName ?? identity.name ?? username, identity, in: change) {
        return (user, true)
      }
      // Somebody was faster with the identity, the address or the username, and has committed: look again.
    }
    throw AppError.busy
  }

  /// The account, which stays and keeps the identity until this change ends.
  private static func owner(of identity: Identity, in change: Change) async throws -> User.ID? {
    let owner: SQL = """
      SELECT user_id FROM identities WHERE provider = \(identity.provider) AND subject = \(identity.subject)
      """
    guard let user: User.ID = try await change.value(owner) else { return nil }
    // Read once more when the account is locked: a reset that was waited for has taken the identity away.
    try change.takeTurns(at: [user], for: .share)
    let answers = try await change.pipeline("SELECT 1 FROM users WHERE id = \(user) FOR SHARE", owner)
    return try answers[1].first.map { try $0[0] }
  }

  /// Takes an address from an account that has not verified it, and its mails back.
  ///
  /// - Returns: false if an account has verified it.
  private static func free(_ email: String, in change: Change) async throws -> Bool {
    let holder: SQL = """
      SELECT id, email_verified_at IS NOT NULL AS is_verified FROM users WHERE lower(email) = lower(\(email))
      """
    guard let row = try await change.first(holder) else { return true }
    if try row["is_verified"] { return false }
    let loser: User.ID = try row["id"]
    try change.takeTurns(at: [loser], for: .update)
    let freed = try await change.rows(
      """
      UPDATE users SET email = NULL, updated_at = now()
      WHERE id = \(loser) AND lower(email) = lower(\(email)) AND email_verified_at IS NULL
      """)
    guard freed.affected == 1 else { return try await change.first(holder) == nil }
    try await change.rows(
      """
      WITH gone AS (
        DELETE FROM mail_tokens WHERE user_id = \(loser) AND lower(email) = lower(\(email))
        RETURNING id
      )
      DELETE FROM mails AS m USING gone
      WHERE m.user_id = \(loser) AND m.mail_token_id = gone.id
      """)
    change.touch(.profile, of: loser)
    return true
  }

  /// - Returns: whether the account and its identity were made: both or neither.
  private static func create(
    _ user: User.ID, _ username: String, _ displayName: String, _ identity: Identity, in change: Change
  ) async throws -> Bool {
    let verifiedAt: Timestamp? = identity.email == nil ? nil : .now()
    let answers = try await change.pipeline(
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
    if answers[1].affected == 1 { return true }
    try await change.rows("DELETE FROM users WHERE id = \(user)")
    return false
  }

  /// Adds an identity to an account, to sign in with it from now on. Its owner gets a mail. Repeating it changes nothing.
  ///
  /// - Throws: ``AppError`` `identity-taken`: another account has it. `already-linked`: this one has another identity of
  ///   the same provider.
  static func link(
    _ identity: Identity, to user: User.ID, by session: Session.ID, in change: Change
  ) async throws {
    guard try await change.lock(user, for: .share).contains(user) else { throw AppError.sessionEnded }
    try await Session.check(session, in: change)
    let inserted = try await change.rows(
      """
      INSERT INTO identities (provider, subject, user_id)
      VALUES (\(identity.provider), \(identity.subject), \(user))
      ON CONFLICT DO NOTHING
      """)
    if inserted.affected == 1 {
      change.mail(.identityLinked(user))
      return
    }
    let mine: String? = try await change.value(
      "SELECT subject FROM identities WHERE user_id = \(user) AND provider = \(identity.provider)")
    guard let mine else { throw AppError.identityTaken }
    guard mine == identity.subject else { throw AppError.alreadyLinked }
  }

  /// Whether a token proves that it is this user who asks, just now: of an identity that is linked to the account, and
  /// made within the last ten minutes.
  ///
  /// - Throws: `provider-unavailable` while it cannot be verified.
  static func proves(
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

  /// Keeps what will revoke Apple's grant, in place of an older one. If the identity is gone by now, with its account or
  /// by a reset, the grant is revoked instead.
  static func keep(_ grant: AppleGrant, of identity: Identity, in change: Change) async throws {
    let kept = try await change.rows(
      """
      UPDATE identities SET sealed_grant = \(grant.sealed)
      WHERE provider = \(identity.provider) AND subject = \(identity.subject)
      """)
    if kept.affected == 0 { change.revoke(grant) }
  }

  /// Takes all identities off an account, and has the worker revoke what Apple granted with them. The account is locked
  /// by the caller.
  static func unlinkAll(from user: User.ID, in change: Change) async throws {
    // In one statement: a grant that is being kept just now is waited for, and returned.
    let gone = try await change.rows("DELETE FROM identities WHERE user_id = \(user) RETURNING sealed_grant")
    for row in gone {
      let sealed: Data? = try row["sealed_grant"]
      if let grant = sealed.flatMap({ AppleGrant(sealed: $0) }) { change.revoke(grant) }
    }
  }
}

extension AppError {
  static let emailBelongsToAccount = AppError(
    .conflict, "email-belongs-to-account",
    "The provider's e-mail address belongs to an account here: sign in to that one, then link the provider to it.")
  static let identityTaken = AppError(
    .conflict, "identity-taken", "This identity is linked to another account.")
  static let alreadyLinked = AppError(
    .conflict, "already-linked", "Another identity of this provider is linked to the account.")
}
