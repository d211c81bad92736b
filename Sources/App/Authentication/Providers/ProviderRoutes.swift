import Foundation
import HTTPServer
import Logging
import Postgres

/// Routes to sign in with Apple or Google, and to link them to an account.
struct ProviderRoutes {
  let dependencies: Dependencies

  private var database: Database { dependencies.database }

  @Sendable func signIn(
    _ name: IdentityProvider.Name, _ request: Request, _ context: Context
  ) async throws -> Response {
    let provider = try dependencies.identityProviders.named(name)
    let body = try await request.read(Body.ProviderSignIn.init)
    // Apple's library has empty names for a user who has signed in before.
    let displayName = body.displayName.flatMap { $0.isEmpty ? nil : $0 }
    let token = IdentityToken(text: body.idToken, nonce: body.nonce)
    let identity = try await provider.verify(token, logger: context.logger)
    try await dependencies.throttle.count(.sessions(of: identity))
    let turns = try await Identity.accounts(of: identity, in: database).map(KeyedQueue.Key.user)
    let (user, tokens, isNew) = try await dependencies.change(at: turns) { change in
      let (id, isNew) = try await Identity.signIn(identity, displayName: displayName, in: change)
      let tokens = try await Session.start(
        for: id, device: body.device, from: dependencies.addressKeys.network(of: context.address),
        keys: dependencies.refreshTokenKeys, in: change)
      return (try await User.find(id, in: change), tokens, isNew)
    }
    await keepGrant(body.authorizationCode, identity, logger: context.logger)
    return try await dependencies.tokensResponse(user, tokens, isNew: isNew, context)
  }

  /// Called by Apple's server.
  @Sendable func notify(_ request: Request, _ context: Context) async throws -> Response {
    let provider = try dependencies.identityProviders.named(.apple)
    let payload = try await request.read(Body.AppleNotification.init).payload
    let notification = try await provider.verify(notification: payload, logger: context.logger)
    let turns = try await Identity.owners(of: notification.subject, at: .apple, in: database).map(KeyedQueue.Key.user)
    try await dependencies.change(at: turns) { try await Identity.apply(notification, in: $0) }
    return .json(Received())
  }

  /// An empty response. It does not say whether there is such a user.
  private struct Received: JSONWritable {
    func write(to json: inout JSONWriter) { json.object { _ in } }
  }

  @Sendable func link(
    _ name: IdentityProvider.Name, _ request: Request, _ context: Context
  ) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let provider = try dependencies.identityProviders.named(name)
    // Without this, an unlocked phone is enough to give someone else lasting access.
    let (body, reauthentication) = try await request.read { fields in
      (Body.ProviderToken(&fields), self.reauthentication(&fields))
    }
    let token = IdentityToken(text: body.idToken, nonce: body.nonce)
    let identity = try await provider.verify(token, logger: context.logger)
    let confirmation = try await reauthentication.check(context, in: dependencies)
    try await dependencies.change(at: [.user(me)]) { change in
      try await confirmation.spend(in: change)
      try await Identity.link(identity, to: me, by: session, in: change)
    }
    await keepGrant(body.authorizationCode, identity, logger: context.logger)
    return .noContent
  }

  @Sendable func unlink(
    _ name: IdentityProvider.Name, _ request: Request, _ context: Context
  ) async throws -> Response {
    let (me, session) = (try context.user, try context.session)
    let reauthentication = try await request.read(self.reauthentication)
    let confirmation = try await reauthentication.check(context, in: dependencies)
    try await dependencies.change(at: [.user(me)]) { change in
      try await confirmation.spend(in: change)
      try await Identity.unlink(name, from: me, by: session, in: change)
    }
    return .noContent
  }

  private func reauthentication(_ fields: inout Fields) -> Reauthentication {
    fields.reauthentication(
      Body.Unlinking.currentPassword, idToken: Body.Unlinking.currentIdToken, nonce: Body.Unlinking.currentNonce,
      code: Body.Unlinking.code)
  }

  /// Exchanges Apple's code for a grant that can be revoked later. Best effort: the user is also signed in without it,
  /// and their next sign-in brings another code.
  private func keepGrant(_ code: String?, _ identity: Identity, logger: Logger) async {
    guard let appleGrants = dependencies.appleGrants, let code, identity.provider == .apple else { return }
    // The response waits for this, for three seconds at most. A background task would need a limit on the number of
    // such tasks and a place to end at shutdown, and would still be lost with the process.
    do {
      let grant = try await appleGrants.exchange(code, of: identity)
      try await database.change { try await Identity.keep(grant, of: identity, in: $0) }
    } catch {
      logger.warning("cannot get a grant from Apple", metadata: ["error": "\(error)"])
    }
  }
}

extension Fields.Rule where Value == String {
  /// Also takes blank text, which becomes empty.
  var orBlank: Self {
    Self(placeholder: placeholder) { json throws(Fields.Broken) in
      if case .string(let text) = json, text.trimmedScalars.isEmpty { return "" }
      return try read(json)
    }
  }
}
