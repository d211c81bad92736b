/// What an app shows of a sign-in with a provider, unverified.
struct IdentityToken: Sendable {
  let text: String
  /// What the app had made up for this sign-in, if it did.
  let nonce: String?
}
