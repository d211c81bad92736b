import Foundation
import HTTPServer
import Postgres

/// Routes to change and reset the password, and to verify an address. The last two use mailed tokens.
struct PasswordRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var passwords: Passwords { dependencies.passwords }
  private var keys: SigningKeys { dependencies.refreshTokenKeys }

  @Sendable func changePassword(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let (reauthentication, new) = try await request.read { fields in
      (
        fields.reauthentication(Body.PasswordChange.currentPassword, code: Body.PasswordChange.code),
        fields.required(Body.PasswordChange.newPassword)
      )
    }
    // Tries again if the password was changed or rehashed meanwhile. Of two concurrent changes, the second then fails,
    // because its current password is outdated, or its code is spent.
    while true {
      guard let account = try await Credentials.find(me, in: database) else { throw AppError.sessionEnded }
      try account.checkChoice(of: new)
      let confirmation = try await reauthentication.check(context, in: dependencies)
      // Outside the transaction: hashing takes a while, and must not occupy a connection.
      let hash = try await passwords.hash(new)
      let isChanged = try await dependencies.change(at: [.user(me)]) { change -> Bool in
        try await confirmation.spend(in: change)
        return try await User.changePassword(
          of: me, from: confirmation.passwordHash, to: hash, keeping: session, in: change)
      }
      if isChanged { return .noContent }
    }
  }

  @Sendable func requestReset(_ request: Request, _ context: Context) async throws -> Response {
    let email = try await request.read(Body.PasswordResetRequest.init).email
    try await dependencies.throttle.count(.resets(from: context.address))
    let caller = await dependencies.sessionUser(of: request)
    return try await .afterMailing { try await mailReset(to: email, by: caller, context) }
  }

  /// Mails a token if there is an account, unless many tokens were mailed to this address recently. The caller does not
  /// learn which of these is the case.
  private func mailReset(to email: EmailAddress, by caller: User.ID?, _ context: Context) async throws {
    let network = dependencies.addressKeys.network(of: context.address)
    let recipient = try await MailToken.recipient(at: email, from: network, in: database)
    let attempt = MailGate.Attempt(
      id: UUID(), kind: .resetPassword, mailbox: Mailbox(email), origin: context.address,
      budget: recipient?.budget(for: caller) ?? .stranger, counts: recipient != nil)
    let pass = try await dependencies.mailGate.decide(on: attempt, in: database).pass
    // An unknown address costs the same statements.
    let user = recipient?.user ?? .new()
    try await database.change { try MailToken.mailReset(to: user, at: email, pass, keys: keys, in: $0) }
  }

  @Sendable func confirmReset(_ request: Request, _ context: Context) async throws -> Response {
    let body = try await request.read(Body.PasswordReset.init)
    let (token, new) = (body.token, body.newPassword)
    // A rejected password must not cost the token.
    let account = try await MailToken.credentials(behind: token, for: .resetPassword, keys: keys, in: database)
    guard let account else { throw AppError.badMailToken }
    try account.checkChoice(of: new)
    let hash = try await passwords.hash(new)
    // An address that an account loses is recorded in the database before the caller is refused.
    let isReset = try await dependencies.change(at: [.user(account.user)]) { change in
      let redeemed = try await MailToken.redeem(
        token, of: account.user, for: .resetPassword, keys: keys, in: change)
      guard let redeemed else { throw AppError.badMailToken }
      return try await User.resetPassword(to: hash, by: redeemed, in: change)
    }
    guard isReset else { throw AppError.emailReleased }
    return .noContent
  }

  @Sendable func verifyEmail(_ request: Request, _ context: Context) async throws -> Response {
    let token = try await request.read(Body.MailedToken.init).token
    let caller = try await dependencies.caller(of: request)
    try await dependencies.verifyEmail(by: token, as: caller, from: context.address)
    return .noContent
  }

  @Sendable func undoEmailChange(_ request: Request, _ context: Context) async throws -> Response {
    let token = try await request.read(Body.MailedToken.init).token
    try await dependencies.undoEmailChange(by: token)
    return .noContent
  }
}

/// Steps that the API and the pages share.
extension Dependencies {
  /// The caller of a route that is open to everyone; nil without a token.
  ///
  /// - Throws: as for a route that needs a token, if there is one.
  fileprivate func caller(of request: Request) async throws -> AccessTokens.Caller? {
    guard request.headers.contains(.authorization) else { return nil }
    guard let token = request.bearerToken else { throw AppError.noToken }
    let caller = try await accessTokens.verify(token)
    try endedSessions.check(caller)
    return caller
  }

  /// - Parameter address: the client's.
  /// - Throws: ``AppError/badMailToken``, and the refusals of ``User/verifyEmail(by:as:_:keys:in:)``.
  /// - Returns: the account.
  @discardableResult
  func verifyEmail(by token: String, as caller: AccessTokens.Caller?, from address: String) async throws -> User.ID {
    let keys = self.refreshTokenKeys
    guard let account = try await MailToken.find(token, for: .verifyEmail, keys: keys, in: database) else {
      throw AppError.badMailToken
    }
    let user = account.user
    func verify(_ pass: MailGate.Pass?) async throws {
      try await change(at: [.user(user)]) { change in
        let redeemed = try await MailToken.redeem(token, of: user, for: .verifyEmail, keys: keys, in: change)
        guard let redeemed else { throw AppError.badMailToken }
        try await User.verifyEmail(by: redeemed, as: caller, pass, keys: keys, in: change)
      }
    }
    guard caller?.user == user, let old = try await User.unprovenAddress(replacedBy: account.token, in: database) else {
      try await verify(nil)
      return user
    }
    let attempt = MailGate.Attempt(
      id: account.token.rawValue, kind: .emailChanged, mailbox: Mailbox(old), origin: address, budget: .stranger)
    try await mailGate.passing(attempt, in: database) { try await verify($0.pass) }
    return user
  }

  /// - Throws: ``AppError/badMailToken``, and the refusals of ``User/undoEmailChange(by:in:)``.
  func undoEmailChange(by token: String) async throws {
    let keys = self.refreshTokenKeys
    let account = try await MailToken.find(token, for: .undoEmailChange, keys: keys, in: database)
    guard let user = account?.user else { throw AppError.badMailToken }
    try await change(at: [.user(user)]) { change in
      let holder = try await MailToken.holder(
        besides: user, of: token, for: .undoEmailChange, keys: keys, in: change)
      try change.lockAhead(users: [user, holder].compactMap { $0 }, for: .update)
      let redeemed = try await MailToken.redeem(token, of: user, for: .undoEmailChange, keys: keys, in: change)
      guard let redeemed else { throw AppError.badMailToken }
      try await User.undoEmailChange(by: redeemed, in: change)
    }
  }
}
