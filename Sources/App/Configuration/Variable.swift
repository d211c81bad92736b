/// A variable of the environment: its name, its default and its meaning. `--help`, the table in docs/configuration.md and
/// the warning about unknown names are made of this table.
public struct Variable: Sendable {
  public let name: String
  /// The value where none is given, as text; nil if there is none.
  let value: String?
  /// What the table shows as the default.
  public let fallback: String
  /// One sentence, without a full stop.
  public let help: String
  /// Whether the value may come from a file, whose path is in `NAME_FILE`.
  let isSecret: Bool

  private init(_ name: String, _ value: String, _ help: String) {
    (self.name, self.value, self.fallback, self.help, isSecret) = (name, value, value, help, false)
  }

  /// A variable without a default: `fallback` says what that means.
  private init(_ name: String, without fallback: String = "none", isSecret: Bool = false, _ help: String) {
    (self.name, value, self.fallback, self.help, self.isSecret) = (name, nil, fallback, help, isSecret)
  }

  static func secret(_ name: String, without fallback: String = "none", _ help: String) -> Variable {
    Variable(name, without: fallback, isSecret: true, help)
  }

  var fileName: String { name + "_FILE" }

  // MARK: The service

  static let databaseURL = secret(
    "DATABASE_URL", without: "required",
    "the database: a libpq URI or `key=value` words; of several hosts, the first that takes writes is used")
  static let accessTokenKeys = secret(
    "MUSTER_ACCESS_TOKEN_KEYS", without: "required by `serve`",
    "`kid:base64,...`, at least 32 bytes each: the first signs access tokens, all verify; `muster keys` prints one")
  static let refreshTokenKeys = secret(
    "MUSTER_REFRESH_TOKEN_KEYS", without: "required by `serve` and `worker`",
    "the same for refresh tokens, and for tokens that are mailed")
  static let publicURL = Variable(
    "MUSTER_PUBLIC_URL", without: "required by `serve`",
    "where clients find the service, such as `https://api.example.com`: `pictureUrl` begins with it")
  static let accessTokenSeconds = Variable(
    "MUSTER_ACCESS_TOKEN_SECONDS", "900", "how long an access token lives: 1 to 86400")
  static let poolSize = Variable(
    "MUSTER_POOL_SIZE", "16", "connections to the database for transactions, in each process: 1 to 1000")
  static let isBehindPooler = Variable(
    "MUSTER_PGBOUNCER", "off", "`on` where `DATABASE_URL` leads through PgBouncer in transaction mode")
  static let maximumConnections = Variable(
    "MUSTER_MAX_CONNECTIONS", without: "the limit of open files, less a reserve",
    "clients' connections, in all: the newest beyond it is closed at once")
  static let connectionsPerAddress = Variable(
    "MUSTER_CONNECTIONS_PER_ADDRESS", "256",
    "the same for one IPv4 address or IPv6 /64; `0` for no limit; trusted proxies are exempt")
  static let drainSeconds = Variable(
    "MUSTER_DRAIN_SECONDS", "0",
    "how long `serve` goes on accepting after SIGTERM, while `/health/ready` answers 503: 0 to 300")
  static let trustedProxies = Variable(
    "MUSTER_TRUSTED_PROXIES", "addresses and CIDR blocks, comma-separated, whose `X-Forwarded-For` is believed")
  static let isThrottling = Variable(
    "MUSTER_THROTTLING", "on",
    "`off` for load tests: no waits after failed or repeated logins, no limits on friend requests")
  static let scrypt = Variable(
    "MUSTER_SCRYPT", "ln=15,r=8,p=3", "what hashing a password costs; at most 256 MiB each. Only ever raise it")

  // MARK: What it says

  static let logsRequests = Variable(
    "MUSTER_LOG_REQUESTS", "failures", "which requests are logged: `failures` (500 and above) or `all`")
  static let logsAddresses = Variable(
    "MUSTER_LOG_ADDRESSES", "off", "`on` adds the client's address to the lines of requests")
  static let metrics = Variable(
    "MUSTER_METRICS_LISTEN", without: "`127.0.0.1:9464`, for `worker` `127.0.0.1:9465`",
    "`host:port` where `/metrics` is served, or `off`; if the default port is taken, there are none, and a warning")

  // MARK: Mails and webhooks

  static let mailWebhook = secret(
    "MUSTER_MAIL_WEBHOOK", "an https URL where `worker` posts mails; without it they wait in the queue")
  static let mailWebhookSecret = secret(
    "MUSTER_MAIL_WEBHOOK_SECRET", without: "required with it", "signs the mails: `whsec_` and 24 to 64 bytes in base64")
  static let allowsPrivateWebhooks = Variable(
    "MUSTER_WEBHOOK_ALLOW_PRIVATE", "off", "`on` lets webhooks be plain http, and have private addresses")
  static let trustedCertificates = Variable(
    "MUSTER_TRUSTED_CERTIFICATES", "a PEM file of certificates, trusted besides the system's")

