import Foundation
import HTTPServer
import Postgres

/// Routes to register, log in and refresh, which are open to everyone, and to manage sessions.
struct SessionRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }
  private var passwords: Passwords { dependencies.passwords }
  private var keys: SigningKeys { dependencies.refreshTokenKeys }

  @Sendable func register(_ request: Request, _ context: Context) async throws -> Response {
    var request = request
    let body = try await request.bytes(upTo: Request.maximumBody, else: .bodyTooLarge)
    request.body = RequestBody(body)
    let new = try await request.read { fields in
      let new = Body.Registration(&fields)
      let owner = Passwords.Owner(username: new.username, displayName: new.displayName, email: new.email.text)
      if let password = new.password, !fields.hasError(in: "password"),
        let objection = Passwords.objection(to: password, of: owner)
      {
        fields.note("password", .weakPassword, objection)
      }
      return new
    }
    let (username, email, password, device) = (new.username, new.email, new.password, new.device)
    let idempotent = try request.idempotencyKey().map {
      IdempotentRequest(
        $0, scope: ["register", username.lowercasedASCII], content: Data(body.readableBytesView), keys: keys)
    }
    if password != nil { try passwords.admit() }
    if let first = try await idempotent?.stored(in: database) {
      return try await logInAgain(first, password, device, context)
    }
    try await dependencies.throttle.count(.registrations(from: context.address), .registrations(with: email))
    // Outside the transaction: hashing takes a while, and must not occupy a connection.
    let hash: String? = if let password { try await passwords.hash(password) } else { nil }
    let registration = User.Registration(
      username: username, email: email, passwordHash: hash, displayName: new.displayName ?? username)
    // Anyone can type any address. The account works without the mail, and can ask for one later.
    let attempt = MailGate.Attempt(
      id: idempotent?.attempt ?? UUID(), kind: .verifyEmail, mailbox: Mailbox(email), origin: context.address,
      budget: .stranger)
    let registered = try await dependencies.mailGate.passing(attempt, in: database) { decision in
      try await database.change { change -> (User?, Session.Tokens)? in
        if try await idempotent?.begin(in: change) != nil { return nil }
        let id = try await User.register(registration, in: change)
        try idempotent?.store(nil, of: id, in: change)
        let mailed = try MailToken.issue(.verifyEmail, email: email, for: id, keys: keys, in: change)
        if let pass = decision.pass { change.mail(.token(mailed, pass)) }
        let tokens = try await Session.start(
          for: id, device: device, from: dependencies.addressKeys.network(of: context.address), keys: keys, in: change)
        return (try await User.find(id, in: change), tokens)
      }
    }
    if let (user, tokens) = registered {
      return try await dependencies.tokensResponse(user, tokens, status: .created, context)
    }
    guard let first = try await idempotent?.stored(in: database) else { throw AppError.busy }
    return try await logInAgain(first, password, device, context)
  }

  /// The response to a repeated registration: the account that the first one created, with a new session. Without a
  /// password, it is refused like a registration without an `Idempotency-Key`: the key and the body are not secrets,
  /// and anyone who has seen them could log in.
  private func logInAgain(
    _ first: IdempotentRequest.Stored, _ password: String?, _ device: String?, _ context: Context
  ) async throws -> Response {
    guard let password else { throw AppError.usernameTaken }
    // The user may have another name by now.
    let username = try await Credentials.find(first.user, in: database)?.username
    guard let username else { throw AppError.wrongCredentials }
    return try await logIn(Login(username), password, device: device, context, status: .created)
  }

  @Sendable func login(_ request: Request, _ context: Context) async throws -> Response {
    let body = try await request.read(Body.Login.init)
    try passwords.admit()
    return try await logIn(body.login, body.password, device: body.device, context)
  }

  private func logIn(
    _ login: Login, _ password: String, device: String?, _ context: Context, status: HTTPResponse.Status = .ok
  ) async throws -> Response {
    // Tries again if the password was changed or rehashed before the session starts.
    while true {
      let found = try await dependencies.throttle.attempt(
        .login(login), .logins(from: context.address), .sessions(by: login)
      ) { () -> (id: User.ID, hash: String)? in
        let account = try await Credentials.find(login: login, in: database)
        context.concerns(account?.user)
        guard try await passwords.verify(password, against: account?.passwordHash) else { return nil }
        guard let account, let hash = account.passwordHash else { return nil }
        return (account.user, hash)
      }
      guard let (id, hash) = found else { throw AppError.wrongCredentials }
      // If there is no capacity to hash it now, a later login upgrades it.
      let upgraded: String? = if passwords.needsUpgrade(hash) { try? await passwords.hash(password) } else { nil }
      let started = try await dependencies.change(at: [.user(id)]) { change -> (User?, Session.Tokens)? in
        guard try await User.keep(passwordHash: hash, upgradedTo: upgraded, of: id, in: change) else { return nil }
        let tokens = try await Session.start(
          for: id, device: device, from: dependencies.addressKeys.network(of: context.address), keys: keys, in: change)
        return (try await User.find(id, in: change), tokens)
      }
      if let (user, tokens) = started {
        return try await dependencies.tokensResponse(user, tokens, status: status, context)
      }
    }
  }

  @Sendable func refresh(_ request: Request, _ context: Context) async throws -> Response {
    let text = try await request.read(Body.Refresh.init).refreshToken
    guard let shown = RefreshToken(text, keys: keys) else { throw AppError.invalidRefreshToken }
    context.concerns(nil, shown.session)
    try dependencies.rateLimits.count(.refreshes, of: .session(shown.session), in: context)
    // A theft is recorded in the database before the caller is refused.
    let rotated = try await dependencies.change(at: [.session(shown.session)]) { change -> (User?, Session.Tokens)? in
      let network = dependencies.addressKeys.network(of: context.address)
      guard case .rotated(let next) = try await Session.rotate(shown, from: network, keys: keys, in: change) else {
        return nil
      }
      return (try await User.find(next.user, in: change), next)
    }
    guard let (user, next) = rotated else { throw AppError.sessionEnded }
    return try await dependencies.tokensResponse(user, next, context)
  }

  @Sendable func logout(_ request: Request, _ context: Context) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    _ = try await dependencies.change(at: [.session(session)]) {
      try await Session.end(session, of: me, by: session, in: $0)
    }
    return .noContent
  }

  @Sendable func list(_ request: Request, _ context: Context) async throws -> Response {
    let page = try request.query { $0.page() }
    let current = try context.session
    let list = try await Session.list(of: context.user, page: page, in: database)
    return .list(list.map { SessionJSON(session: $0, isCurrent: $0.id == current) })
  }

  @Sendable func end(_ request: Request, _ context: Context) async throws -> Response {
    let me = try context.user
    let id: Session.ID = try context.id("id", else: .sessionNotFound)
    let caller = try context.session
    let isEnded = try await dependencies.change(at: [.session(id)]) {
      try await Session.end(id, of: me, by: caller, in: $0)
    }
    guard isEnded else { throw AppError.sessionNotFound }
    return .noContent
  }
}

