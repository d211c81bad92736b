import Postgres

/// Proof before power: who owns an account is shown by a verified address, by an identity at a provider, or by a session
/// or password of it. What was prepared before an address was proven takes nothing from the address's owner, and a
/// mistyped address gives its reader nothing.
extension User {
  /// A condition on `users AS u`: nothing proves yet who owns the account, and its address is the one that it was
  /// registered with. A reader of the address's mail may then claim it.
  static let mayBeClaimed: SQL = """
    (u.is_first_email AND u.email_verified_at IS NULL AND NOT \(hasOrHadIdentity))
    """

  /// Makes the address that a token was mailed to the account's verified address.
  ///
  /// With the account's own session, everything else stays. If the account had another verified address, that one gets
  /// a mail with which the change can be undone. Without a session, the reader claims the account.
  ///
  /// - Parameter pass: for a mail to another address that the account had and never verified.
  /// - Throws: ``AppError/openWhereLoggedIn`` if the reader may not claim the account, ``AppError/anotherAccount`` for
  ///   the session of another account, ``AppError/emailTaken``, ``AppError/sessionEnded``. The token is then not spent.
  static func verifyEmail(
    by token: MailToken, as caller: AccessTokens.Caller?, _ pass: MailGate.Pass?, keys: SigningKeys, in change: Change
  ) async throws {
    let row = try await change.first(
      """
      SELECT u.email, u.email_verified_at IS NOT NULL AS is_verified, \(mayBeClaimed) AS may_be_claimed,
        coalesce(u.email_key = \(token.email.key), false) AS is_same
      FROM users AS u WHERE u.id = \(token.user)
      """)
    guard let row else { throw AppError.badMailToken }
    let (isVerified, isSame): (Bool, Bool) = (try row["is_verified"], try row["is_same"])
    guard let caller else {
      guard try isSame && row["may_be_claimed"] else { throw AppError.openWhereLoggedIn }
      return try await claim(token.user, in: change)
    }
    guard caller.user == token.user else { throw AppError.anotherAccount }
    try await Session.check(caller.session, in: change)
    do {
      try await change.rows(
        """
        UPDATE users
        SET email = \(token.email), email_verified_at = clock_timestamp(), is_first_email = is_first_email AND \(isSame),
          updated_at = clock_timestamp()
        WHERE id = \(token.user)
        """)
    } catch let error as PostgresError where error.constraint == "email_taken" {
      throw AppError.emailTaken
    }
    try await Visitor.claim(for: token.user, in: change)
    try await FriendRequest.release(of: token.user, in: change)
    change.touch(.profile, of: token.user)
    guard let old: EmailAddress = try row["email"], !isSame else { return }
    // Mails to the old address no longer prove anything about the account.
    try MailToken.revoke([.resetPassword, .signInCode], of: token.user, in: change)
    // An address that was never verified may be mistyped: its reader gets no power over the account.
    if isVerified {
      let undo = try MailToken.issue(.undoEmailChange, email: old, for: token.user, keys: keys, in: change)
      change.mail(.emailChanged(token.user, from: old, undo: undo))
    } else if let pass {
      change.mail(.unprovenEmailChanged(token.user, from: old, pass))
    }
  }

  /// The address that a token would replace, unless the account has verified it.
  static func unprovenAddress(
    replacedBy token: MailToken.ID, in database: some Querying
  ) async throws -> EmailAddress? {
    try await database.value(
      """
      SELECT u.email FROM mail_tokens AS t JOIN users AS u ON u.id = t.user_id
      WHERE t.id = \(token) AND u.email_verified_at IS NULL AND u.email_key <> t.email_key
      """)
  }

