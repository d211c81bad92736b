import Crypto
import Foundation

/// Tokens for links: an id and a 128-bit MAC over it, in base64url. The MAC's key is derived from a refresh token key,
/// so the database alone gives no token away, and a wrong token is refused without a read.
struct IDTokens<Thing>: Sendable {
  private static var macLength: Int { 16 }

  private let keys: [(kid: String, key: SymmetricKey)]
  /// The key for new tokens.
  let kid: String

  /// - Parameter label: names the use. Tokens of one use are not accepted for another.
  init(keys: SigningKeys, label: String) {
    kid = keys.signing.kid
    self.keys = keys.all.compactMap { pair in
      keys.derived(kid: pair.kid, label: label).map { (kid: pair.kid, key: $0) }
    }
  }

  /// Nil if the key is no longer configured. The link is then dead.
  func token(of id: Identifier<Thing>, kid: String) -> String? {
    guard let key = key(kid) else { return nil }
    let content = Data(packing: id)
    return (content + Self.mac(content, key)).base64URL
  }

  /// Nil unless one of the keys made the token.
  func read(_ token: String) -> (id: Identifier<Thing>, kid: String)? {
    guard token.utf8.count == 43, let bytes = Data(base64URL: token), bytes.count == 32, bytes.base64URL == token
    else { return nil }
    let (content, mac) = (Data(bytes.prefix(16)), Data(bytes.suffix(Self.macLength)))
    guard let id = content.unpacked(as: Identifier<Thing>.self) else { return nil }
    return keys.first { Self.mac(content, $0.key).equalsInConstantTime(mac) }.map { (id: id, kid: $0.kid) }
  }

  /// A MAC of an id and of a text that is not part of the token, such as an address: only a mail to that address has
  /// the MAC.
  func proof(of id: Identifier<Thing>, with text: String, kid: String) -> String? {
    guard let key = key(kid) else { return nil }
    return Self.mac(Data(packing: id) + Data(text.utf8), key).base64URL
  }

  func isProof(_ proof: String, of id: Identifier<Thing>, with text: String, kid: String) -> Bool {
    guard let expected = self.proof(of: id, with: text, kid: kid) else { return false }
    return Data(expected.utf8).equalsInConstantTime(Data(proof.utf8))
  }

  private func key(_ kid: String) -> SymmetricKey? { keys.first { $0.kid == kid }?.key }

  private static func mac(_ content: Data, _ key: SymmetricKey) -> Data {
    Data(HMAC<SHA256>.authenticationCode(for: content, using: key).prefix(macLength))
  }
}

extension Data {
  /// Takes the same time wherever the two differ.
  func equalsInConstantTime(_ other: Data) -> Bool {
    count == other.count && zip(self, other).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
