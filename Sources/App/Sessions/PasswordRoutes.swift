import Foundation
import Hummingbird
import Postgres

/// Changing and resetting the password, and proving an address, by tokens that come by mail.
struct PasswordRoutes {
  private let dependencies: Dependencies
  private let database: Database
  private let passwords: Passwords
  private let keys: SigningKeys

  /// Some milliseconds of work more tell whether there is an account: every answer to a request for a reset comes after
  /// this time instead.
  private static let resetAnswerTime = Duration.milliseconds(100)

  init(_ dependencies: Dependencies) {
    self.dependencies = dependencies
    database = dependencies.database
    passwords = dependencies.passwords
    keys = dependencies.refreshTokenKeys
  }

  func add(to signedIn: Routes, open: Routes) {
    signedIn.post("auth/password", use: changePassword)
    open.post("auth/password-reset", use: requestReset)
    open.post("auth/password-reset/confirm", use: confirmReset)
    open.post("auth/email/verify", use: verifyEmail)
  }

  @Sendable private func changePassword(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let (current, new) = try await request.read { fields in
      (fields.required("currentPassword", .anyPassword), fields.required("newPassword", .password))
    }
    // Once more if the password is another by then, or hashed anew: of two changes at once, the second proves nothing.
    while true {
      guard let account = try await User.credentials(of: me, in: database) else { throw AppError.sessionEnded }
      guard let proven = account.passwordHash else { throw AppError.noPassword }
      try check(new, username: account.username, email: account.email)
      try await Proof.password(current).check(for: me, in: dependencies, logger: context.logger)
      // Outside the transaction: it takes a while, and a connection must not wait for it.
      let hash = try await passwords.hash(new)
      let isChanged = try await database.change {
        try await User.changePassword(of: me, from: proven, to: hash, keeping: session, in: $0)
      }
      if isChanged { return .done }
    }
  }

  @Sendable private func requestReset(_ request: Request, _ context: Context) async throws -> Response {
    let email = try await request.read { $0.required("email", .email) }
    let answerTime = ContinuousClock.now + Self.resetAnswerTime
    // Each request counts, whether there is such an account or not.
    let isOn = dependencies.isThrottling
    _ = try await Throttle.attempt([.address(context.address)], in: database, if: isOn) { () -> Bool? in
      try await mailReset(to: email)
      return nil
    }
    try? await Task.sleep(until: answerTime, clock: .continuous)
    var response = Response.json(Accepted(), status: .accepted)
    response.headers[.cacheControl] = "no-store"
    return response
  }

  /// Mails a token, if there is an account, unless many were mailed to this address just now: whoever asks does not
  /// learn of that.
  private func mailReset(to email: String) async throws {
    do {
      _ = try await Throttle.attempt([.mail(email)], in: database, if: dependencies.isThrottling) { () -> Bool? in
        try await database.change { change in
          let token = try await MailToken.issueReset(to: email, keys: keys, in: change)
          change.mail(.token(token))
        }
        return true
      }
    } catch let error as AppError where error.slug == AppError.tooManyAttempts.slug {}
  }

  @Sendable private func confirmReset(_ request: Request, _ context: Context) async throws -> Response {
    let (token, new) = try await request.read { fields in
      (fields.required("token", .text(1...500)), fields.required("newPassword", .password))
    }
    // A password that is refused must not cost the token.
    let names = try await MailToken.names(behind: token, for: .resetPassword, keys: keys, in: database)
    guard let names else { throw AppError.badMailToken }
    try check(new, username: names.username, email: names.email)
    let hash = try await passwords.hash(new)
    try await database.change { change in
      let redeemed = try await MailToken.redeem(token, for: .resetPassword, keys: keys, in: change)
      guard let redeemed else { throw AppError.badMailToken }
      try await User.resetPassword(to: hash, by: redeemed, in: change)
    }
    return .done
  }

  @Sendable private func verifyEmail(_ request: Request, _ context: Context) async throws -> Response {
    let token = try await request.read { $0.required("token", .text(1...500)) }
    try await database.change { change in
      let redeemed = try await MailToken.redeem(token, for: .verifyEmail, keys: keys, in: change)
      guard let redeemed else { throw AppError.badMailToken }
      try await User.verifyEmail(by: redeemed, in: change)
    }
    return .done
  }

  private func check(_ new: String, username: String, email: String?) throws {
    if let objection = Passwords.checkChoice(new, username: username, email: email) {
      throw AppError.invalid("newPassword", objection)
    }
  }
}

/// What was asked for will happen, or not; this does not say.
private struct Accepted: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object { _ in }
  }
}

extension Response {
  /// There is nothing more to say, and nothing to keep.
  fileprivate static var done: Response {
    Response(status: .noContent, headers: [.cacheControl: "no-store"])
  }
}
