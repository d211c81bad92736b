import Hummingbird
import Postgres

/// Fresh evidence that the account's owner is acting, and not someone else with their unlocked phone.
enum Reauthentication: Sendable {
  case password(String)
  /// A fresh identity token of a linked provider.
  case identity(IdentityToken)

  /// Checks the evidence. This takes as long as checking a password, so it must not run in a transaction: see
  /// ``Session/check(_:in:)``.
  ///
  /// - Returns: the hash that the password was checked against.
  /// - Throws: ``AppError/wrongPassword``, ``AppError/noPassword`` or ``AppError/identityNotProven``;
  ///   ``AppError/tooManyAttempts`` after several failures.
  @discardableResult
  func check(_ context: Context, in dependencies: Dependencies) async throws -> String? {
    let (user, database) = (try context.user, dependencies.database)
    guard let account = try await Credentials.find(user, in: database) else { throw AppError.sessionEnded }
    let isProven = try await dependencies.throttle.attempt(.proof(try context.session)) { () -> Bool? in
      switch self {
      case .password(let password):
        guard let hash = account.passwordHash else { throw AppError.noPassword }
        return try await dependencies.passwords.verify(password, against: hash) ? true : nil
      case .identity(let token):
        return try await Identity.proves(
          token, is: user, providers: dependencies.identityProviders, logger: context.logger, in: database)
          ? true : nil
      }
    }
    guard isProven != nil else {
      switch self {
      case .password: throw AppError.wrongPassword
      case .identity: throw AppError.identityNotProven
      }
    }
    return account.passwordHash
  }
}

extension Fields {
  /// Reads the account's password, or else a fresh identity token of a linked provider. An account without a password
  /// has only the latter.
  mutating func proof(
    password passwordName: String, idToken: String = "idToken", nonce: String = "nonce"
  ) -> Reauthentication {
    let password = optional(passwordName, .anyPassword)
    let token = optional(idToken, .identityToken)
    let nonce = optional(nonce, .nonce)
    if let password { return .password(password) }
    if let token { return .identity(IdentityToken(text: token, nonce: nonce)) }
    note(passwordName, .required, "is required unless \(idToken) is given")
    return .password("")
  }
}

extension Fields.Rule where Value == String {
  static var identityToken: Self { opaque(1...16_384) }
  static var nonce: Self { opaque(1...1024) }
}

extension AppError {
  static let identityNotProven = AppError(
    .forbidden, "identity-not-proven", "This identity token is invalid, too old, or not linked to the account.")
}
