import Crypto
import Foundation
import Postgres

/// The six digits in a mail that sign in the reader of the mail, or serve as reauthentication. They stand for the
/// ``MailToken`` of the same mail, and are derived from its id with a server key. So they are not stored anywhere, and
/// belong to one account, one address and one mail.
///
/// Six digits can be guessed. So only a few wrong ones are compared each day; after that, all codes of the account are
/// refused. The token in the mail cannot be guessed, and is never refused.
enum SignInCode {
  static let length = 6
  private static let label = "muster sign-in code"
  /// Per account, in 24 hours.
  private static let maximumMistakes = 10

  /// Nil if there is no key with this id.
  static func text(of id: MailToken.ID, kid: String, keys: SigningKeys) -> String? {
    guard let key = keys.derived(kid: kid, label: label) else { return nil }
    let mac = Data(HMAC<SHA256>.authenticationCode(for: Data(packing: id), using: key))
    // 64 bits, so that no code is noticeably more likely than another.
    let number = mac.prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    let digits = String(number % 1_000_000)
    return String(repeating: "0", count: length - digits.utf8.count) + digits
  }

  // MARK: Mailing

  /// Mails a token with a code, in place of the account's earlier one. If the account has another address by now, or the
  /// gate holds the mail back, it does the same work and mails nothing.
  static func mail(
    to user: User.ID, at email: EmailAddress, _ pass: MailGate.Pass?, keys: SigningKeys, in change: Change
  ) throws {
    try change.lockAhead(user, for: .update)
    let id = try MailToken.issue(
      .signInCode, email: "u.email",
      where: "u.id = \(user) AND u.email_key = \(email.key) AND \(pass != nil)", keys: keys, in: change)
    if let pass { change.mail(.token(id, pass)) }
  }

  // MARK: Checking

  /// The account with this address, if a code for it is valid at the moment. Takes no lock.
  static func account(at email: EmailAddress, in database: some Querying) async throws -> User.ID? {
    try await database.value(
      "SELECT u.id FROM \(tokens) WHERE u.email_key = \(email.key) AND \(isOpen)")
  }

  /// Compares a code with the account's. A wrong one is counted, so the caller must commit and only then refuse. No
  /// more concurrent guesses are compared than sequential ones would be.
  ///
  /// - Returns: the token that the code stands for, to redeem. Nil if the code is wrong, used, replaced or expired, or
  ///   if too many wrong ones came before it.
  static func check(
    _ code: String, of user: User.ID, keys: SigningKeys, in change: Change
  ) async throws -> MailToken.ID? {
    try change.lockAhead(user, for: .update)
    let row = try await change.first("SELECT t.id, t.kid FROM \(tokens) WHERE u.id = \(user) AND \(isOpen)")
    guard let row else { return nil }
    let id: MailToken.ID = try row["id"]
    guard let expected = text(of: id, kid: try row["kid"], keys: keys) else { return nil }
    // The comparison of digests takes the same time wherever they differ.
    if SHA256.hash(data: Data(code.utf8)) == SHA256.hash(data: Data(expected.utf8)) { return id }
    try change.write("INSERT INTO code_uses (user_id, kind) VALUES (\(user), 'wrong')")
    return nil
  }

  private static let tokens: SQL = "mail_tokens AS t JOIN users AS u ON u.id = t.user_id"

  /// The condition on ``tokens`` for an account whose code is compared.
  private static var isOpen: SQL {
    """
    t.purpose = \(MailToken.Purpose.signInCode) AND t.expires_at > clock_timestamp() AND t.email_key = u.email_key
      AND \(mistakes) < \(maximumMistakes)
    """
  }

  // MARK: Counting

  /// The number of wrong codes for `users AS u` in the last 24 hours.
  private static let mistakes: SQL = """
    (
      SELECT count(*) FROM code_uses AS c
      WHERE c.user_id = u.id AND c.kind = 'wrong' AND c.used_at > clock_timestamp() - interval '24 hours'
    )
    """

  /// Deletes uses older than 24 hours.
  ///
  /// - Returns: how many rows it deleted.
  static func purge(atMost limit: Int, in database: Database) async throws -> Int {
    try await database.purge("code_uses", by: "used_at", upTo: "now() - interval '24 hours'", atMost: limit)
  }
}

extension Fields.Rule where Value == String {
  /// Kept as text, because a code may begin with zeros.
  static var signInCode: Self {
    opaque(SignInCode.length...SignInCode.length).and("must be six digits") {
      $0.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
  }
}