private struct SessionJSON: JSONWritable {
  let session: Session
  let isCurrent: Bool

  func write(to json: inout JSONWriter) {
    json.session(
      id: session.id, device: session.device, createdAt: session.createdAt, lastUsedAt: session.lastUsedAt,
      current: isCurrent)
  }
}

extension Fields.Rule where Value == String {
  /// ASCII, so that no two names look alike.
  var username: Self {
    let rule = "must be letters (a to z), digits, dots, underscores or hyphens"
    let form = and(rule) { $0.wholeMatch(of: /[A-Za-z0-9._-]+/) != nil }
    return Self(placeholder: form.placeholder) { json throws(Fields.Broken) in
      // Before it is normalized, which turns some other letters into ASCII letters.
      if case .string(let raw) = json, !raw.isASCII { throw Fields.Broken(.badFormat, rule) }
      return try form.read(json)
    }
  }
}

extension AppError {
  static let wrongCredentials = AppError(
    .unauthorized, "wrong-credentials", "There is no account with this login and password.")
  fileprivate static let invalidRefreshToken = AppError(
    .unauthorized, "session-ended", "This refresh token is invalid. Log in again.")
}

extension Dependencies {
  /// The response to a login or a refresh: the account and both tokens.
  ///
  /// - Parameters:
  ///   - user: read in the transaction of the change. An error after the commit would say that nothing was changed.
  ///   - isNew: whether this request created the account; nil if the client knows.
  func tokensResponse(
    _ user: User?, _ tokens: Session.Tokens, status: HTTPResponse.Status = .ok, isNew: Bool? = nil,
    _ context: Context
  ) async throws -> Response {
    guard let user else { throw AppError.sessionEnded }
    context.concerns(user.id, tokens.refresh.session)
    let accessToken = try await accessTokens.sign(user: user.id, session: tokens.refresh.session, epoch: tokens.epoch)
    let content = LoginResponse(
      user: user, accessToken: accessToken,
      refreshToken: try tokens.refresh.signed(with: self.refreshTokenKeys),
      expiresIn: accessTokens.lifetime, isNew: isNew)
    var response = Response.json(content, status: status)
    response.headers[.cacheControl] = "no-store"
    return response
  }
}

private struct LoginResponse: JSONWritable {
  let user: User
  let accessToken: String
  let refreshToken: String
  let expiresIn: Int
  let isNew: Bool?

  func write(to json: inout JSONWriter) {
    json.tokens(user: user, accessToken: accessToken, refreshToken: refreshToken, expiresIn: expiresIn, isNew: isNew)
  }
}
