import Foundation

/// Accounts, logins and sessions.
///
/// Calls that log in save the tokens before they return; from then on the client acts as that user.
public struct AuthAPI: Sendable {
  let caller: APICaller

  /// Creates an account and logs in.
  ///
  /// - Parameters:
  ///   - password: without it, the user logs in with mailed codes.
  ///   - displayName: the username by default.
  ///   - device: the user's name for this device.
  /// - Throws: ``MusterError``: `username-taken`, `email-taken`, `invalid-fields`, `too-many-attempts`
  public func register(
    username: String, email: String, password: String? = nil, displayName: String? = nil, device: String? = nil,
    key: IdempotencyKey = .random()
  ) async throws -> User {
    let body = Registration(
      username: username, email: email, password: password, displayName: displayName, device: device)
    var call = try APICall.write(.register, body, key: key)
    // The service does not take the key of a registration without a password again.
    if password == nil { call.repeats = .ifNothingHappened }
    return try await caller.logIn(call).user
  }

  /// Logs in with a password.
  ///
  /// - Parameter login: the username or the e-mail address.
  /// - Throws: ``MusterError``: `wrong-credentials`, `too-many-attempts`, `busy`
  public func logIn(as login: String, password: String, device: String? = nil) async throws -> User {
    var call = try APICall.write(.login, Login(login: login, password: password, device: device), key: nil)
    call.repeats = .always
    return try await caller.logIn(call).user
  }

  /// Has a code and a token mailed to an address, if an account has it. Both are valid for 10 minutes.
  public func requestCode(email: String) async throws {
    try await caller.send(.write(.requestCode, CodeRequest(email: email), key: nil))
  }

  /// Has a code mailed to the caller's own verified address, such as for a reauthentication. Requests of others do not
  /// use up the limit of these. If the address's reader had opted out of mails, they may come again.
  public func requestOwnCode(email: String) async throws {
    var call = try APICall.write(.requestCode, CodeRequest(email: email), key: nil)
    call.isAuthenticated = true
    try await caller.send(call)
  }

  /// Logs in with the six digits of a mail.
  ///
  /// - Throws: ``MusterError``: `invalid-code`, `too-many-attempts`
  public func logIn(email: String, code: String, device: String? = nil) async throws -> User {
    let body = CodeLogin(email: email, code: code, device: device)
    return try await caller.logIn(.write(.confirmCode, body, key: nil)).user
  }

  /// Logs in with the token of a mail, from a link that opened the app.
  ///
  /// - Throws: ``MusterError``: `invalid-code`
  public func logIn(emailToken: String, device: String? = nil) async throws -> User {
    let body = TokenLogin(token: emailToken, device: device)
    return try await caller.logIn(.write(.confirmCode, body, key: nil)).user
  }

  /// Logs out: ends the session if the service can be reached, and forgets the tokens in any case.
  ///
  /// - Returns: whether the service has ended the session. If not, the session stays in the user's list, without a
  ///   device that has its tokens.
  /// - Throws: ``MusterError/tokensUnavailable(_:)`` if the tokens could not be removed from their store
  @discardableResult
  public func logOut() async throws -> Bool {
    try await caller.logOut()
  }

  /// The caller's sessions, newest first.
  public func sessions(limit: Int? = nil, cursor: String? = nil) async throws -> Page<Session> {
    try await caller.get(.page(.listSessions, limit: limit, cursor: cursor))
  }

  /// Ends a session, the caller's own included.
  ///
  /// - Throws: ``MusterError``: `session-not-found`
  public func endSession(_ id: Session.ID) async throws {
    try await caller.send(.write(.endSession(id), key: nil))
  }

  /// Changes the password, or sets the first one. Ends the user's other sessions.
  ///
  /// - Parameter reauthentication: the current password or a mailed code.
  /// - Throws: ``MusterError``: `wrong-password`, `wrong-code`, `no-password`, `email-unverified`, `invalid-fields`
  public func changePassword(to newPassword: String, reauthentication: Reauthentication?) async throws {
    let body = PasswordChange(
      currentPassword: reauthentication?.password, code: reauthentication?.code, newPassword: newPassword)
    try await caller.send(.write(.changePassword, body, key: nil))
  }

  /// Has a token mailed that resets the password, if an account has the address.
  public func requestPasswordReset(email: String) async throws {
    try await caller.send(.write(.requestPasswordReset, PasswordResetRequest(email: email), key: nil))
  }

  /// Sets a new password with a mailed token. Ends all of the user's sessions.
  ///
  /// - Throws: ``MusterError``: `invalid-fields`
  public func confirmPasswordReset(token: String, newPassword: String) async throws {
    let body = PasswordReset(token: token, newPassword: newPassword)
    try await caller.send(.write(.confirmPasswordReset, body, key: nil))
  }

