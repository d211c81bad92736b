import Foundation

private let names = Variable.table

/// The settings for providers of identities, push services and the apps that open share links.
extension MusterConfiguration {
  static func provider(_ provider: Variable.Provider, _ variables: Variables) throws
    -> IdentityProvider.Settings
  {
    let clientIDs = (try variables.text(provider.clientIDs) ?? "").split(separator: ",")
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    return IdentityProvider.Settings(clientIDs: clientIDs, keysURL: try variables.url(provider.keysURL))
  }

  static func appleGrants(_ variables: Variables) throws -> AppleGrants.Settings? {
    let (tokenURL, revokeURL) = (try variables.url(names.appleTokenURL), try variables.url(names.appleRevokeURL))
    guard let apple = try variables.appleKey(names.appleKey) else { return nil }
    return AppleGrants.Settings(
      teamID: apple.teamID, keyID: apple.keyID, key: apple.key, tokenURL: tokenURL, revokeURL: revokeURL)
  }

  static func apns(_ variables: Variables) throws -> APNsSender.Settings? {
    let (production, sandbox) = (try variables.baseURL(names.apnsURL), try variables.baseURL(names.apnsSandboxURL))
    guard let apple = try variables.appleKey(names.apnsKey) else { return nil }
    return APNsSender.Settings(
      teamID: apple.teamID, keyID: apple.keyID, key: apple.key, topic: try variables.text(names.apnsTopic),
      url: production,
      sandboxURL: sandbox)
  }

  static func appLinks(_ variables: Variables) throws -> AppLinks {
    let apple = try variables.parsed(names.appleAppIDs, "app ids like ABCDE12345.com.example.app") {
      AppLinks.appleAppIDs($0)
    }
    let package = try variables.parsed(names.androidPackage, "a package like com.example.app") {
      AppLinks.androidPackage($0)
    }
    let fingerprints = try variables.parsed(
      names.androidFingerprints, "SHA-256 fingerprints like AB:CD:... of 32 bytes"
    ) {
      AppLinks.fingerprints($0)
    }
    guard package == nil || fingerprints != nil else {
      let (missing, given) = (names.androidFingerprints.name, names.androidPackage.name)
      throw Problem("\(missing) is not set: \(given) requires it")
    }
    return AppLinks(
      appleAppIDs: apple ?? [], androidPackage: package, androidFingerprints: fingerprints ?? [])
  }

  static func fcm(_ variables: Variables) throws -> FCMSender.Settings? {
    let address = try variables.baseURL(names.fcmURL)
    let form = "the JSON of a service account key, or the path of a file with it"
    return try variables.parsed(names.fcmServiceAccount, form) { given in
      let text = given.hasPrefix("{") ? given : (try? String(contentsOfFile: given, encoding: .utf8))
      return text.flatMap { FCMSender.Settings(serviceAccount: $0, url: address) }
    }
  }
}
