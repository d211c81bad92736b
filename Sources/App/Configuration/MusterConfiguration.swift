import Foundation
import HTTPServer
import Logging
import Postgres

private let table = Variable.table

/// The kind of database server.
public enum Engine: String, CaseIterable, Sendable {
  case postgres
  /// Several nodes that speak PostgreSQL's protocol. See ``Database/Configuration/isPortable``.
  case distributed
}

/// The configuration, read once from the environment. ``Variable`` describes each value.
public struct MusterConfiguration: Sendable {
  /// The program to configure. Each program needs different variables.
  public enum Program: Sendable {
    case serve, worker, dev
    /// Signs and verifies no tokens, and serves no requests.
    case tool
  }

  public var databaseURL: String
  /// The role of `serve` and `worker`, to which `muster migrate` grants their rights.
  public var databaseRole: String?
  public var accessTokenKeys: SigningKeys
  public var refreshTokenKeys: SigningKeys
  public var addressKeys: SigningKeys
  /// Required by `serve` only. If it is nil, the service uses the address on which it listens.
  public var publicURL: String?
  /// Nil unless the program serves HTTPS.
  public var certificate: ServerCertificate?
  public var cors: CORS?
  public var accessTokenSeconds: Int
  public var poolSize: Int
  /// Whether a pooler may give each transaction another session. Then no connection listens for notifications.
  public var isBehindPooler: Bool
  public var engine: Engine
  /// Nil for the maximum that the limit of open files allows.
  public var maximumConnections: Int?
  /// 0: no limit.
  public var connectionsPerAddress: Int
  public var drainSeconds: Int
  public var trustedProxies: TrustedProxies
  public var isThrottling: Bool
  public var isLimitingRates: Bool
  /// The number of `serve` processes that share the rate limits.
  public var processes: Int
  public var scrypt: Passwords.Cost
  var zoneFolder: String
  /// Days in the archive; nil if archived events are kept.
  public var eventRetention: Int?
  public var logsAllRequests: Bool
  public var logsAddresses: Bool
  public var metricsListening: MetricsListening
  public var mailWebhook: MailWebhook?
  public var mailsVisitors: Bool
  public var allowsPrivateWebhooks: Bool
  var trustedCertificates: String?
  var apple: IdentityProvider.Settings
  var google: IdentityProvider.Settings
  var appleGrants: AppleGrants.Settings?
  /// Nil unless a key of Apple's push service is configured.
  var apns: APNsSender.Settings?
  /// Nil unless an account of Google's push service is configured.
  var fcm: FCMSender.Settings?
  var appLinks: AppLinks
  /// Names that look like variables of Muster but are unknown.
  public var unknownVariables: [String] = []

