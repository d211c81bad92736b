import Crypto
import Foundation
import HTTPServer
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

/// Makes fingerprints of mailboxes and networks: MACs under keys that the database does not have, so that its rows
/// cannot be compared with a list of addresses. The keys are none of those that sign tokens, because an opt-out must
/// outlive any rotation. The first key makes fingerprints, and opt-outs under all keys count.
struct AddressKeys: Sendable {
  private static let length = 16
  private static let label = "mo1"

  private let keys: SigningKeys

  init(_ keys: SigningKeys) {
    self.keys = keys
  }

  /// - Parameter use: names what the text is. Fingerprints of one use are none of another.
  func fingerprint(_ use: StaticString, _ text: String) -> Data {
    Self.fingerprint(use, text, keys.signing.key)
  }

  /// The fingerprints of a mailbox under all keys; the first one is for new rows.
  func fingerprints(of mailbox: Mailbox) -> [Data] {
    keys.all.map { Self.fingerprint("mailbox", mailbox.text, $0.key) }
  }

  /// The fingerprint of the network of a client's address: its IPv4 /24 or IPv6 /48.
  func network(of address: String) -> Data {
    fingerprint("network", ClientNetworks(address).network)
  }

  private static func fingerprint(_ use: StaticString, _ text: String, _ key: SymmetricKey) -> Data {
    Data(HMAC<SHA256>.authenticationCode(for: Data("\(use):\(text)".utf8), using: key).prefix(length))
  }

  // MARK: Opting out

  /// The token of a link that ends all mails to a mailbox. It holds the fingerprint alone, and works forever.
  func optOutToken(of mailbox: Mailbox) -> String? {
    keys.token(Self.label, fingerprint("mailbox", mailbox.text), kid: keys.signing.kid)
  }

  /// The mailbox's fingerprint. Nil unless one of the keys made the token.
  func mailbox(inToken token: String) -> Data? {
    guard token.utf8.count <= 200, let (_, content) = keys.read(token, Self.label), content.count == Self.length else {
      return nil
    }
    return content
  }
}

/// The networks that a client's address belongs to, for limits: a client with one address of a network may have many.
struct ClientNetworks: Sendable, Hashable {
  /// The widest one: an IPv4 /24 or an IPv6 /48. A client without an address belongs to the network "unknown".
  let network: String
  /// An IPv6 /56, and /64. Nil for IPv4.
  let site: String?
  let subnet: String?

  /// - Parameter address: see ``Context/address``.
  init(_ address: String) {
    guard let address = IPAddress(address) else {
      (network, site, subnet) = ("unknown", nil, nil)
      return
    }
    func block(_ length: Int) -> String {
      "\(IPAddress(bits: (address.bits >> (128 - length)) << (128 - length)))/\(length)"
    }
    network = block(address.isIPv4 ? 120 : 48)
    site = address.isIPv4 ? nil : block(56)
    subnet = address.isIPv4 ? nil : block(64)
  }
}
