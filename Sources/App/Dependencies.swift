import AsyncHTTPClient
import Foundation
import HTTPServer
import Logging
import Postgres

/// Everything that the routes and the worker use. The values of the configuration are members too, such as `cors`.
@dynamicMemberLookup
public final class Dependencies: Sendable {
  private let configuration: MusterConfiguration
  public let database: Database
  let writeQueue = KeyedQueue()
  let queuesWrites: Bool
  let accessTokens: AccessTokens
  let endedSessions: EndedSessions
  public let schemaWatch: SchemaWatch
  let itemDigests: ItemDigests
  let linkTokens: IDTokens<ShareLink>
  let visitorTokens: VisitorTokens
  let mailGate: MailGate
  /// Make the fingerprints of clients' networks.
  var addressKeys: AddressKeys { mailGate.optOuts.keys }
  let passwords: Passwords
  let throttle: Throttle
  let rateLimits: RateLimits
  /// The REST service runs it in the background: see ``IdentityProviders``.
  public let identityProviders: IdentityProviders
  /// Nil unless Apple's key is configured.
  let appleGrants: AppleGrants?
  /// For requests to other services.
  let httpClient: HTTPClient
  let outgoing: Outgoing
  let readiness = Readiness()
  let metrics = MetricsRegistry()
  let publicURL: PublicURL
  let pictureDecoder: PictureDecoder
  public let zones: ZoneDatabase
  public let logger: Logger

  /// Pass longer times only on a machine that is known to be overloaded.
  ///
  /// - Parameters:
  ///   - endedSessionsAge: how long a copy of the ended sessions is trusted.
  ///   - connectTimeout: how long a new connection to the database may take.
  ///   - connectionWait: how long a change waits for a connection to the database.
  ///   - lockWait: how long a statement waits for a lock.
  ///   - queuesWrites: false lets writes to one user or event wait in the database, as writes of several processes do.
  ///   - hostAge: seconds after which an account causes mails to strangers, although it has not verified an address.
  ///   - decoderPath: the folders of the picture decoder. By default, those in `PATH`.
  ///   - launcher: the executable `muster`, which sandboxes the decoder. By default, that of this process.
  ///   - picturePatience: how long an uploaded picture may take.
  ///   - zones: the time zones; nil for those of the configuration's folder.
  public init(
    _ configuration: MusterConfiguration, name: String, logger: Logger, endedSessionsAge: Duration = .seconds(1),
    connectTimeout: Duration = .seconds(2), connectionWait: Duration = .seconds(5), lockWait: Duration = .seconds(5),
    queuesWrites: Bool = true, hostAge: Int = 86_400, decoderPath: String? = nil, launcher: String? = nil,
    picturePatience: Duration = .seconds(30),
    zones: ZoneDatabase? = nil
  ) async throws {
    self.configuration = configuration
    self.zones = try zones ?? configuration.zones()
    let outgoing = try Outgoing(trusting: configuration.trustedCertificates)
    self.outgoing = outgoing
    httpClient = outgoing.client
    var settings = configuration.database(name, logger: logger)
    settings.connectTimeout = connectTimeout
    settings.acquireTimeout = connectionWait
    settings.lockTimeout = lockWait
    settings.statementTimeout = max(settings.statementTimeout, lockWait * 2)
    database = try metrics.measuring { [settings] in try Database(settings) }
    self.queuesWrites = queuesWrites
    schemaWatch = SchemaWatch(database: database, logger: logger)
    accessTokens = await AccessTokens(keys: configuration.accessTokenKeys, lifetime: configuration.accessTokenSeconds)
    endedSessions = try metrics.measuring {
      try EndedSessions(
        configuration.database("\(name) sessions", logger: logger), lifetime: configuration.accessTokenSeconds,
        maximumAge: endedSessionsAge, logger: logger)
    }
    itemDigests = ItemDigests(keys: configuration.refreshTokenKeys)
    linkTokens = IDTokens(keys: configuration.refreshTokenKeys, label: "muster share links")
    visitorTokens = VisitorTokens(keys: configuration.refreshTokenKeys)
    mailGate = MailGate(
      MailOptOuts(configuration), mailsVisitors: configuration.mailsVisitors,
      limitsStrangers: configuration.isThrottling, hostAge: hostAge, metrics: metrics)
    passwords = Passwords(cost: configuration.scrypt)
    throttle = Throttle(database: database, isOn: configuration.isThrottling)
    rateLimits = RateLimits(isOn: configuration.isLimitingRates, processes: configuration.processes)
    let providers = [(IdentityProvider.Name.apple, configuration.apple), (.google, configuration.google)]
    identityProviders = IdentityProviders(
      providers.filter { !$1.clientIDs.isEmpty }.map { name, settings in
        let keys = ProviderKeys(url: settings.keysURL, client: outgoing.client, logger: logger)
        return IdentityProvider(name, clientIDs: settings.clientIDs, keys: keys)
      })
    appleGrants = configuration.appleGrants.map {
      AppleGrants(settings: $0, client: outgoing.client, keys: configuration.refreshTokenKeys)
    }
    publicURL = PublicURL(configuration.publicURL)
    pictureDecoder = PictureDecoder(
      path: decoderPath ?? ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
      launcher: launcher ?? Containment.launcher, patience: picturePatience, logger: logger)
    self.logger = logger
  }

  public subscript<Value>(dynamicMember value: KeyPath<MusterConfiguration, Value>) -> Value {
    configuration[keyPath: value]
  }

  /// The maximum number of client connections.
  var maximumConnections: Int {
    configuration.maximumConnections ?? ConnectionGate.limit(files: FileLimit.current, pool: configuration.poolSize)
  }

  /// Closes all connections to the database and to other services. Calls that still run after one second fail.
  public func close() async {
    endedSessions.close()
    await database.close(drainingFor: .seconds(1))
    await outgoing.close()
  }
}