  /// A missing or malformed variable, as one line that names it.
  public struct Problem: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
      self.description = description
    }
  }

  /// Reads the environment, and an optional `.env` file in the working directory for variables that the environment
  /// leaves out.
  ///
  /// - Parameters:
  ///   - overrides: values that take precedence over all others.
  ///   - fallbacks: values for variables that have none otherwise.
  public static func load(
    for program: Program = .serve, environment: [String: String] = ProcessInfo.processInfo.environment,
    file: String? = ".env", overrides: [String: String] = [:], fallbacks: [String: String] = [:]
  ) async throws -> MusterConfiguration {
    let written = try file.map { try values(inFile: $0) } ?? [:]
    let variables = Variables(layers: [overrides, environment, written, fallbacks, defaults(for: program)])
    var configuration = try MusterConfiguration(variables)
    try configuration.check(for: program)
    // Other programs may not be able to read the files.
    if program == .serve || program == .dev { configuration.certificate = try Self.certificate(variables) }
    configuration.unknownVariables = Variable.unknown(among: environment.keys) + Variable.unknown(among: written.keys)
    return configuration
  }

  private static func values(inFile path: String) throws -> [String: String] {
    guard FileManager.default.fileExists(atPath: path) else { return [:] }
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
      throw Problem("the file \(path) cannot be read")
    }
    return try EnvironmentFile(parsing: text, name: path).values
  }

  /// Generated keys for programs that do not use them, and the published keys of `dev`.
  private static func defaults(for program: Program) -> [String: String] {
    let (access, refresh) = (table.accessTokenKeys.name, table.refreshTokenKeys.name)
    let address = table.addressKeys.name
    return switch program {
    case .serve: [:]
    // The worker opens what the service has sealed with refresh token keys, but signs no access tokens.
    case .worker: [access: SigningKeys.generate()]
    case .dev:
      [
        access: SigningKeys.published.access, refresh: SigningKeys.published.refresh,
        address: SigningKeys.published.address,
      ]
    case .tool: [access: SigningKeys.generate(), refresh: SigningKeys.generate(), address: SigningKeys.generate()]
    }
  }

  private func check(for program: Program) throws(Problem) {
    if program == .serve, publicURL == nil {
      // If two processes had different URLs, one stamp would stand for two contents.
      throw Problem("\(table.publicURL.name) is not set: it must be \(Self.publicURLForm)")
    }
    if program == .serve || program == .worker {
      try refusePublishedKeys()
      try refuseSharedKeys()
    }
  }

  /// Whether anyone who has read the source can sign this service's tokens.
  public var hasPublishedKeys: Bool {
    [accessTokenKeys, refreshTokenKeys, addressKeys].contains(where: \.arePublished)
  }

  /// - Throws: ``Problem`` if the configuration ``hasPublishedKeys``.
  public func refusePublishedKeys() throws(Problem) {
    for (keys, variable) in namedKeys where keys.arePublished {
      throw Problem("\(variable.name) has the published key of `muster dev`: run `muster keys` for a secret one")
    }
  }

  /// With a key that has two uses, one kind of token could be passed off as another.
  private func refuseSharedKeys() throws(Problem) {
    let uses = namedKeys
    for (place, (keys, variable)) in uses.enumerated() {
      for (earlier, other) in uses[..<place] where earlier.shares(keys) {
        throw Problem("\(variable.name) has a key of \(other.name): run `muster keys` for one of its own")
      }
    }
  }

  private var namedKeys: [(keys: SigningKeys, variable: Variable)] {
    [
      (accessTokenKeys, table.accessTokenKeys), (refreshTokenKeys, table.refreshTokenKeys),
      (addressKeys, table.addressKeys),
    ]
  }

  /// The database configuration of this process.
  ///
  /// - Parameter name: the name in `pg_stat_activity`.
  public func database(_ name: String, logger: Logger) -> Database.Configuration {
    var database = Database.Configuration(url: databaseURL)
    database.applicationName = name
    database.connections = poolSize
    database.isBehindPooler = isBehindPooler
    database.isPortable = engine == .distributed
    database.logger = logger
    return database
  }
}

extension MusterConfiguration {
  private static let publicURLForm = "an http or https URL without a query, like https://api.example.com"

