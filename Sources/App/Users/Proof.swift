import Logging
import Postgres

/// Fresh evidence that it is the account's owner who acts, and not somebody with their unlocked phone.
enum Proof: Sendable {
  case password(String)
  /// What a linked provider said of them just now.
  case idToken(String, nonce: String?)

  /// Checks it. Takes as long as checking a password does, so not in a transaction.
  ///
  /// - Throws: ``AppError/wrongPassword``, or ``AppError/tooManyAttempts`` after some of these.
  func check(for user: User.ID, in dependencies: Dependencies, logger: Logger) async throws {
    let database = dependencies.database
    let account = try await database.first("SELECT password_hash FROM users WHERE id = \(user)")
    guard let account else { throw AppError.sessionEnded }
    let hash: String? = try account["password_hash"]
    let proven = try await Throttle.attempt([.password(user)], in: database) { () -> Bool? in
      let isRight =
        switch self {
        case .password(let password): try await dependencies.passwords.verify(password, against: hash)
        case .idToken(let token, let nonce):
          try await Identity.proves(
            token, nonce: nonce, is: user, providers: dependencies.identityProviders, logger: logger, in: database)
        }
      return isRight ? true : nil
    }
    guard proven != nil else { throw AppError.wrongPassword }
  }
}

extension Fields {
  /// The password in `name`; or else `idToken`, perhaps with `nonce`, which is what an account without a password has.
  mutating func proof(password name: String) -> Proof {
    let password = optional(name, .anyPassword)
    let token = optional("idToken", .text(1...16_384))
    let nonce = optional("nonce", .text(1...1024))
    if let password { return .password(password) }
    if let token { return .idToken(token, nonce: nonce) }
    note(name, "is required, or else idToken")
    return .password("")
  }
}
