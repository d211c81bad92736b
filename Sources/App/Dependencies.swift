import Logging
import Postgres

/// All that a route or the worker can reach.
public struct Dependencies: Sendable {
  public let database: Database
  let accessTokens: AccessTokens
  let refreshTokenKeys: SigningKeys
  let passwords: Passwords
  let logsAllRequests: Bool
  let mailWebhook: MailWebhook?
  public let logger: Logger

  public init(_ configuration: MusterConfiguration, name: String, logger: Logger) async throws {
    database = try Database(configuration.database(name, logger: logger))
    accessTokens = await AccessTokens(keys: configuration.accessTokenKeys, lifetime: configuration.accessTokenSeconds)
    refreshTokenKeys = configuration.refreshTokenKeys
    passwords = Passwords(cost: configuration.scrypt)
    logsAllRequests = configuration.logsAllRequests
    mailWebhook = configuration.mailWebhook
    self.logger = logger
  }
}

/// What the program carries inside: an installed binary needs no checkout.
public enum Resources {
  public static var migrations: [Migration] {
    Embedded.migrations.map { Migration(fileName: $0.key, text: $0.value) }
  }

  static var openAPI: String { Embedded.openapi["openapi.yaml"] ?? "" }
  static var commonPasswords: String { Embedded.commonpasswords["common-passwords.txt"] ?? "" }
  static var seeds: [String: String] { Embedded.seeds }
}
