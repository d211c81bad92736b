import Configuration
import Foundation
import JWTKit
import Logging
import Postgres
import SystemPackage

/// What the environment says, read once. Every variable is named here, with its default.
public struct MusterConfiguration: Sendable {
  /// `DATABASE_URL`: a libpq URI or `key=value` string; several hosts are allowed.
  public var databaseURL: String
  /// `MUSTER_ACCESS_TOKEN_KEYS`: `kid:base64,...`, at least 32 bytes each; the first signs, all verify.
  public var accessTokenKeys: SigningKeys
  /// `MUSTER_REFRESH_TOKEN_KEYS`: the same for refresh tokens.
  public var refreshTokenKeys: SigningKeys
  /// `MUSTER_ACCESS_TOKEN_SECONDS` (900): how long an access token lives.
  public var accessTokenSeconds: Int
  /// `MUSTER_SCRYPT` (`ln=15,r=8,p=3`): what hashing a password costs.
  public var scrypt: Passwords.Cost
  /// `MUSTER_RATE_LIMITS` (`on`): `off` for load tests, which fail to log in more often than people do.
  public var isThrottling: Bool
  /// `MUSTER_TRUSTED_PROXIES` (none): addresses and CIDR blocks whose `X-Forwarded-For` is believed.
  public var trustedProxies: TrustedProxies
  /// `MUSTER_APPLE_CLIENT_IDS` (none: nobody signs in with Apple): the apps' ids, comma-separated.
  /// `MUSTER_APPLE_KEYS_URL` (`https://appleid.apple.com/auth/keys`).
  var apple: IdentityProvider.Settings
  /// `MUSTER_GOOGLE_CLIENT_IDS` (none), `MUSTER_GOOGLE_KEYS_URL` (`https://www.googleapis.com/oauth2/v3/certs`).
  var google: IdentityProvider.Settings
  /// `MUSTER_APPLE_TEAM_ID`, `MUSTER_APPLE_KEY_ID`, `MUSTER_APPLE_PRIVATE_KEY` (PEM; `\n` may stand for a line's end): all
  /// three or none. `MUSTER_APPLE_TOKEN_URL` (`https://appleid.apple.com/auth/token`), `MUSTER_APPLE_REVOKE_URL`
  /// (`https://appleid.apple.com/auth/revoke`).
  var appleGrants: AppleGrants.Settings?
  /// `MUSTER_TRUSTED_CERTIFICATES` (none): a file of certificates in PEM, trusted besides the system's.
  var trustedCertificates: String?
  /// `MUSTER_PGBOUNCER` (`off`): `on` where `DATABASE_URL` leads through PgBouncer in transaction mode.
  public var isBehindPooler: Bool
  /// `MUSTER_LOG_REQUESTS` (`failures`): or `all`.
  public var logsAllRequests: Bool
  /// `MUSTER_MAIL_WEBHOOK`: where mails are posted, signed with `MUSTER_MAIL_WEBHOOK_SECRET` (`whsec_` and base64).
  /// Without one they wait in the queue.
  public var mailWebhook: MailWebhook?
  /// `MUSTER_PUBLIC_URL` (where `serve` listens): where clients find the service, for the URLs of pictures.
  public var publicURL: String?
  /// `MUSTER_WEBHOOK_ALLOW_PRIVATE` (`off`): `on` lets webhooks be plain http, and have private addresses.
  public var allowsPrivateWebhooks: Bool
  /// `MUSTER_APNS_TEAM_ID`, `MUSTER_APNS_KEY_ID`, `MUSTER_APNS_PRIVATE_KEY` (PEM; `\n` may stand for a line's end): all
  /// three or none. `MUSTER_APNS_TOPIC` (none): the app's id, for devices that name none. `MUSTER_APNS_URL`
  /// (`https://api.push.apple.com`), `MUSTER_APNS_SANDBOX_URL` (`https://api.sandbox.push.apple.com`).
  var apns: APNsSender.Settings?
  /// `MUSTER_FCM_SERVICE_ACCOUNT` (none): the JSON of a service account's key, or the path of a file with it.
  /// `MUSTER_FCM_URL` (`https://fcm.googleapis.com`).
  var fcm: FCMSender.Settings?
  /// `MUSTER_METRICS_LISTEN` (`127.0.0.1:9464`, of a worker `127.0.0.1:9465`): where `/metrics` is served, or `off`.
  public var metrics: MetricsListening

  /// A variable that is missing or malformed: one line that names it.
  public struct Problem: Error, CustomStringConvertible {
    public let description: String
  }