  // MARK: Signing in with Apple and Google

  static let apple = Provider(
    clientIDs: Variable("MUSTER_APPLE_CLIENT_IDS", "the apps that may sign in with Apple, comma-separated"),
    keysURL: Variable(
      "MUSTER_APPLE_KEYS_URL", "https://appleid.apple.com/auth/keys", "where Apple's public keys are"))
  static let google = Provider(
    clientIDs: Variable("MUSTER_GOOGLE_CLIENT_IDS", "the apps that may sign in with Google, comma-separated"),
    keysURL: Variable(
      "MUSTER_GOOGLE_KEYS_URL", "https://www.googleapis.com/oauth2/v3/certs", "where Google's public keys are"))
  static let appleKey = AppleKey("APPLE", "Apple's key, to revoke its grants when accounts are deleted")
  static let appleTokenURL = Variable(
    "MUSTER_APPLE_TOKEN_URL", "https://appleid.apple.com/auth/token", "where Apple's grants come from")
  static let appleRevokeURL = Variable(
    "MUSTER_APPLE_REVOKE_URL", "https://appleid.apple.com/auth/revoke", "where Apple's grants are revoked")

  // MARK: Pushes

  static let apnsKey = AppleKey("APNS", "Apple's key, to push to iOS devices")
  static let apnsTopic = Variable("MUSTER_APNS_TOPIC", "the app's id, for iOS devices that name none")
  static let apnsURL = Variable(
    "MUSTER_APNS_URL", "https://api.push.apple.com", "Apple's push service, for apps from the store")
  static let apnsSandboxURL = Variable(
    "MUSTER_APNS_SANDBOX_URL", "https://api.sandbox.push.apple.com", "the same for apps in development")
  static let fcmServiceAccount = secret(
    "MUSTER_FCM_SERVICE_ACCOUNT",
    "Google's key, to push to Android devices: the JSON of a service account's key, or the path of a file with it")
  static let fcmURL = Variable("MUSTER_FCM_URL", "https://fcm.googleapis.com", "Google's push service")

  // MARK: `muster dev`

  static let postgresPrograms = Variable(
    "MUSTER_PG_BIN", "where `muster dev` and the tests find PostgreSQL's programs, if not by themselves")

  /// In the order of `--help` and of the guide.
  public static let all =
    [
      databaseURL, accessTokenKeys, refreshTokenKeys, publicURL, accessTokenSeconds, poolSize, isBehindPooler,
      maximumConnections, connectionsPerAddress, drainSeconds, trustedProxies, isThrottling, scrypt, logsRequests,
      logsAddresses, metrics, mailWebhook, mailWebhookSecret, allowsPrivateWebhooks, trustedCertificates,
      apple.clientIDs, apple.keysURL, google.clientIDs, google.keysURL,
    ] + appleKey.all + [appleTokenURL, appleRevokeURL] + apnsKey.all + [
      apnsTopic, apnsURL, apnsSandboxURL, fcmServiceAccount, fcmURL, postgresPrograms,
    ]
}

extension Variable {
  struct Provider: Sendable {
    let clientIDs: Variable
    let keysURL: Variable
  }

  /// The parts of a key that Apple has given to a team.
  struct AppleKey: Sendable {
    let teamID: Variable
    let keyID: Variable
    let privateKey: Variable

    fileprivate init(_ use: String, _ purpose: String) {
      teamID = Variable("MUSTER_\(use)_TEAM_ID", "\(purpose): the team's id; all three variables or none")
      keyID = Variable("MUSTER_\(use)_KEY_ID", "the id of that key")
      privateKey = Variable.secret(
        "MUSTER_\(use)_PRIVATE_KEY", #"that key in PEM; `\n` may stand for a line's end"#)
    }

    var all: [Variable] { [teamID, keyID, privateKey] }
  }
}

extension Variable {
  /// The lines of `--help`.
  public static var listing: String {
    all.map { "  \($0.name)  (\($0.fallback))\n      \($0.help)" }.joined(separator: "\n")
  }

  /// The names of those that may come from a file.
  public static var secrets: String {
    all.filter(\.isSecret).map(\.name).joined(separator: ", ")
  }

  /// Names that look like variables of Muster and are none, such as misspelt ones.
  static func unknown(among names: some Sequence<String>) -> [String] {
    // The compose file's own, which stands in the same file.
    let known = Set(all.map(\.name) + all.filter(\.isSecret).map(\.fileName) + ["MUSTER_PORT"])
    return Set(names).filter { $0.hasPrefix("MUSTER_") && !known.contains($0) }.sorted()
  }
}