  fileprivate init(_ variables: Variables) throws {
    databaseURL = try Self.databaseURL(variables)
    databaseRole = try variables.parsed(table.databaseRole, "the name of a role, of at most 63 bytes") {
      (1...63).contains($0.utf8.count) ? $0 : nil
    }
    accessTokenKeys = try variables.keys(table.accessTokenKeys)
    refreshTokenKeys = try variables.keys(table.refreshTokenKeys)
    addressKeys = try variables.keys(table.addressKeys)
    publicURL = try variables.parsed(table.publicURL, Self.publicURLForm) { PublicURL.normalized($0) }
    let origins = "origins like https://app.example.com,http://localhost:3000, or *"
    cors = try variables.parsed(table.corsOrigins, origins) { CORS($0) }
    accessTokenSeconds = try variables.number(table.accessTokenSeconds, in: 1...86_400)
    poolSize = try variables.number(table.poolSize, in: 1...1000)
    isBehindPooler = try variables.isOn(table.isBehindPooler)
    engine = try variables.value(table.engine, "postgres or distributed") { Engine(rawValue: $0) }
    maximumConnections = try variables.parsed(table.maximumConnections, "a whole number from 1 to 1000000") {
      Int($0, in: 1...1_000_000)
    }
    connectionsPerAddress = try variables.number(table.connectionsPerAddress, in: 0...1_000_000)
    drainSeconds = try variables.number(table.drainSeconds, in: 0...300)
    zoneFolder = try variables.text(table.zoneFolder) ?? ZoneDatabase.usualFolder
    eventRetention = try variables.parsed(table.eventRetention, "a whole number from 180 to 36500") {
      Int($0, in: Event.retentions)
    }
    let proxies = "addresses and CIDR blocks, like 10.0.0.0/8,::1"
    trustedProxies = try variables.parsed(table.trustedProxies, proxies) { TrustedProxies($0) } ?? TrustedProxies()
    isThrottling = try variables.isOn(table.isThrottling)
    isLimitingRates = try variables.isOn(table.isLimitingRates)
    processes = try variables.number(table.processes, in: 1...1000)
    scrypt = try variables.value(table.scrypt, "like ln=15,r=8,p=3") { Passwords.Cost($0) }
    logsAllRequests = try variables.value(table.logsRequests, "failures or all") {
      ["failures": false, "all": true][$0]
    }
    logsAddresses = try variables.isOn(table.logsAddresses)
    let listening = "host:port, like 127.0.0.1:9464, or off"
    metricsListening = try variables.parsed(table.metrics, listening) { MetricsListening($0) } ?? .byDefault
    mailsVisitors = try variables.isOn(table.mailsVisitors)
    allowsPrivateWebhooks = try variables.isOn(table.allowsPrivateWebhooks)
    mailWebhook = try Self.mailWebhook(variables, allowsPlainHTTP: allowsPrivateWebhooks)
    trustedCertificates = try variables.text(table.trustedCertificates)
    apple = try Self.provider(table.apple, variables)
    google = try Self.provider(table.google, variables)
    appleGrants = try Self.appleGrants(variables)
    apns = try Self.apns(variables)
    fcm = try Self.fcm(variables)
    appLinks = try Self.appLinks(variables)
  }

  private static func databaseURL(_ variables: Variables) throws -> String {
    let form = "a libpq URI such as postgresql://user@host/muster"
    let url = try variables.required(table.databaseURL, hint: form)
    // The URL is not quoted, because it may contain a password.
    guard Database.Configuration(url: url).isWellFormed else {
      throw Problem("\(table.databaseURL.name) must be \(form), but is not")
    }
    return url
  }

  /// Neither value is quoted, because a URL may also contain a password.
  private static func mailWebhook(_ variables: Variables, allowsPlainHTTP: Bool) throws -> MailWebhook? {
    let secret = try variables.parsed(table.mailWebhookSecret, "whsec_ and 24 to 64 bytes in base64") {
      WebhookSecret($0)
    }
    let form = "an https URL, or an http one with \(table.allowsPrivateWebhooks.name)=on"
    let address = try variables.parsed(table.mailWebhook, form) { text -> String? in
      guard let url = URL(string: text), let scheme = url.scheme, url.host()?.isEmpty == false,
        scheme == "https" || scheme == "http" && allowsPlainHTTP
      else { return nil }
      return text
    }
    guard let address else { return nil }
    guard let secret else {
      throw Problem(
        "\(table.mailWebhookSecret.name) is not set: \(table.mailWebhook.name) requires it")
    }
    return MailWebhook(url: address, secret: secret)
  }