  /// From the environment, and an optional `.env` file in the working directory for what the environment leaves out.
  ///
  /// - Parameter defaults: of `muster dev`, whose keys are no secret.
  public static func load(
    environment: [String: String] = ProcessInfo.processInfo.environment, file: String? = ".env",
    defaults: [String: String] = [:]
  ) async throws -> MusterConfiguration {
    var providers: [any ConfigProvider] = [EnvironmentVariablesProvider(environmentVariables: environment)]
    if let file {
      do {
        providers.append(
          try await EnvironmentVariablesProvider(environmentFilePath: FilePath(file), allowMissing: true))
      } catch {
        throw Problem(description: "the file \(file) cannot be read: \(error)")
      }
    }
    providers.append(EnvironmentVariablesProvider(environmentVariables: defaults))
    let variables = Variables(reader: ConfigReader(providers: providers))
    let form = "a libpq URI such as postgresql://user@host/muster"
    let databaseURL = try variables.required("DATABASE_URL", hint: form)
    guard Database.Configuration(url: databaseURL).isWellFormed else {
      // Not quoted: it may hold a password.
      throw Problem(description: "DATABASE_URL must be \(form), and is not")
    }
    let allowsPrivateWebhooks = try variables.parsed("MUSTER_WEBHOOK_ALLOW_PRIVATE", false, "on or off") {
      ["off": false, "on": true][$0]
    }
    return MusterConfiguration(
      databaseURL: databaseURL,
      accessTokenKeys: try variables.keys("MUSTER_ACCESS_TOKEN_KEYS"),
      refreshTokenKeys: try variables.keys("MUSTER_REFRESH_TOKEN_KEYS"),
      accessTokenSeconds: try variables.parsed("MUSTER_ACCESS_TOKEN_SECONDS", 900, "a whole number from 1 to 86400") {
        Int($0).flatMap { (1...86_400).contains($0) ? $0 : nil }
      },
      scrypt: try variables.parsed("MUSTER_SCRYPT", .recommended, "like ln=15,r=8,p=3") { Passwords.Cost($0) },
      isThrottling: try variables.parsed("MUSTER_RATE_LIMITS", true, "on or off") { ["off": false, "on": true][$0] },
      trustedProxies: try variables.parsed(
        "MUSTER_TRUSTED_PROXIES", TrustedProxies(), "addresses and CIDR blocks, like 10.0.0.0/8,::1"
      ) { TrustedProxies($0) },
      apple: try variables.provider("APPLE", keys: "https://appleid.apple.com/auth/keys"),
      google: try variables.provider("GOOGLE", keys: "https://www.googleapis.com/oauth2/v3/certs"),
      appleGrants: try variables.appleGrants(),
      trustedCertificates: variables.string("MUSTER_TRUSTED_CERTIFICATES"),
      isBehindPooler: try variables.parsed("MUSTER_PGBOUNCER", false, "on or off") { ["off": false, "on": true][$0] },
      logsAllRequests: try variables.parsed("MUSTER_LOG_REQUESTS", false, "failures or all") {
        ["failures": false, "all": true][$0]
      },
      mailWebhook: try variables.mailWebhook(allowsPlainHTTP: allowsPrivateWebhooks),
      publicURL: try variables.publicURL(),
      allowsPrivateWebhooks: allowsPrivateWebhooks,
      apns: try variables.apns(),
      fcm: try variables.fcm(),
      metrics: try variables.parsed("MUSTER_METRICS_LISTEN", .byDefault, "host:port, like 127.0.0.1:9464, or off") {
        MetricsListening($0)
      })
  }

  /// How this process uses the database.
  ///
  /// - Parameter name: what `pg_stat_activity` shows.
  public func database(_ name: String, logger: Logger) -> Database.Configuration {
    var database = Database.Configuration(url: databaseURL)
    database.applicationName = name
    database.isBehindPooler = isBehindPooler
    database.logger = logger
    return database
  }

  /// For the worker, which opens what the service has sealed, and signs nobody in.
  public static func loadForWorker() async throws -> MusterConfiguration {
    try await load(defaults: ["MUSTER_ACCESS_TOKEN_KEYS": SigningKeys.generate()])
  }

  /// For programs that neither sign nor verify tokens, and need no keys of their own.
  public static func loadForTools() async throws -> MusterConfiguration {
    let unused = SigningKeys.generate()
    return try await load(defaults: ["MUSTER_ACCESS_TOKEN_KEYS": unused, "MUSTER_REFRESH_TOKEN_KEYS": unused])
  }
}

private struct Variables {
  let reader: ConfigReader

  func string(_ name: String) -> String? {
    // Its keys are words with dots: `database.url` is the variable DATABASE_URL.
    let value = reader.string(forKey: ConfigKey(name.lowercased().split(separator: "_").map(String.init)))
    return value?.isEmpty == true ? nil : value
  }

  func required(_ name: String, hint: String) throws -> String {
    guard let value = string(name) else {
      throw MusterConfiguration.Problem(description: "\(name) is not set: it must be \(hint)")
    }
    return value
  }

  func keys(_ name: String) throws -> SigningKeys {
    let text = try required(name, hint: "kid:base64 with at least 32 bytes (`muster keys` prints one)")
    do throws(SigningKeys.Malformed) {
      return try SigningKeys(text)
    } catch {
      throw MusterConfiguration.Problem(description: "\(name) \(error.message)")
    }
  }

