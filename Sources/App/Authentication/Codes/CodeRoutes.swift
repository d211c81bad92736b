import Foundation
import HTTPServer
import Postgres

/// Routes to sign in with a mailed code, which are open to everyone.
struct CodeRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var keys: SigningKeys { dependencies.refreshTokenKeys }

  @Sendable func mail(_ request: Request, _ context: Context) async throws -> Response {
    let email = try await request.read(Body.CodeRequest.init).email
    try await dependencies.throttle.count(.codeRequests(from: context.address))
    let caller = await dependencies.sessionUser(of: request)
    return try await .afterMailing {
      let network = dependencies.addressKeys.network(of: context.address)
      let recipient = try await MailToken.recipient(at: email, from: network, in: database)
      // An unknown address costs the same statements.
      let user = recipient?.user ?? .new()
      let budget = recipient?.budget(for: caller) ?? .stranger
      // The owner of the address asks for a mail, so the mailbox gets mails again.
      if budget == .session { try await dependencies.mailGate.optOuts.remove(Mailbox(email), in: database) }
      let attempt = MailGate.Attempt(
        id: UUID(), kind: .signInCode, mailbox: Mailbox(email), origin: context.address,
        budget: budget, counts: recipient != nil)
      let pass = try await dependencies.mailGate.decide(on: attempt, in: database).pass
      try await dependencies.change(at: [.user(user)]) {
        try SignInCode.mail(to: user, at: email, pass, keys: keys, in: $0)
      }
    }
  }

  private enum Outcome: Sendable {
    case started(User?, Session.Tokens)
    case invalid
    /// The code proves nothing about the account, which has lost the address.
    case released
  }

  /// The code or token that the user presents.
  private enum Presented {
    case token(String)
    case code(String, email: EmailAddress)

    init(_ fields: inout Fields) {
      if let token = fields.optional(Body.CodeConfirmation.token) {
        self = .token(token)
      } else {
        let email = fields.required(Body.CodeConfirmation.email)
        self = .code(fields.required(Body.CodeConfirmation.code), email: email)
      }
    }
  }

  @Sendable func confirm(_ request: Request, _ context: Context) async throws -> Response {
    let (presented, device) = try await request.read { fields in
      (Presented(&fields), fields.optional(Body.CodeConfirmation.device))
    }
    guard let (user, token) = try await find(presented, context) else { throw AppError.invalidCode }
    // An address that an account loses is recorded in the database before the caller is refused.
    let outcome = try await dependencies.change(at: [.user(user)]) { change -> Outcome in
      guard let redeemed = try await MailToken.redeem(token, of: user, for: .signInCode, in: change) else {
        return .invalid
      }
      guard try await User.prove(by: redeemed, in: change) else { return .released }
      let tokens = try await Session.start(
        for: user, device: device, from: dependencies.addressKeys.network(of: context.address), keys: keys, in: change)
      return .started(try await User.find(user, in: change), tokens)
    }
    switch outcome {
    case .started(let account, let tokens): return try await dependencies.tokensResponse(account, tokens, context)
    case .invalid: throw AppError.invalidCode
    case .released: throw AppError.emailReleased
    }
  }

  private func find(
    _ presented: Presented, _ context: Context
  ) async throws -> (user: User.ID, token: MailToken.ID)? {
    switch presented {
    case .token(let text):
      // Never throttled: it cannot be guessed, and it lets the owner in while others use up the wrong codes.
      return try await MailToken.find(text, for: .signInCode, keys: keys, in: database)
    case .code(let code, let email):
      return try await EvenTime.run {
        try await dependencies.throttle.attempt(.codes(from: context.address)) {
          () -> (user: User.ID, token: MailToken.ID)? in
          let account = try await SignInCode.account(at: email, in: database)
          context.concerns(account)
          // An unknown address costs the same statements.
          let user = account ?? .new()
          let token = try await dependencies.change(at: [.user(user)]) {
            try await SignInCode.check(code, of: user, keys: keys, in: $0)
          }
          return token.map { (user: user, token: $0) }
        }
      }
    }
  }
}

extension AppError {
  /// The same whatever is wrong, so that it does not reveal whether there is an account.
  static let invalidCode = AppError(
    .unauthorized, "invalid-code",
    "This code or token is wrong, expired or already used, or too many wrong codes were tried. Request another one.")
}

extension Response {
  /// The response to a request for a mail by anyone who knows an address. It is the same, and takes the same time,
  /// whether an account has the address or not.
  static func afterMailing(_ mail: () async throws -> Void) async throws -> Response {
    try await EvenTime.run(mail)
    var response = Response.json(Accepted(), status: .accepted)
    response.headers[.cacheControl] = "no-store"
    return response
  }
}

/// An empty response. It does not say whether a mail will be sent.
private struct Accepted: JSONWritable {
  func write(to json: inout JSONWriter) {
    json.object { _ in }
  }
}

/// Hides how long the work of a request takes. A few extra milliseconds would reveal whether an account exists.
private enum EvenTime {
  private static let step = Duration.milliseconds(100)

  /// Runs `body`, and returns or throws after a multiple of a tenth of a second, usually the first.
  static func run<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
    let start = ContinuousClock.now
    let result: Result<Value, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    let steps = ((ContinuousClock.now - start) / step).rounded(.up)
    try? await Task.sleep(until: start + step * steps, clock: .continuous)
    return try result.get()
  }
}
