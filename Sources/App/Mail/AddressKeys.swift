import Crypto
import Foundation

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
