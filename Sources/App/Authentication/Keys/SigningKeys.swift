import Crypto
import Foundation

/// Secret keys by id, as in `kid:base64,kid:base64`. The first one signs and all verify, so keys can be rotated without
/// logging anyone out.
public struct SigningKeys: Sendable {
  let all: [(kid: String, key: SymmetricKey)]

  /// - Throws: a message about the mistake, without any part of a key.
  public init(_ text: String) throws(Malformed) {
    var keys: [(kid: String, key: SymmetricKey)] = []
    for part in text.split(separator: ",") {
      let pieces = part.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
      guard pieces.count == 2, let data = Data(base64Encoded: pieces[1]) else {
        throw Malformed(message: "must look like kid:base64,kid:base64")
      }
      guard pieces[0].wholeMatch(of: /[A-Za-z0-9_-]{1,32}/) != nil else {
        throw Malformed(message: "key ids are 1 to 32 letters, digits, _ or -")
      }
      guard data.count >= 32 else { throw Malformed(message: "the key \(pieces[0]) has fewer than 32 bytes") }
      guard !keys.contains(where: { $0.kid == pieces[0] }) else {
        throw Malformed(message: "the key id \(pieces[0]) occurs twice")
      }
      keys.append((pieces[0], SymmetricKey(data: data)))
    }
    guard !keys.isEmpty else { throw Malformed(message: "must name at least one key") }
    all = keys
  }

  public struct Malformed: Error {
    public let message: String
  }

  var signing: (kid: String, key: SymmetricKey) { all[0] }

  func key(_ kid: String) -> SymmetricKey? {
    all.first { $0.kid == kid }?.key
  }

  /// Derives a key for one other use. The derived key reveals nothing about the original one.
  ///
  /// - Parameter label: names the use.
  func derived(kid: String, label: String) -> SymmetricKey? {
    key(kid).map { Self.derived(from: $0, label: label) }
  }

  /// The same from the key that signs.
  func derived(label: String) -> SymmetricKey { Self.derived(from: signing.key, label: label) }

  private static func derived(from key: SymmetricKey, label: String) -> SymmetricKey {
    HKDF<SHA256>.deriveKey(inputKeyMaterial: key, info: Data(label.utf8), outputByteCount: 32)
  }

  /// The published keys of `muster dev`. They are safe only for a service that listens on the local machine. With them,
  /// phones stay logged in when it restarts.
  static let published = (
    access: "dev:bm90IGEgc2VjcmV0OiBmb3IgbXVzdGVyIGRldiBvbmx5",
    refresh: "dev:YWxzbyBub3QgYSBzZWNyZXQ6IG11c3RlciBkZXYgb25seQ==",
    address: "dev:bm9yIGlzIHRoaXMgYSBzZWNyZXQ6IG11c3RlciBkZXYgb25seQ=="
  )

  /// Whether one of the keys is a published one, under any id.
  var arePublished: Bool {
    let published = [Self.published.access, Self.published.refresh, Self.published.address].compactMap {
      try? SigningKeys($0)
    }.flatMap(\.all)
    return all.contains { own in published.contains { $0.key == own.key } }
  }

  /// A fresh key with a random id, as a configuration value.
  public static func generate() -> String {
    let key = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) }
    let kid = String(UInt32.random(in: .min ... .max), radix: 36)
    return "\(kid):\(key.base64EncodedString())"
  }
}
