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
