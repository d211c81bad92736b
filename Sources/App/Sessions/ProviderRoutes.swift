import Foundation
import Hummingbird
import Logging
import Postgres

/// Signing in with Apple or Google, and linking them to an account.
struct ProviderRoutes {
  private let database: Database
  private let providers: IdentityProviders
  private let appleGrants: AppleGrants?
  private let keys: SigningKeys
  private let answer: SignedInAnswer

  init(_ dependencies: Dependencies) {
    database = dependencies.database
    providers = dependencies.identityProviders
    appleGrants = dependencies.appleGrants
    keys = dependencies.refreshTokenKeys
    answer = SignedInAnswer(dependencies)
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
        Shown(&fields), fields.optional("displayName", .text(1...100)), fields.optional("device", .text(1...100))
      )
    }
    let proof = try await provider.verify(shown.idToken, nonce: shown.nonce, logger: context.logger)
    let (user, token, isNew) = try await database.change { change in
      let (id, isNew) = try await Identity.signIn(proof, displayName: displayName, in: change)
      let token = try await Session.start(for: id, device: device, keys: keys, in: change)
      return (try await User.find(id, in: change), token, isNew)
    }
    await keepGrant(shown.authorizationCode, proof, logger: context.logger)
    return try await answer(user, token, isNew: isNew)
  }

  @Sendable private func link(
    _ name: IdentityProvider.Name, _ request: Request, _ context: Context
  ) async throws -> Response {
    let me = try context.user
    let provider = try providers.named(name)
    let shown = try await request.read { Shown(&$0) }
    let proof = try await provider.verify(shown.idToken, nonce: shown.nonce, logger: context.logger)
    try await database.change { try await Identity.link(proof, to: me, in: $0) }
    await keepGrant(shown.authorizationCode, proof, logger: context.logger)
    return Response(status: .noContent)
  }

  /// Exchanges Apple's code for what will revoke the grant. Best effort: whoever has signed in is signed in without it,
  /// and their next sign-in brings another code.
  private func keepGrant(_ code: String?, _ proof: IdentityProvider.Proof, logger: Logger) async {
    guard let appleGrants, let code, proof.provider == .apple else { return }
    // The answer waits for it, for three seconds at most. A task that nobody waits for would need a bound for how many there
    // are and a place to end in at a shutdown, and would be lost with the process all the same.
    do {
      let grant = try await appleGrants.exchange(code, of: proof)
      try await database.change { try await Identity.keep(grant, of: proof, in: $0) }
    } catch {
      logger.warning("Apple's grant could not be had", metadata: ["error": "\(error)"])
    }
  }
}

/// What an app shows of a provider's sign-in.
private struct Shown {
  let idToken: String
  let nonce: String?
  let authorizationCode: String?

  init(_ fields: inout Fields) {
    idToken = fields.required("idToken", .opaque(1...16_384))
    nonce = fields.optional("nonce", .opaque(1...1024))
    authorizationCode = fields.optional("authorizationCode", .opaque(1...1024))
  }
}

extension Fields.Rule where Value == String {
  /// Text whose every byte counts: neither trimmed nor normalized.
  static func opaque(_ length: ClosedRange<Int>) -> Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken("must be a string, not \(json.kind)") }
      guard length.contains(text.utf8.count) else {
        throw Fields.Broken("must have \(length.lowerBound) to \(length.upperBound) bytes")
      }
      return text
    }
  }
}
