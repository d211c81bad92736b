import HTTPServer
import Postgres

/// The credential that a user presents before a risky change, so that the account's owner makes it, and not someone
/// else with their unlocked phone.
enum Reauthentication: Sendable {
  case password(String)
  /// A fresh identity token of a linked provider.
  case identity(IdentityToken)
  /// A code that was mailed to the account's verified address.
  case code(String)
  /// Nothing. This is enough for an account that has no way in, such as one that was registered without a password and
  /// with a mistyped address: its owner can still correct it.
  ///
  /// - Parameter missing: the error for all other accounts.
  case session(missing: AppError)

  /// A reauthentication that was checked.
  struct Confirmation: Sendable {
    fileprivate let user: User.ID
    /// The hash that the password was checked against.
    fileprivate(set) var passwordHash: String?
    /// The token that the code stands for.
    fileprivate var code: MailToken.ID?
    /// The error if the account has a way in by now.
    fileprivate var missing: AppError?

    /// Uses up a code, together with the change that it permits: a change that fails costs no code. Passwords and
    /// identity tokens can be used again.
    ///
    /// - Throws: ``AppError/wrongCode`` if the code was used or replaced since the check.
    func spend(in change: Change) async throws {
      if let missing {
        try change.lockAhead(user, for: .update)
        let hasNoWayIn: Bool? = try await change.value(
          "SELECT \(User.hasNoWayIn) FROM users AS u WHERE u.id = \(user)")
        guard hasNoWayIn == true else { throw missing }
      }
      guard let code else { return }
      guard try await MailToken.redeem(code, of: user, for: .signInCode, in: change) != nil else {
        throw AppError.wrongCode
      }
    }
  }

  /// Checks what was presented. This takes as long as checking a password, so it must not run in a transaction: see
  /// ``Session/check(_:in:)``.
  ///
  /// - Returns: what the change must spend.
  /// - Throws: ``AppError/wrongPassword``, ``AppError/noPassword``, ``AppError/identityNotProven``,
  ///   ``AppError/wrongCode`` or ``AppError/emailUnverified``; ``AppError/tooManyAttempts`` after several failures.
  func check(_ context: Context, in dependencies: Dependencies) async throws -> Confirmation {
    let (user, database) = (try context.user, dependencies.database)
    guard let account = try await Credentials.find(user, in: database) else { throw AppError.sessionEnded }
    let key = Throttle.Key.reauthentication(try context.session)
    let confirmation = try await dependencies.throttle.attempt(key) { () -> Confirmation? in
      switch self {
      case .password(let password):
        guard let hash = account.passwordHash else { throw AppError.noPassword }
        let isRight = try await dependencies.passwords.verify(password, against: hash)
        return isRight ? Confirmation(user: user, passwordHash: hash) : nil
      case .identity(let token):
        let isConfirmed = try await Identity.confirms(
          token, is: user, providers: dependencies.identityProviders, logger: context.logger, in: database)
        return isConfirmed ? Confirmation(user: user) : nil
      case .code(let code):
        // The reader of an unverified address may be anyone: the owner may have mistyped it.
        guard account.isEmailVerified else { throw AppError.emailUnverified }
        let token = try await dependencies.change(at: [.user(user)]) {
          try await SignInCode.check(code, of: user, keys: dependencies.refreshTokenKeys, in: $0)
        }
        return token.map { Confirmation(user: user, code: $0) }
      case .session(let missing):
        guard account.hasNoWayIn else { throw missing }
        return Confirmation(user: user, missing: missing)
      }
    }
    if let confirmation { return confirmation }
    switch self {
    case .password: throw AppError.wrongPassword
    case .identity: throw AppError.identityNotProven
    case .code: throw AppError.wrongCode
    case .session(let missing): throw missing
    }
  }
}

extension Fields {
  /// Reads the account's password, or else a fresh identity token of a linked provider or a mailed code. An account
  /// without a password has only the latter two. Whether nothing is enough depends on the account.
  ///
  /// - Parameter idToken: nil if an identity token is not enough.
  mutating func reauthentication(
    _ password: Member<String>, idToken: Member<String>? = nil, nonce: Member<String>? = nil, code: Member<String>
  ) -> Reauthentication {
    let given = optional(password)
    let (token, itsNonce) = (idToken.flatMap { optional($0) }, nonce.flatMap { optional($0) })
    let digits = optional(code)
    if let given { return .password(given) }
    if let token { return .identity(IdentityToken(text: token, nonce: itsNonce)) }
    if let digits { return .code(digits) }
    let others = [idToken?.name, code.name].compactMap(\.self).joined(separator: " or ")
    return .session(missing: noteMissing(password.name, "is required unless \(others) is given"))
  }
}

extension AppError {
  static let identityNotProven = AppError(
    .forbidden, "identity-not-proven", "This identity token is invalid, too old, or not linked to the account.")
  static let wrongCode = AppError(
    .forbidden, "wrong-code",
    "This code is wrong, expired or already used, or too many wrong codes were tried. Request another one.")
  static let emailUnverified = AppError(
    .conflict, "email-unverified",
    """
    The account has no verified e-mail address, so a code cannot confirm this change. Verify the address, or log in \
    with the code first.
    """
  )
}
