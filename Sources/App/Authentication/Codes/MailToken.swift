import Foundation
import Postgres

/// A permission that was mailed: good for one use, by whoever reads what comes to the address. Its text is derived from
/// a server key, as a refresh token's is: neither its row nor the queue holds anything secret.
struct MailToken: Sendable {
  typealias ID = Identifier<MailToken>

  enum Purpose: String, Decodable, Sendable, SQLValue {
    case verifyEmail = "verify-email"
    case resetPassword = "reset-password"

    /// In seconds.
    var lifetime: Int {
      switch self {
      case .verifyEmail: 24 * 3600
      case .resetPassword: 30 * 60
      }
    }
  }

  let user: User.ID
  /// To which it was mailed.
  let email: String

  // MARK: Issuing

  /// Issues a token for an account and an address, which with `verifyEmail` becomes the account's once it is shown. It
  /// takes the place of the account's older one of the same purpose.
  ///
  /// - Returns: what to mail with ``Mail/token(_:)``.
  static func issue(
    _ purpose: Purpose, email: String, for user: User.ID, keys: SigningKeys, in change: Change
  ) async throws -> ID {
    try await issue(purpose, email: "\(email)", where: "u.id = \(user)", keys: keys, in: change)
  }

  /// Issues a token to the account with this address; without one, it does as much and issues none.
  static func issueReset(to email: String, keys: SigningKeys, in change: Change) async throws -> ID {
    try await issue(.resetPassword, email: "u.email", where: "lower(u.email) = lower(\(email))", keys: keys, in: change)
  }

  private static func issue(
    _ purpose: Purpose, email: SQL, where account: SQL, keys: SigningKeys, in change: Change
  ) async throws -> ID {
    let id = ID.new()
    // The account is locked first, and not for its key alone: one that is being deleted is waited for, and gets neither a
    // token nor a mail.
    try await change.rows(
      """
      INSERT INTO mail_tokens (id, user_id, purpose, email, kid, expires_at)
      SELECT \(id), u.id, \(purpose), \(email), \(keys.signing.kid),
        clock_timestamp() + make_interval(secs => \(Double(purpose.lifetime)))
      FROM users AS u
      WHERE \(account)
      FOR SHARE OF u
      ON CONFLICT (user_id, purpose) DO UPDATE
      SET id = excluded.id, email = excluded.email, kid = excluded.kid, expires_at = excluded.expires_at
      """)
    return id
  }

  // MARK: Showing

  private static let label = "mm1"

  /// `mm1.kid.id.mac`: the purpose is in the MAC alone. Nil without a key of this id.
  static func text(of id: ID, for purpose: Purpose, kid: String, keys: SigningKeys) -> String? {
    let content = withUnsafeBytes(of: id.rawValue.uuid) { Data($0) }
    return keys.token(label, content, for: purpose.rawValue, kid: kid)
  }

  private static func id(of text: String, for purpose: Purpose, keys: SigningKeys) -> ID? {
    guard let (_, content) = keys.read(text, label, for: purpose.rawValue), content.count == 16 else { return nil }
    return content.withUnsafeBytes { ID(rawValue: UUID(uuid: $0.loadUnaligned(as: uuid_t.self))) }
  }

  /// What is still good, of `mail_tokens AS t` with `users AS u`: by the database's clock, and a reset only while the
  /// address that it was mailed to is the account's.
  private static func isGood(_ id: ID, _ purpose: Purpose) -> SQL {
    """
    t.id = \(id) AND t.purpose = \(purpose) AND t.expires_at > clock_timestamp() AND u.id = t.user_id
      AND (t.purpose <> 'reset-password' OR lower(u.email) = lower(t.email))
    """
  }

  /// The account that a token is for, without spending it; nil if it is not good.
  static func credentials(
    behind text: String, for purpose: Purpose, keys: SigningKeys, in database: some Querying
  ) async throws -> Credentials? {
    guard let id = id(of: text, for: purpose, keys: keys) else { return nil }
    return try await database.first(
      "SELECT \(Credentials.columns) FROM mail_tokens AS t CROSS JOIN users AS u WHERE \(isGood(id, purpose))"
    ).map(Credentials.init(row:))
  }

  /// Spends a token, and locks its account for a change. Of several requests with it at once, one succeeds.
  ///
  /// - Parameter user: the account that it was for a moment ago: see ``credentials(behind:for:keys:in:)``.
  /// - Returns: nil if it is unknown, for another purpose or account, or was used, replaced or expired.
  static func redeem(
    _ text: String, of user: User.ID, for purpose: Purpose, keys: SigningKeys, in change: Change
  ) async throws -> MailToken? {
    guard let id = id(of: text, for: purpose, keys: keys) else { return nil }
    // Accounts are locked before tokens.
    try await change.lock(user, for: .update)
    let row = try await change.first(
      """
      DELETE FROM mail_tokens AS t
      USING users AS u
      WHERE \(isGood(id, purpose)) AND t.user_id = \(user)
      RETURNING t.user_id, t.email
      """)
    return try row.map { MailToken(user: try $0["user_id"], email: try $0["email"]) }
  }

  // MARK: Forgetting

  /// Takes back what was mailed and not used yet.
  static func revoke(_ purposes: [Purpose], of user: User.ID, in change: Change) async throws {
    try await change.rows("DELETE FROM mail_tokens WHERE user_id = \(user) AND purpose = ANY(\(purposes))")
  }

  /// Takes back what was mailed to an address that is not the account's yet.
  ///
  /// - Returns: whether there was something: the profile showed it.
  static func revokePending(of user: User.ID, in change: Change) async throws -> Bool {
    try await change.rows(
      """
      DELETE FROM mail_tokens AS t USING users AS u
      WHERE u.id = \(user) AND t.user_id = u.id AND t.purpose = 'verify-email' AND t.email IS DISTINCT FROM u.email
      """
    ).affected > 0
  }

  /// Forgets some of those that have expired. An address that was to become somebody's no longer shows in their profile.
  ///
  /// - Returns: how many.
  static func purge(atMost limit: Int, in change: Change) async throws -> Int {
    // Accounts are locked before tokens. Whoever is doing something with one is not waited for.
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
  static let badMailToken = AppError.invalid("token", "must be one that was mailed, and neither used nor expired")
}
