import Crypto
import Foundation

/// The tokens of share links: the link's id and a 128-bit MAC over it, in base64url. The MAC's key is derived from a
/// refresh token key, so the database alone gives no token away, and a wrong token is refused without a read.
struct LinkTokens: Sendable {
  private static let label = "muster share links"
  private static let macLength = 16

  private let keys: [(kid: String, key: SymmetricKey)]
  /// The key for new links.
  let kid: String

  init(keys: SigningKeys) {
    kid = keys.signing.kid
    self.keys = keys.all.compactMap { pair in
      keys.derived(kid: pair.kid, label: Self.label).map { (kid: pair.kid, key: $0) }
    }
  }

  /// Nil if the key is no longer configured. The link is then dead.
  func token(of id: ShareLink.ID, kid: String) -> String? {
    guard let key = keys.first(where: { $0.kid == kid })?.key else { return nil }
    let content = Self.content(id)
    return (content + Self.mac(content, key)).base64URL
  }

  /// Nil unless one of the keys made the token.
  func read(_ token: String) -> (id: ShareLink.ID, kid: String)? {
    guard token.utf8.count == 43, let bytes = Data(base64URL: token), bytes.count == 32, bytes.base64URL == token
    else { return nil }
    let (content, mac) = (Data(bytes.prefix(16)), Data(bytes.suffix(Self.macLength)))
    let id = content.withUnsafeBytes { ShareLink.ID(rawValue: UUID(uuid: $0.loadUnaligned(as: uuid_t.self))) }
    return keys.first { Self.areEqual(Self.mac(content, $0.key), mac) }.map { (id: id, kid: $0.kid) }
  }

  private static func content(_ id: ShareLink.ID) -> Data { withUnsafeBytes(of: id.rawValue.uuid) { Data($0) } }

  private static func mac(_ content: Data, _ key: SymmetricKey) -> Data {
    Data(HMAC<SHA256>.authenticationCode(for: content, using: key).prefix(macLength))
  }

  /// Takes the same time wherever the two differ.
  private static func areEqual(_ one: Data, _ other: Data) -> Bool {
    one.count == other.count && zip(one, other).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