  /// Gives the account back its former address, on behalf of a reader of that address's mail. The one who changed it
  /// may know the password, and may have linked an identity: all of that ends, and so do all sessions. An account that
  /// holds the address without having verified it loses it. The caller has also locked that account.
  ///
  /// - Throws: ``AppError/emailTaken`` if another account has verified the address. The token is then not spent.
  static func undoEmailChange(by token: MailToken, in change: Change) async throws {
    let current = try await Credentials.find(token.user, in: change)?.email
    guard try await Identity.free(token.email, for: token.user, in: change) else { throw AppError.emailTaken }
    do {
      try await change.rows("UPDATE users SET email = \(token.email) WHERE id = \(token.user)")
    } catch let error as PostgresError where error.constraint == "email_taken" {
      // Another account has taken it at the same time.
      throw AppError.emailTaken
    }
    try MailToken.revokeUndos(of: token.user, since: token, in: change)
    try await claim(token.user, in: change)
    if let current { change.mail(.emailChanged(token.user, from: current, undo: nil)) }
  }

  /// Takes a mailed token for the account's own address as a proof.
  ///
  /// - Returns: false if it proves nothing about the account, because its owner is known otherwise, and has not verified
  ///   the address. The account then loses the address, which belongs to the reader of its mail.
  static func prove(by token: MailToken, in change: Change) async throws -> Bool {
    let row = try await change.first(
      """
      SELECT u.email_verified_at IS NOT NULL AS is_verified, \(mayBeClaimed) AS may_be_claimed
      FROM users AS u WHERE u.id = \(token.user)
      """)
    guard let row else { return false }
    if try row["is_verified"] { return true }
    if try row["may_be_claimed"] {
      try await claim(token.user, in: change)
      return true
    }
    _ = try await Identity.free(token.email, in: change)
    return false
  }

  /// Gives an account to the reader of its address's mail, and ends what someone else may have prepared: the password,
  /// identities, sessions, devices, the link to the calendar, mailed tokens, and claims of visitors. Friends, events and
  /// links stay, and a notification asks the owner to check them. The caller has locked the account.
  ///
  /// - Parameter keepingIdentities: true if the owner has just linked the account's only one.
  static func claim(_ id: ID, keepingIdentities: Bool = false, in change: Change) async throws {
    if !keepingIdentities { try await Identity.unlinkAll(from: id, in: change) }
    try change.write(
      """
      UPDATE users SET email_verified_at = clock_timestamp(), password_hash = NULL, updated_at = clock_timestamp()
      WHERE id = \(id)
      """)
    try await Session.endAll(of: id, in: change)
    try MailToken.revoke([.resetPassword, .verifyEmail, .signInCode], of: id, in: change)
    try await Visitor.release(from: id, in: change)
    try await Visitor.claim(for: id, in: change)
    try await FriendRequest.release(of: id, in: change)
    change.touch(.profile, of: id)
    let left = try await Leftovers.count(of: id, in: change)
    if left.isAnything { change.notify(id, about: .accountClaimed(id, left)) }
  }

  /// The contents of an account that a reader of its address's mail has claimed. Someone else may have created them.
  struct Leftovers: Sendable {
    let friends: Int
    let events: Int
    let links: Int

    var isAnything: Bool { friends + events + links > 0 }

    static func count(of user: User.ID, in database: some Querying) async throws -> Leftovers {
      let row = try await database.first(
        """
        SELECT (SELECT count(*) FROM friends WHERE user_id = \(user)) AS friends,
          (SELECT count(*) FROM event_hosts WHERE user_id = \(user)) AS events,
          (SELECT count(*) FROM share_links WHERE creator_id = \(user)) AS links
        """)
      return Leftovers(
        friends: try row?["friends"] ?? 0, events: try row?["events"] ?? 0, links: try row?["links"] ?? 0)
    }
  }
}

extension AppError {
  static let openWhereLoggedIn = AppError(
    .unauthorized, "open-where-logged-in",
    "This link works only with an access token of its account. Open it in the app where you are logged in.")
  static let anotherAccount = AppError(
    .forbidden, "another-account", "This link belongs to a different account than the one you are logged in to.")
  static let emailReleased = AppError(
    .conflict, "email-released",
    """
    The address was in an account whose owner logs in otherwise and has not verified it. The account has lost the \
    address: register with it.
    """)
}
