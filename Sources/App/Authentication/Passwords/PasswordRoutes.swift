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
  /// this time instead, or a multiple of it.
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
      guard let account = try await Credentials.find(me, in: database) else { throw AppError.sessionEnded }
      try account.checkChoice(of: new)
      guard let proven = try await Reauthentication.password(current).check(context, in: dependencies) else {
        throw AppError.noPassword
      }
      // Outside the transaction: it takes a while, and a connection must not wait for it.
      let hash = try await passwords.hash(new)
      let isChanged = try await dependencies.change(at: .user(me)) {
        try await User.changePassword(of: me, from: proven, to: hash, keeping: session, in: $0)
      }
      if isChanged { return .done }
    }
  }

  @Sendable private func requestReset(_ request: Request, _ context: Context) async throws -> Response {
    let email = try await request.read { $0.required("email", .email) }
    let start = ContinuousClock.now
    try await dependencies.throttle.count(.resets(from: context.address))
    try await mailReset(to: email)
    let steps = ((ContinuousClock.now - start) / Self.resetAnswerTime).rounded(.up)
    try? await Task.sleep(until: start + Self.resetAnswerTime * steps, clock: .continuous)
    var response = Response.json(Accepted(), status: .accepted)
    response.headers[.cacheControl] = "no-store"
    return response
  }

  /// Mails a token, if there is an account, unless many were mailed to this address just now: whoever asks does not
  /// learn of that.
  private func mailReset(to email: String) async throws {
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
    // A password that is refused must not cost the token.
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
    return .done
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
    return .done
  }
}

/// What was asked for will happen, or not; this does not say.
private struct Accepted: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object { _ in }
  }
}
