/// An environment variable: its name, default and meaning. `--help` and the warning about unknown names use ``all``. A
/// test compares docs/configuration.md with it.
public struct Variable: Sendable {
  public let name: String
  /// The default value as text; nil if there is none.
  let value: String?
  /// The default as the table shows it.
  public let fallback: String
  /// One sentence, without a period.
  public let help: String
  /// Whether the value may come from a file, whose path is in `NAME_FILE`.
  let isSecret: Bool

  private init(_ name: String, _ value: String, _ help: String) {
    (self.name, self.value, self.fallback, self.help, isSecret) = (name, value, value, help, false)
  }

  /// A variable without a default. The table shows `fallback` instead.
  private init(_ name: String, without fallback: String = "none", isSecret: Bool = false, _ help: String) {
    (self.name, value, self.fallback, self.help, self.isSecret) = (name, nil, fallback, help, isSecret)
  }

  static func secret(_ name: String, without fallback: String = "none", _ help: String) -> Variable {
    Variable(name, without: fallback, isSecret: true, help)
  }

  var fileName: String { name + "_FILE" }

  /// All variables, in the order of `--help` and of the guide. Only stored properties count.
  struct Table: Sendable {
    // MARK: The service

    let databaseURL = Variable.secret(
      "DATABASE_URL", without: "required",
      "the database: a libpq URI or `key=value` pairs; of several hosts, the first that accepts writes is used")
    let databaseRole = Variable(
      "MUSTER_DATABASE_ROLE",
      "the role of `serve` and `worker`, if it is not the owner of the tables: `muster migrate` grants it their rights")
    let accessTokenKeys = Variable.secret(
      "MUSTER_ACCESS_TOKEN_KEYS", without: "required by `serve`",
      "`kid:base64,...`, at least 32 bytes each: the first signs access tokens, all verify; `muster keys` prints one")
    let refreshTokenKeys = Variable.secret(
      "MUSTER_REFRESH_TOKEN_KEYS", without: "required by `serve` and `worker`",
      "the same for refresh tokens, and for tokens in mails")
    let addressKeys = Variable.secret(
      "MUSTER_ADDRESS_KEYS", without: "required by `serve` and `worker`",
      "the same for fingerprints of e-mail addresses that opted out of mails: put new keys in front, and never remove one"
    )
    let publicURL = Variable(
      "MUSTER_PUBLIC_URL", without: "required by `serve`",
      "the service's URL for clients, such as `https://api.example.com`: each `pictureUrl` begins with it")
    let tlsCertificate = Variable(
      "MUSTER_TLS_CERTIFICATE",
      "the path of a PEM file with the certificate and its chain: `serve` then speaks HTTPS; read again when it changes"
    )
    let tlsKey = Variable(
      "MUSTER_TLS_KEY", without: "required with `MUSTER_TLS_CERTIFICATE`", "the path of a PEM file with its key")
    let corsOrigins = Variable(
      "MUSTER_CORS_ORIGINS",
      "comma-separated origins whose web pages may call the API, such as `https://app.example.com`; `*` for all")
    let accessTokenSeconds = Variable(
      "MUSTER_ACCESS_TOKEN_SECONDS", "900", "how many seconds an access token is valid: 1 to 86400")
    let poolSize = Variable(
      "MUSTER_POOL_SIZE", "16", "database connections for transactions, per process: 1 to 1000")
    let isBehindPooler = Variable(
      "MUSTER_PGBOUNCER", "off", "`on` if `DATABASE_URL` points to PgBouncer in transaction mode")
    let engine = Variable(
      "MUSTER_ENGINE", "postgres",
      "`distributed` for an engine that lacks some of PostgreSQL's features: see [Engines](engines.md)")
    let maximumConnections = Variable(
      "MUSTER_MAX_CONNECTIONS", without: "the limit of open files, minus a reserve",
      "the maximum number of client connections; further ones are refused")
    let connectionsPerAddress = Variable(
      "MUSTER_CONNECTIONS_PER_ADDRESS", "256",
      "the same per IPv4 address or IPv6 /64; `0` for no limit; trusted proxies are exempt")
    let drainSeconds = Variable(
      "MUSTER_DRAIN_SECONDS", "0",
      "how many seconds `serve` keeps accepting after SIGTERM, while `/health/ready` returns 503: 0 to 300")
    let trustedProxies = Variable(
      "MUSTER_TRUSTED_PROXIES", "comma-separated addresses and CIDR blocks whose `X-Forwarded-For` is trusted")
    let isLimitingRates = Variable(
      "MUSTER_RATE_LIMITS", "on", "`off` for load tests: no limits on requests per second")
    let processes = Variable(
      "MUSTER_PROCESSES", "1",
      "the number of `serve` processes over which a balancer spreads the requests of each user, 1 to 1000: each process allows its share of the limits"
    )
    let isThrottling = Variable(
      "MUSTER_THROTTLING", "on",
      "`off` for load tests: no waits after failed or repeated logins, no limits on friend requests, reports and mails to strangers"
    )
    let scrypt = Variable(
      "MUSTER_SCRYPT", "ln=15,r=8,p=3", "the cost of hashing a password, at most 256 MiB each; never lower it")