  /// Neither value is quoted: an address may hold a password, too.
  func mailWebhook(allowsPlainHTTP: Bool) throws -> MailWebhook? {
    let text = string("MUSTER_MAIL_WEBHOOK_SECRET")
    let secret = text.flatMap { WebhookSecret($0) }
    guard text == nil || secret != nil else {
      throw MusterConfiguration.Problem(
        description: "MUSTER_MAIL_WEBHOOK_SECRET must be whsec_ and 24 to 64 bytes in base64, and is not")
    }
    guard let address = string("MUSTER_MAIL_WEBHOOK") else { return nil }
    guard let url = URL(string: address), let scheme = url.scheme, url.host()?.isEmpty == false,
      scheme == "https" || scheme == "http" && allowsPlainHTTP
    else {
      let form = "an https URL, or an http one with MUSTER_WEBHOOK_ALLOW_PRIVATE=on"
      throw MusterConfiguration.Problem(description: "MUSTER_MAIL_WEBHOOK must be \(form), and is not")
    }
    guard let secret else {
      throw MusterConfiguration.Problem(
        description: "MUSTER_MAIL_WEBHOOK_SECRET is not set: MUSTER_MAIL_WEBHOOK needs it")
    }
    return MailWebhook(url: address, secret: secret)
  }

  func publicURL() throws -> String? {
    guard let text = string("MUSTER_PUBLIC_URL") else { return nil }
    guard let url = PublicURL.normalized(text) else {
      let form = "an http or https URL without a query, like https://api.example.com"
      throw MusterConfiguration.Problem(description: "MUSTER_PUBLIC_URL must be \(form), and is \"\(text)\"")
    }
    return url
  }

  func url(_ name: String, _ fallback: String) throws -> String {
    try parsed(name, fallback, "an https URL") { text in
      guard let url = URL(string: text), url.scheme == "https", url.host()?.isEmpty == false else { return nil }
      return text
    }
  }

  /// A URL that paths are appended to.
  func base(_ name: String, _ fallback: String) throws -> String {
    var text = try url(name, fallback)
    while text.hasSuffix("/") { text.removeLast() }
    return text
  }

  func provider(_ name: String, keys: String) throws -> IdentityProvider.Settings {
    let clientIDs = (string("MUSTER_\(name)_CLIENT_IDS") ?? "").split(separator: ",")
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    return IdentityProvider.Settings(clientIDs: clientIDs, keysURL: try url("MUSTER_\(name)_KEYS_URL", keys))
  }

  func appleGrants() throws -> AppleGrants.Settings? {
    let tokenURL = try url("MUSTER_APPLE_TOKEN_URL", "https://appleid.apple.com/auth/token")
    let revokeURL = try url("MUSTER_APPLE_REVOKE_URL", "https://appleid.apple.com/auth/revoke")
    guard let apple = try appleKey("APPLE") else { return nil }
    return AppleGrants.Settings(
      teamID: apple.teamID, keyID: apple.keyID, key: apple.key, tokenURL: tokenURL, revokeURL: revokeURL)
  }

  func apns() throws -> APNsSender.Settings? {
    let production = try base("MUSTER_APNS_URL", "https://api.push.apple.com")
    let sandbox = try base("MUSTER_APNS_SANDBOX_URL", "https://api.sandbox.push.apple.com")
    guard let apple = try appleKey("APNS") else { return nil }
    return APNsSender.Settings(
      teamID: apple.teamID, keyID: apple.keyID, key: apple.key, topic: string("MUSTER_APNS_TOPIC"), url: production,
      sandboxURL: sandbox)
  }

  func fcm() throws -> FCMSender.Settings? {
    let address = try base("MUSTER_FCM_URL", "https://fcm.googleapis.com")
    guard let given = string("MUSTER_FCM_SERVICE_ACCOUNT") else { return nil }
    let text = given.hasPrefix("{") ? given : (try? String(contentsOfFile: given, encoding: .utf8))
    // Not quoted: it is a secret.
    guard let text, let settings = FCMSender.Settings(serviceAccount: text, url: address) else {
      let form = "the JSON of a service account's key, or the path of a file with it"
      throw MusterConfiguration.Problem(description: "MUSTER_FCM_SERVICE_ACCOUNT must be \(form), and is not")
    }
    return settings
  }

  /// A key that Apple has given to a team: all of its variables or none.
  private func appleKey(_ use: String) throws -> (teamID: String, keyID: String, key: ES256PrivateKey)? {
    let names = ["TEAM_ID", "KEY_ID", "PRIVATE_KEY"].map { "MUSTER_\(use)_\($0)" }
    guard names.contains(where: { string($0) != nil }) else { return nil }
    let values = try names.map { try required($0, hint: "set where one of \(names.joined(separator: ", ")) is") }
    // Not quoted: it is a secret.
    guard let key = try? ES256PrivateKey(pem: values[2].replacing("\\n", with: "\n")) else {
      throw MusterConfiguration.Problem(description: "\(names[2]) must be a P-256 key in PEM, and is not")
    }
    return (teamID: values[0], keyID: values[1], key: key)
  }

  func parsed<Value>(_ name: String, _ fallback: Value, _ form: String, _ parse: (String) -> Value?) throws -> Value {
    guard let text = string(name) else { return fallback }
    guard let value = parse(text) else {
      throw MusterConfiguration.Problem(description: "\(name) must be \(form), and is \"\(text)\"")
    }
    return value
  }
}
