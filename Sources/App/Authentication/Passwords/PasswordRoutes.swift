import Foundation
import Hummingbird
import Postgres

/// Routes to change and reset the password, and to verify an address. The last two use mailed tokens.
struct PasswordRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var passwords: Passwords { dependencies.passwords }
  private var keys: SigningKeys { dependencies.refreshTokenKeys }

  func add(to signedIn: Routes, open: Routes) {
    signedIn.post("auth/password", use: changePassword)
    open.post("auth/password-reset", use: requestReset)
    open.post("auth/password-reset/confirm", use: confirmReset)
    open.post("auth/email/verify", use: verifyEmail)
  }

  @Sendable private func changePassword(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let (reauthentication, new) = try await request.read { fields in
      (fields.reauthentication(password: "currentPassword", idToken: nil), fields.required("newPassword", .password))
    }
    // Tries again if the password was changed or hashed anew meanwhile. Of two concurrent changes, the second then
    // fails, because its current password is outdated, or its code is spent.
    while true {
      guard let account = try await Credentials.find(me, in: database) else { throw AppError.sessionEnded }
      try account.checkChoice(of: new)
      let confirmation = try await reauthentication.check(context, in: dependencies)
      // Outside the transaction: hashing takes a while, and must not occupy a connection.
      let hash = try await passwords.hash(new)
      let isChanged = try await dependencies.change(at: .user(me)) { change -> Bool in
        try await confirmation.spend(in: change)
        return try await User.changePassword(
          of: me, from: confirmation.passwordHash, to: hash, keeping: session, in: change)
      }
      if isChanged { return .noContent }
    }
  }

  @Sendable private func requestReset(_ request: Request, _ context: Context) async throws -> Response {
    let email = try await request.read { $0.required("email", .email) }
    try await dependencies.throttle.count(.resets(from: context.address))
    return try await .afterMailing { try await mailReset(to: email) }
  }

  /// Mails a token if there is an account, unless many tokens were mailed to this address recently. The caller does not
  /// learn which of these is the case.
  private func mailReset(to email: EmailAddress) async throws {
    do {
      try await dependencies.throttle.count(.resets(to: email))
    } catch let error as AppError where error.slug == AppError.tooManyAttempts.slug {
      return
    }
    try await database.change { change in
      let token = try await MailToken.issueReset(to: email, keys: keys, in: change)
      change.mail(.token(token))
    }
  }

  @Sendable private func confirmReset(_ request: Request, _ context: Context) async throws -> Response {
    let (token, new) = try await request.read { fields in
      (fields.required("token", .text(1...500)), fields.required("newPassword", .password))
    }
    // A rejected password must not cost the token.
    let account = try await MailToken.credentials(behind: token, for: .resetPassword, keys: keys, in: database)
    guard let account else { throw AppError.badMailToken }
    try account.checkChoice(of: new)
    let hash = try await passwords.hash(new)
    try await dependencies.change(at: .user(account.user)) { change in
      let redeemed = try await MailToken.redeem(
        token, of: account.user, for: .resetPassword, keys: keys, in: change)
      guard let redeemed else { throw AppError.badMailToken }
      try await User.resetPassword(to: hash, by: redeemed, in: change)
    }
    return .noContent
  }

  @Sendable private func verifyEmail(_ request: Request, _ context: Context) async throws -> Response {
    let token = try await request.read { $0.required("token", .text(1...500)) }
    let account = try await MailToken.credentials(behind: token, for: .verifyEmail, keys: keys, in: database)
    guard let account else { throw AppError.badMailToken }
    try await dependencies.change(at: .user(account.user)) { change in
      let redeemed = try await MailToken.redeem(token, of: account.user, for: .verifyEmail, keys: keys, in: change)
      guard let redeemed else { throw AppError.badMailToken }
      try await User.verifyEmail(by: redeemed, in: change)
    }
    return .noContent
  }
}