    let zoneFolder = Variable(
      "MUSTER_TZDIR", ZoneDatabase.usualFolder, "the folder of the time zone database; read at startup")

    let eventRetention = Variable(
      "MUSTER_EVENT_RETENTION_DAYS", without: "kept",
      "how many days an event stays in the archive before `worker` deletes it for everyone: 180 to 36500; set it for `serve` too, whose pages say so"
    )

    // MARK: Logs and metrics

    let logsRequests = Variable(
      "MUSTER_LOG_REQUESTS", "failures", "which requests are logged: `failures` (500 and above) or `all`")
    let logsAddresses = Variable(
      "MUSTER_LOG_ADDRESSES", "off", "`on` adds the client's address to each logged request")
    let metrics = Variable(
      "MUSTER_METRICS_LISTEN", without: "`127.0.0.1:9464`, for `worker` `127.0.0.1:9465`",
      "`host:port` for `/metrics`, or `off`; if the default port is in use, the process only logs a warning")

    // MARK: Mails and webhooks

    let mailWebhook = Variable.secret(
      "MUSTER_MAIL_WEBHOOK", "an https URL to which `worker` posts mails; without it, they wait in the queue")
    let mailWebhookSecret = Variable.secret(
      "MUSTER_MAIL_WEBHOOK_SECRET", without: "required with `MUSTER_MAIL_WEBHOOK`",
      "signs mails: `whsec_` and 24 to 64 bytes in base64")
    let mailsVisitors = Variable(
      "MUSTER_VISITOR_MAILS", "on", "`off`: visitors get no mails, and forms ask for no e-mail address")
    let allowsPrivateWebhooks = Variable(
      "MUSTER_WEBHOOK_ALLOW_PRIVATE", "off", "`on` allows webhooks with plain http or private addresses")
    let trustedCertificates = Variable(
      "MUSTER_TRUSTED_CERTIFICATES", "a PEM file of certificates to trust in addition to the system's")

    // MARK: Signing in with Apple and Google

    let apple = Provider(
      clientIDs: Variable("MUSTER_APPLE_CLIENT_IDS", "comma-separated ids of the apps that may sign in with Apple"),
      keysURL: Variable(
        "MUSTER_APPLE_KEYS_URL", "https://appleid.apple.com/auth/keys", "the URL of Apple's public keys"))
    let google = Provider(
      clientIDs: Variable("MUSTER_GOOGLE_CLIENT_IDS", "comma-separated ids of the apps that may sign in with Google"),
      keysURL: Variable(
        "MUSTER_GOOGLE_KEYS_URL", "https://www.googleapis.com/oauth2/v3/certs", "the URL of Google's public keys"))
    let appleKey = AppleKey("APPLE", "Apple's key to revoke its grants when accounts are deleted")
    let appleTokenURL = Variable(
      "MUSTER_APPLE_TOKEN_URL", "https://appleid.apple.com/auth/token", "the URL that issues Apple's grants")
    let appleRevokeURL = Variable(
      "MUSTER_APPLE_REVOKE_URL", "https://appleid.apple.com/auth/revoke", "the URL that revokes Apple's grants")

