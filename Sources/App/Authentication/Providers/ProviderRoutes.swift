import Foundation
import Hummingbird
import Logging
import Postgres

/// Signing in with Apple or Google, and linking them to an account.
struct ProviderRoutes {
  private let dependencies: Dependencies
  private let database: Database
  private let providers: IdentityProviders
  private let appleGrants: AppleGrants?
  private let keys: SigningKeys
  private let answer: SignedInResponse

  init(_ dependencies: Dependencies) {
    self.dependencies = dependencies
    database = dependencies.database
    providers = dependencies.identityProviders
    appleGrants = dependencies.appleGrants
    keys = dependencies.refreshTokenKeys
    answer = SignedInResponse(dependencies)
  }

  /// Open to everybody.
  func add(to routes: Routes) {
    routes.post("auth/apple") { try await signIn(.apple, $0, $1) }
    routes.post("auth/google") { try await signIn(.google, $0, $1) }
  }

  /// For signed-in users.
  func addLinks(to routes: Routes) {
    routes.post("auth/apple/link") { try await link(.apple, $0, $1) }
    routes.post("auth/google/link") { try await link(.google, $0, $1) }
  }

  @Sendable private func signIn(
    _ name: IdentityProvider.Name, _ request: Request, _ context: Context
  ) async throws -> Response {
    let provider = try providers.named(name)
    let (shown, displayName, device) = try await request.read { fields in
      (
        Shown(&fields), fields.optional("displayName", .line(1...100)), fields.optional("device", .line(1...100))
      )
    }
    let identity = try await provider.verify(shown.token, logger: context.logger)
    try await dependencies.throttle.count(.sessions(of: identity))
    let (user, pass, isNew) = try await database.change { change in
      let (id, isNew) = try await Identity.signIn(identity, displayName: displayName, in: change)
      let pass = try await Session.start(for: id, device: device, keys: keys, in: change)
      return (try await User.find(id, in: change), pass, isNew)
    }
    await keepGrant(shown.authorizationCode, identity, logger: context.logger)
    return try await answer(user, pass, isNew: isNew)
  }

  @Sendable private func link(
    _ name: IdentityProvider.Name, _ request: Request, _ context: Context
  ) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let provider = try providers.named(name)
    // Or an unlocked phone could be made to let somebody in for good.
    let (shown, proof) = try await request.read { fields in
      (
        Shown(&fields),
        fields.proof(password: "currentPassword", idToken: "currentIdToken", nonce: "currentNonce")
      )
    }
    let identity = try await provider.verify(shown.token, logger: context.logger)
    try await proof.check(context, in: dependencies)
    try await dependencies.change(at: .user(me)) {
      try await Identity.link(identity, to: me, by: session, in: $0)
    }
    await keepGrant(shown.authorizationCode, identity, logger: context.logger)
    return .done
  }

  /// Exchanges Apple's code for what will revoke the grant. Best effort: whoever has signed in is signed in without it,
  /// and their next sign-in brings another code.
  private func keepGrant(_ code: String?, _ identity: Identity, logger: Logger) async {
    guard let appleGrants, let code, identity.provider == .apple else { return }
    // The answer waits for it, for three seconds at most. A task that nobody waits for would need a bound for how many there
    // are and a place to end in at a shutdown, and would be lost with the process all the same.
    do {
      let grant = try await appleGrants.exchange(code, of: identity)
      try await database.change { try await Identity.keep(grant, of: identity, in: $0) }
    } catch {
      logger.warning("Apple's grant could not be had", metadata: ["error": "\(error)"])
    }
  }
}

/// What an app shows of a provider's sign-in.
private struct Shown {
  let token: IdentityToken
  let authorizationCode: String?

  init(_ fields: inout Fields) {
    token = IdentityToken(
      text: fields.required("idToken", .identityToken), nonce: fields.optional("nonce", .nonce))
    authorizationCode = fields.optional("authorizationCode", .opaque(1...1024))
  }
}
