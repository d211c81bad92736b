import Foundation
import Postgres

/// The names and the password that an account logs in with.
struct Credentials: Sendable {
  let user: User.ID
  let username: String
  let displayName: String
  let email: EmailAddress?
  let isEmailVerified: Bool
  /// See ``User/hasNoWayIn``.
  let hasNoWayIn: Bool
  /// Nil for a user who signs in only with a provider or with mailed codes.
  let passwordHash: String?

  /// Columns of `users AS u`.
  static let columns: SQL = """
    u.id, u.username, u.display_name, u.email, u.email_verified_at IS NOT NULL AS is_email_verified, u.password_hash,
    \(User.hasNoWayIn) AS has_no_way_in
    """

  init(row: Row) throws {
    user = try row["id"]
    username = try row["username"]
    displayName = try row["display_name"]
    email = try row["email"]
    isEmailVerified = try row["is_email_verified"]
    hasNoWayIn = try row["has_no_way_in"]
    passwordHash = try row["password_hash"]
  }

  static func find(_ user: User.ID, in database: some Querying) async throws -> Credentials? {
    try await database.first("SELECT \(columns) FROM users AS u WHERE u.id = \(user)").map(Credentials.init(row:))
  }

  /// Finds an account by username or e-mail address.
  static func find(login: Login, in database: some Querying) async throws -> Credentials? {
    // A username cannot contain an @ and an address must, so at most one can match.
    try await database.first(
      """
      SELECT \(columns) FROM users AS u
      WHERE u.username_key = \(login.key) OR u.email_key = \(login.key)
      """
    ).map(Credentials.init(row:))
  }

  /// - Throws: ``AppError`` for the field `newPassword` if the account must not have this password.
  func checkChoice(of newPassword: String) throws {
    let objection = Passwords.objection(
      to: newPassword, of: Passwords.Owner(username: username, displayName: displayName, email: email?.text))
    if let objection { throw AppError.invalid("newPassword", .weakPassword, objection) }
  }
}

extension User {
  /// The account of an operator's caller, by username.
  ///
  /// - Throws: ``AppError/userNotFound``.
  static func named(_ username: String, in database: some Querying) async throws -> ID {
    let user: ID? = try await database.value("SELECT id FROM users WHERE username_key = ascii_folded(\(username))")
    guard let user else { throw AppError.userNotFound }
    return user
  }

  /// Makes sure, until the change ends, that the account still has the password that was just verified. A password
  /// change ends all sessions, and must not miss one that starts with the old password.
  ///
  /// - Parameter upgraded: the same password hashed at the current cost, which replaces the stored hash.
  /// - Returns: false if the account has another hash by now.
  static func keep(
    passwordHash: String, upgradedTo upgraded: String?, of id: ID, in change: Change
  ) async throws -> Bool {
    try change.takeTurns(at: [id], for: upgraded == nil ? .share : .update)
    guard let upgraded else {
      return try await change.first(
        "SELECT 1 FROM users WHERE id = \(id) AND password_hash = \(passwordHash) FOR SHARE") != nil
    }
    return try await change.rows(
      "UPDATE users SET password_hash = \(upgraded) WHERE id = \(id) AND password_hash = \(passwordHash)"
    ).affected == 1
  }

  /// Changes the password, and ends all sessions except the one that asks for it. The owner gets a mail.
  ///
  /// - Parameter old: the hash that the current password was checked against, outside this change. Nil if a mailed code
  ///   was checked instead; then the account need not have a password.
  /// - Returns: false, without any effect, if the account has another hash by now.
  /// - Throws: ``AppError/sessionEnded``.
  static func changePassword(
    of id: ID, from old: String?, to hash: String, keeping session: Session.ID, in change: Change
  ) async throws -> Bool {
    try change.takeTurns(at: [id], for: .update)
    let changed = try await change.rows(
      """
      UPDATE users SET password_hash = \(hash), updated_at = clock_timestamp()
      WHERE id = \(id) AND (\(old) IS NULL OR password_hash = \(old))
      """)
    guard changed.affected == 1 else { return false }
    try await Session.check(session, in: change)
    try await Session.endAll(of: id, except: session, in: change)
    // Otherwise an earlier mail, or a request for another address, could undo this change or start a session.
    try MailToken.revoke([.resetPassword, .signInCode], of: id, in: change)
    let hadPending = try await MailToken.revokePending(of: id, in: change)
    // Without a previous password, this may be the account's first one, which the profile shows.
    if hadPending || old == nil { change.touch(.profile, of: id) }
    change.mail(.passwordChanged(id))
    return true
  }

  /// Sets a password by a mailed token, which also proves the address. Ends all sessions, removes all identities,
  /// revokes all other mailed tokens, and mails the owner.
  ///
  /// - Returns: false if the token proves nothing about the account: see ``prove(by:in:)``.
  static func resetPassword(to hash: String, by token: MailToken, in change: Change) async throws -> Bool {
    guard try await prove(by: token, in: change) else { return false }
    // Someone else may have linked an identity, and would keep access.
    try await Identity.unlinkAll(from: token.user, in: change)
    try change.write(
      "UPDATE users SET password_hash = \(hash), updated_at = clock_timestamp() WHERE id = \(token.user)")
    try await Session.endAll(of: token.user, in: change)
    try MailToken.revoke([.resetPassword, .verifyEmail, .signInCode], of: token.user, in: change)
    change.touch(.profile, of: token.user)
    change.mail(.passwordChanged(token.user))
    return true
  }
}

extension AppError {
  static let wrongPassword = AppError(.forbidden, "wrong-password", "This is not the account's current password.")
  static let noPassword = AppError(
    .conflict, "no-password", "This account has no password yet. Set one with a mailed code or a password reset.")
}

/// The text that identifies a user at a login: a username or an e-mail address. A username cannot contain an @ and an
/// address must, so one of the two at most has this key.
struct Login: Sendable {
  /// The same for all spellings that find one account, and also made of a text that can find none: unknown logins are
  /// slowed down alike.
  let key: String

  init(_ text: String) {
    key = (try? EmailAddress(parsing: text))?.key ?? text.lowercasedASCII
  }
}

extension Fields.Rule where Value == Login {
  /// Not normalized, which would turn some other letters into ASCII letters.
  static var login: Self {
    Self(placeholder: Login("")) { json throws(Fields.Broken) in
      guard case .string(let raw) = json else { throw Fields.Broken.wrongType("a string", json) }
      let text = String(raw.trimmedScalars)
      guard (1...EmailAddress.maximumLength).contains(text.unicodeScalars.count) else {
        throw Fields.Broken(.wrongLength, "must be 1 to \(EmailAddress.maximumLength) characters long")
      }
      return Login(text)
    }
  }
}