  private static func certificate(_ variables: Variables) throws -> ServerCertificate? {
    switch (try variables.text(table.tlsCertificate), try variables.text(table.tlsKey)) {
    case (nil, nil): return nil
    case (let certificate?, let key?): return try readCertificate(certificate, key)
    case (nil, _):
      throw Problem("\(table.tlsCertificate.name) is not set: \(table.tlsKey.name) requires it")
    case (_, nil):
      throw Problem("\(table.tlsKey.name) is not set: \(table.tlsCertificate.name) requires it")
    }
  }

  private static func readCertificate(_ certificateFile: String, _ keyFile: String) throws -> ServerCertificate {
    let names = ServerCertificate.Names(certificate: table.tlsCertificate.name, key: table.tlsKey.name)
    do throws(ServerCertificate.Problem) {
      return try ServerCertificate(certificateFile: certificateFile, keyFile: keyFile, names: names)
    } catch {
      throw Problem(error.description)
    }
  }
}

extension MusterConfiguration {
  /// Reads the time zone database.
  public func zones() throws -> ZoneDatabase { try ZoneDatabase(folder: zoneFolder) }
}

/// The settings for providers of identities, push services and the apps that open share links.
extension MusterConfiguration {
  private static func provider(_ provider: Variable.Provider, _ variables: Variables) throws
    -> IdentityProvider.Settings
  {
    let clientIDs = (try variables.text(provider.clientIDs) ?? "").split(separator: ",")
      .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    return IdentityProvider.Settings(clientIDs: clientIDs, keysURL: try variables.url(provider.keysURL))
  }

  private static func appleGrants(_ variables: Variables) throws -> AppleGrants.Settings? {
    let (tokenURL, revokeURL) = (try variables.url(table.appleTokenURL), try variables.url(table.appleRevokeURL))
    guard let apple = try variables.appleKey(table.appleKey) else { return nil }
    return AppleGrants.Settings(
      teamID: apple.teamID, keyID: apple.keyID, key: apple.key, tokenURL: tokenURL, revokeURL: revokeURL)
  }

  private static func apns(_ variables: Variables) throws -> APNsSender.Settings? {
    let (production, sandbox) = (try variables.baseURL(table.apnsURL), try variables.baseURL(table.apnsSandboxURL))
    guard let apple = try variables.appleKey(table.apnsKey) else { return nil }
    return APNsSender.Settings(
      teamID: apple.teamID, keyID: apple.keyID, key: apple.key, topic: try variables.text(table.apnsTopic),
      url: production,
      sandboxURL: sandbox)
  }

  private static func appLinks(_ variables: Variables) throws -> AppLinks {
    let apple = try variables.parsed(table.appleAppIDs, "app ids like ABCDE12345.com.example.app") {
      AppLinks.appleAppIDs($0)
    }
    let package = try variables.parsed(table.androidPackage, "a package like com.example.app") {
      AppLinks.androidPackage($0)
    }
    let fingerprints = try variables.parsed(
      table.androidFingerprints, "SHA-256 fingerprints like AB:CD:... of 32 bytes"
    ) {
      AppLinks.fingerprints($0)
    }
    guard package == nil || fingerprints != nil else {
      let (missing, given) = (table.androidFingerprints.name, table.androidPackage.name)
      throw Problem("\(missing) is not set: \(given) requires it")
    }
    return AppLinks(
      appleAppIDs: apple ?? [], androidPackage: package, androidFingerprints: fingerprints ?? [])
  }

  private static func fcm(_ variables: Variables) throws -> FCMSender.Settings? {
    let address = try variables.baseURL(table.fcmURL)
    let form = "the JSON of a service account key, or the path of a file with it"
    return try variables.parsed(table.fcmServiceAccount, form) { given in
      let text = given.hasPrefix("{") ? given : (try? String(contentsOfFile: given, encoding: .utf8))
      return text.flatMap { FCMSender.Settings(serviceAccount: $0, url: address) }
    }
  }
}
