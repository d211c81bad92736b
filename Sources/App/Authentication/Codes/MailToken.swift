import Foundation
import Postgres

/// A mailed single-use token for the person who reads the address's mail. Its text is derived from a server key, as a
/// refresh token's is. Neither its row nor the mail queue holds a secret.
struct MailToken: Sendable {
  typealias ID = Identifier<MailToken>

  enum Purpose: String, Decodable, Sendable, SQLValue {
    case verifyEmail = "verify-email"
    case resetPassword = "reset-password"
    /// Its mail also has a code: see ``SignInCode``.
    case signInCode = "sign-in-code"
    /// Mailed to the former address of an account. An account may have several.
    case undoEmailChange = "undo-email-change"

    /// In seconds.
    var lifetime: Int {
      switch self {
      case .verifyEmail: 24 * 3600
      case .resetPassword: 30 * 60
      case .signInCode: 10 * 60
      case .undoEmailChange: 7 * 86_400
      }
    }
  }

  let user: User.ID
  /// The address that it was mailed to.
  let email: EmailAddress
  let expiresAt: Timestamp

  // MARK: Issuing

  /// Issues a token for an account and an address. With `verifyEmail`, the address becomes the account's when the token
  /// is redeemed. The token replaces the account's older one for the same purpose.
  ///
  /// - Returns: the id to mail with ``Mail/token(_:)``.
  static func issue(
    _ purpose: Purpose, email: EmailAddress, for user: User.ID, keys: SigningKeys, in change: Change
  ) throws -> ID {
    try issue(purpose, email: "\(email)", where: "u.id = \(user)", keys: keys, in: change)
  }

  /// An account that asks for a mail to its address.
  struct Recipient: Sendable {
    let user: User.ID
    /// Whether the account has verified the address.
    let isProven: Bool
    /// Whether a session of the account has come from the network that the request comes from.
    let knowsNetwork: Bool

    /// - Parameter caller: the user whose session asks for the mail.
    func budget(for caller: User.ID?) -> MailGate.Budget {
      guard isProven else { return .stranger }
      return caller == user ? .session : knowsNetwork ? .known : .owner
    }
  }

  /// The account with this address. Takes no lock.
  ///
  /// - Parameter network: from ``AddressKeys/network(of:)``.
  static func recipient(
    at email: EmailAddress, from network: Data? = nil, in database: some Querying
  ) async throws -> Recipient? {
    try await database.first(
      """
      SELECT id, email_verified_at IS NOT NULL AS is_proven,
        \(KnownNetwork.isKnown(network, to: "users.id")) AS knows_network
      FROM users WHERE email_key = \(email.key)
      """
    ).map {
      Recipient(user: try $0["id"], isProven: try $0["is_proven"], knowsNetwork: try $0["knows_network"])
    }
  }

  /// Mails a token for a password reset to an account. If it has another address by now, or the gate holds the mail back,
  /// it does the same work and mails nothing.
  static func mailReset(
    to user: User.ID, at email: EmailAddress, _ pass: MailGate.Pass?, keys: SigningKeys, in change: Change
  ) throws {
    try change.takeTurns(at: [user], for: .share)
    let id = try issue(
      .resetPassword, email: "u.email",
      where: "u.id = \(user) AND u.email_key = \(email.key) AND \(pass != nil)", keys: keys, in: change)
    if let pass { change.mail(.token(id, pass)) }
  }

  /// - Parameters:
  ///   - email: a column of `users AS u`, or a value.
  ///   - account: the condition on `users AS u` for the account. If no account meets it, no token is issued.
  static func issue(
    _ purpose: Purpose, email: SQL, where account: SQL, keys: SigningKeys, in change: Change
  ) throws -> ID {
    let id = ID.new()
    // Locks the account first, and not only for its key: an account that is being deleted is waited for, and gets
    // neither a token nor a mail.
    try change.write(
      """
      INSERT INTO mail_tokens (id, user_id, purpose, email, kid, expires_at)
      SELECT \(id), u.id, \(purpose), \(email), \(keys.signing.kid),
        clock_timestamp() + make_interval(secs => \(Double(purpose.lifetime)))
      FROM users AS u
      WHERE \(account)
      FOR SHARE OF u
      ON CONFLICT (user_id, purpose) WHERE purpose <> 'undo-email-change' DO UPDATE
      SET id = excluded.id, email = excluded.email, kid = excluded.kid, expires_at = excluded.expires_at
      """)
    return id
  }

  // MARK: Presenting

  private static let label = "mm1"

  /// `mm1.kid.id.mac`. The purpose is only in the MAC. Nil if there is no key with this id.
  static func text(of id: ID, for purpose: Purpose, kid: String, keys: SigningKeys) -> String? {
    keys.token(label, Data(packing: id), for: purpose.rawValue, kid: kid)
  }

  private static func id(of text: String, for purpose: Purpose, keys: SigningKeys) -> ID? {
    keys.read(text, label, for: purpose.rawValue)?.content.unpacked(as: ID.self)
  }

  /// The condition on `mail_tokens AS t` and `users AS u` for a valid token: it has not expired by the database's
  /// clock, and unless it is for another address, the one that it was mailed to is still the account's.
  private static func isGood(_ id: ID, _ purpose: Purpose) -> SQL {
    """
    t.id = \(id) AND t.purpose = \(purpose) AND t.expires_at > clock_timestamp() AND u.id = t.user_id
      AND (t.purpose IN ('verify-email', 'undo-email-change') OR u.email_key = t.email_key)
    """
  }

