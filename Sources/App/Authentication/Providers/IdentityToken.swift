/// The unverified token that an app sends after a sign-in with a provider.
struct IdentityToken: Sendable {
  let text: String
  /// The nonce that the app created for this sign-in, if any.
  let nonce: String?
}