    // MARK: Push notifications

    let apnsKey = AppleKey("APNS", "Apple's key to push to iOS devices")
    let apnsTopic = Variable("MUSTER_APNS_TOPIC", "the app's id for iOS devices that register without one")
    let apnsURL = Variable(
      "MUSTER_APNS_URL", "https://api.push.apple.com", "Apple's push service, for apps from the App Store")
    let apnsSandboxURL = Variable(
      "MUSTER_APNS_SANDBOX_URL", "https://api.sandbox.push.apple.com", "the same for apps in development")
    let fcmServiceAccount = Variable.secret(
      "MUSTER_FCM_SERVICE_ACCOUNT",
      "Google's key to push to Android devices: the JSON of a service account key, or the path of a file with it")
    let fcmURL = Variable("MUSTER_FCM_URL", "https://fcm.googleapis.com", "Google's push service")

    // MARK: Share links

    let appleAppIDs = Variable(
      "MUSTER_APPLE_APP_IDS",
      "comma-separated ids of the iOS apps that open share links, like `ABCDE12345.com.example.app`")
    let androidPackage = Variable(
      "MUSTER_ANDROID_PACKAGE", "the package of the Android app that opens share links, like `com.example.app`")
    let androidFingerprints = Variable(
      "MUSTER_ANDROID_FINGERPRINTS", without: "required with `MUSTER_ANDROID_PACKAGE`",
      "comma-separated SHA-256 fingerprints of its certificates, in upper case with colons")

    // MARK: `muster dev`

    let postgresPrograms = Variable(
      "MUSTER_PG_BIN", "the folder of PostgreSQL's programs, if `muster dev` and the tests do not find it")
  }

  static let table = Table()
  public static let all = variables(in: table)

  private static func variables(in table: Any) -> [Variable] {
    Mirror(reflecting: table).children.flatMap { child in
      (child.value as? Variable).map { [$0] } ?? variables(in: child.value)
    }
  }
}

extension Variable {
  struct Provider: Sendable {
    let clientIDs: Variable
    let keysURL: Variable
  }

  /// The parts of a key that Apple has issued to a team.
  struct AppleKey: Sendable {
    let teamID: Variable
    let keyID: Variable
    let privateKey: Variable

    fileprivate init(_ use: String, _ purpose: String) {
      teamID = Variable("MUSTER_\(use)_TEAM_ID", "\(purpose): the team's id; set all three or none")
      keyID = Variable("MUSTER_\(use)_KEY_ID", "the id of that key")
      privateKey = Variable.secret(
        "MUSTER_\(use)_PRIVATE_KEY", #"that key in PEM; `\n` may stand for a line break"#)
    }

    var all: [Variable] { [teamID, keyID, privateKey] }
  }
}

extension Variable {
  /// The lines of `--help`.
  public static var listing: String {
    all.map { "  \($0.name)  (\($0.fallback))\n      \($0.help)" }.joined(separator: "\n")
  }

  /// The names of the variables that may come from a file.
  public static var secrets: String {
    all.filter(\.isSecret).map(\.name).joined(separator: ", ")
  }

  /// Names that look like variables of Muster but are unknown, such as misspelled ones.
  static func unknown(among names: some Sequence<String>) -> [String] {
    // `MUSTER_PORT` belongs to the compose file, which reads the same file.
    let known = Set(all.map(\.name) + all.filter(\.isSecret).map(\.fileName) + ["MUSTER_PORT"])
    return Set(names).filter { $0.hasPrefix("MUSTER_") && !known.contains($0) }.sorted()
  }
}