  /// Verifies an e-mail address with a mailed token. If a user is logged in, everything in the account stays. Otherwise
  /// this claims the account, and ends its password, sessions and more; only the token of a registration can do so.
  ///
  /// - Throws: ``MusterError``: `invalid-fields`, `email-taken`, `open-where-logged-in`, `another-account`
  public func verifyEmail(token: String) async throws {
    var call = try APICall.write(.verifyEmail, MailedToken(token: token), key: nil)
    call.isAuthenticated = try caller.credentials.stored() != nil
    try await caller.send(call)
  }

  /// Gives the account its former address back, with the token that was mailed there. Ends its password, sessions and
  /// more: log in with a mailed code.
  ///
  /// - Throws: ``MusterError``: `invalid-fields`, `email-taken`
  public func undoEmailChange(token: String) async throws {
    try await caller.send(.write(.undoEmailChange, MailedToken(token: token), key: nil))
  }
}

extension AuthAPI {
  /// Logs in with Apple. The first login creates an account.
  ///
  /// - Parameters:
  ///   - idToken: the identity token, as Apple gave it to the app.
  ///   - nonce: what the app chose for this login.
  ///   - displayName: the user's name. Apple tells it to the app once.
  ///   - authorizationCode: Apple's code, to revoke the grant when the account is deleted.
  /// - Returns: `isNew` says whether this login created the account.
  /// - Throws: ``MusterError``: `invalid-identity-token`, `email-belongs-to-account`, `provider-not-configured`,
  ///   `provider-unavailable`
  public func signInWithApple(
    idToken: String, nonce: String? = nil, displayName: String? = nil, authorizationCode: String? = nil,
    device: String? = nil
  ) async throws -> (user: User, isNew: Bool) {
    let body = ProviderSignIn(
      idToken: idToken, nonce: nonce, authorizationCode: authorizationCode, displayName: displayName, device: device)
    return try await signIn(.signInWithApple, body)
  }

  /// Logs in with Google. The first login creates an account. See
  /// ``signInWithApple(idToken:nonce:displayName:authorizationCode:device:)``.
  public func signInWithGoogle(
    idToken: String, nonce: String? = nil, displayName: String? = nil, device: String? = nil
  ) async throws -> (user: User, isNew: Bool) {
    let body = ProviderSignIn(idToken: idToken, nonce: nonce, displayName: displayName, device: device)
    return try await signIn(.signInWithGoogle, body)
  }

  /// Links an Apple identity to the caller's account.
  ///
  /// - Throws: ``MusterError``: `identity-taken`, `already-linked`, `wrong-password`, `wrong-code`,
  ///   `identity-not-proven`
  public func linkApple(
    idToken: String, nonce: String? = nil, authorizationCode: String? = nil, reauthentication: Reauthentication?
  ) async throws {
    try await link(.linkApple, idToken, nonce, authorizationCode, reauthentication)
  }

  /// Links a Google identity to the caller's account. Throws the same as for Apple.
  public func linkGoogle(idToken: String, nonce: String? = nil, reauthentication: Reauthentication?) async throws {
    try await link(.linkGoogle, idToken, nonce, nil, reauthentication)
  }

  /// Unlinks the Apple identity from the caller's account.
  ///
  /// - Throws: ``MusterError``: `last-way-in`, `wrong-password`, `wrong-code`, `identity-not-proven`
  public func unlinkApple(reauthentication: Reauthentication?) async throws {
    try await unlink(.unlinkApple, reauthentication)
  }

  /// Unlinks the Google identity from the caller's account. Throws the same as for Apple.
  public func unlinkGoogle(reauthentication: Reauthentication?) async throws {
    try await unlink(.unlinkGoogle, reauthentication)
  }

  private func signIn(_ route: Route, _ body: ProviderSignIn) async throws -> (user: User, isNew: Bool) {
    let tokens = try await caller.logIn(.write(route, body, key: nil))
    return (tokens.user, tokens.isNew ?? false)
  }

  private func link(
    _ route: Route, _ idToken: String, _ nonce: String?, _ authorizationCode: String?,
    _ reauthentication: Reauthentication?
  ) async throws {
    let body = ProviderLink(
      idToken: idToken, nonce: nonce, authorizationCode: authorizationCode,
      currentPassword: reauthentication?.password, currentIdToken: reauthentication?.idToken,
      currentNonce: reauthentication?.nonce, code: reauthentication?.code)
    try await caller.send(.write(route, body, key: nil))
  }

  private func unlink(_ route: Route, _ reauthentication: Reauthentication?) async throws {
    let body = Unlinking(
      currentPassword: reauthentication?.password, currentIdToken: reauthentication?.idToken,
      currentNonce: reauthentication?.nonce, code: reauthentication?.code)
    try await caller.send(.write(route, body, key: nil))
  }
}
