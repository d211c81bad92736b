import Foundation
import Postgres

/// The mailboxes that have opted out of mails from strangers, stored as fingerprints: see ``AddressKeys``.
public struct MailOptOuts: Sendable {
  let keys: AddressKeys

  public init(_ configuration: MusterConfiguration) {
    keys = AddressKeys(configuration.addressKeys)
  }

  /// - Parameter mailbox: from ``AddressKeys/mailbox(inToken:)``.
  func add(_ mailbox: Data, in database: Database) async throws {
    try await database.execute("INSERT INTO mail_optouts (mailbox) VALUES (\(mailbox)) ON CONFLICT DO NOTHING")
  }

  func remove(_ mailbox: Data, in database: Database) async throws {
    try await database.execute("DELETE FROM mail_optouts WHERE mailbox = \(mailbox)")
  }

  func remove(_ mailbox: Mailbox, in database: Database) async throws {
    try await database.execute("DELETE FROM mail_optouts WHERE mailbox = ANY(\(keys.fingerprints(of: mailbox)))")
  }

  /// Those of some addresses that get no mails.
  func among(_ addresses: Set<String>, in database: some Querying) async throws -> Set<String> {
    guard !addresses.isEmpty else { return [] }
    let prints = addresses.map { address in (address, keys.fingerprints(of: Mailbox(address))) }
    let found: [Data] = try await database.rows(
      "SELECT mailbox FROM mail_optouts WHERE mailbox = ANY(\(prints.flatMap(\.1)))"
    ).map { try $0["mailbox"] }
    return Set(prints.filter { !Set(found).isDisjoint(with: $0.1) }.map(\.0))
  }

  /// Whether an address has opted out, for operators.
  ///
  /// - Throws: why the text is not an address.
  public func contain(address: String, in database: Database) async throws -> Bool {
    let parsed: EmailAddress
    do {
      parsed = try EmailAddress(parsing: address)
    } catch {
      throw MusterConfiguration.Problem("the address \(error.rawValue)")
    }
    return try await !among([parsed.text], in: database).isEmpty
  }

  /// How many mailboxes have opted out.
  public static func count(in database: some Querying) async throws -> Int {
    try await database.value("SELECT count(*) FROM mail_optouts") ?? 0
  }
}