  /// The account that a token is for, without spending the token. Nil if the token is not valid.
  static func credentials(
    behind text: String, for purpose: Purpose, keys: SigningKeys, in database: some Querying
  ) async throws -> Credentials? {
    guard let id = id(of: text, for: purpose, keys: keys) else { return nil }
    return try await database.first(
      "SELECT \(Credentials.columns) FROM mail_tokens AS t CROSS JOIN users AS u WHERE \(isGood(id, purpose))"
    ).map(Credentials.init(row:))
  }

  /// The account and the id of a valid token, without spending it.
  static func find(
    _ text: String, for purpose: Purpose, keys: SigningKeys, in database: some Querying
  ) async throws -> (user: User.ID, token: ID)? {
    guard let id = id(of: text, for: purpose, keys: keys) else { return nil }
    let user: User.ID? = try await database.value(
      "SELECT t.user_id FROM mail_tokens AS t CROSS JOIN users AS u WHERE \(isGood(id, purpose))")
    return user.map { (user: $0, token: id) }
  }

  /// Spends a token, and locks its account for a change. Of several concurrent requests with one token, one succeeds.
  ///
  /// - Parameter user: the account that the token was for when it was read: see ``credentials(behind:for:keys:in:)``.
  /// - Returns: nil if the token is unknown, is for another purpose or account, or was used, replaced or has expired.
  static func redeem(
    _ text: String, of user: User.ID, for purpose: Purpose, keys: SigningKeys, in change: Change
  ) async throws -> MailToken? {
    guard let id = id(of: text, for: purpose, keys: keys) else { return nil }
    return try await redeem(id, of: user, for: purpose, in: change)
  }

  static func redeem(
    _ id: ID, of user: User.ID, for purpose: Purpose, in change: Change
  ) async throws -> MailToken? {
    // Accounts are locked before tokens.
    try change.lockAhead(user, for: .update)
    let row = try await change.first(
      """
      DELETE FROM mail_tokens AS t
      USING users AS u
      WHERE \(isGood(id, purpose)) AND t.user_id = \(user)
      RETURNING t.user_id, t.email, t.expires_at
      """)
    return try row.map {
      MailToken(user: try $0["user_id"], email: try $0["email"], expiresAt: try $0["expires_at"])
    }
  }

  /// The other account that has the address of an account's token. It loses the address if it has not verified it.
  static func holder(
    besides user: User.ID, of text: String, for purpose: Purpose, keys: SigningKeys,
    in database: some Querying
  ) async throws -> User.ID? {
    guard let id = id(of: text, for: purpose, keys: keys) else { return nil }
    return try await database.value(
      """
      SELECT h.id FROM mail_tokens AS t JOIN users AS h ON h.email_key = t.email_key
      WHERE t.id = \(id) AND h.id <> \(user)
      """)
  }

  // MARK: Forgetting

  /// Revokes what would undo a change of address that was made at the same time as another one, or later.
  static func revokeUndos(of user: User.ID, since token: MailToken, in change: Change) throws {
    try change.write(
      """
      DELETE FROM mail_tokens
      WHERE user_id = \(user) AND purpose = 'undo-email-change' AND expires_at >= \(token.expiresAt)
      """)
  }

  /// Revokes mailed tokens that were not used yet.
  static func revoke(_ purposes: [Purpose], of user: User.ID, in change: Change) throws {
    try change.write("DELETE FROM mail_tokens WHERE user_id = \(user) AND purpose = ANY(\(purposes))")
  }

  /// Revokes a token that was mailed to an address that is not the account's yet.
  ///
  /// - Returns: whether there was one. The profile showed it.
  static func revokePending(of user: User.ID, in change: Change) async throws -> Bool {
    try await change.rows(
      """
      DELETE FROM mail_tokens AS t USING users AS u
      WHERE u.id = \(user) AND t.user_id = u.id AND t.purpose = 'verify-email'
        AND t.email_key IS DISTINCT FROM u.email_key
      """
    ).affected > 0
  }

  /// Deletes some expired tokens. A pending address then no longer shows in its user's profile.
  ///
  /// - Returns: how many tokens it deleted.
  static func purge(atMost limit: Int, in change: Change) async throws -> Int {
    // Accounts are locked before tokens. Accounts that another change has locked are skipped.
    let users: [User.ID] = try await change.rows(
      """
      SELECT id FROM users
      WHERE id IN (SELECT user_id FROM mail_tokens WHERE expires_at <= now() ORDER BY expires_at LIMIT \(limit))
      ORDER BY id
      FOR NO KEY UPDATE SKIP LOCKED
      """
    ).map { try $0["id"] }
    guard !users.isEmpty else { return 0 }
    let expired = try await change.rows(
      "DELETE FROM mail_tokens WHERE user_id = ANY(\(users)) AND expires_at <= now() RETURNING user_id, purpose")
    for row in expired {
      let purpose: Purpose = try row["purpose"]
      if purpose == .verifyEmail { change.touch(.profile, of: try row["user_id"]) }
    }
    return expired.count
  }
}

extension AppError {
  static let badMailToken = AppError.invalid(
    "token", .invalidToken, "must be a mailed token that is unused and has not expired")
}
