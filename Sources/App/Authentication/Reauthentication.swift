import Hummingbird
import Postgres

/// Fresh evidence that it is the account's owner who acts, and not somebody with their unlocked phone.
enum Reauthentication: Sendable {
  case password(String)
  /// What a linked provider said of them just now.
  case identity(IdentityToken)

  /// Checks it. Takes as long as checking a password does, so not in a transaction: see ``Session/check(_:in:)``.
  ///
  /// - Returns: the hash that the password was checked against.
  /// - Throws: ``AppError/wrongPassword``, ``AppError/noPassword`` or ``AppError/identityNotProven``; after some of
  ///   these ``AppError/tooManyAttempts``.
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
  /// The account's password; or else what a linked provider says of its owner just now, which is what an account without
  /// a password has.
  mutating func proof(
    password passwordName: String, idToken: String = "idToken", nonce: String = "nonce"
  ) -> Reauthentication {
    let password = optional(passwordName, .anyPassword)
    let token = optional(idToken, .identityToken)
    let nonce = optional(nonce, .nonce)
    if let password { return .password(password) }
    if let token { return .identity(IdentityToken(text: token, nonce: nonce)) }
    note(passwordName, "is required, or else \(idToken)")
    return .password("")
  }
}

extension Fields.Rule where Value == String {
  static var identityToken: Self { opaque(1...16_384) }
  static var nonce: Self { opaque(1...1024) }
}

extension AppError {
  static let identityNotProven = AppError(
    .forbidden, "identity-not-proven", "This identity token is not a fresh one of an identity linked to the account.")
}
