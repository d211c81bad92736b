import Crypto
import Foundation

/// Digests of items, by which a phone and the server find out which items the phone lacks. A digest is the beginning of
/// a keyed hash of the item's JSON. Without the key, which is derived from the first refresh token key, no one can make
/// two items with the same digest.
///
/// Another key makes all digests unknown: phones then get their items again. So keys may be rotated at any time, and
/// processes may have different first keys meanwhile.
struct ItemDigests: Sendable {
  private static let label = "muster item digests"
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// Has hashed the key, and is copied for each item.
  private let code: HMAC<SHA256>

  init(keys: SigningKeys) {
    code = HMAC(key: keys.derived(label: Self.label))
  }

  /// - Parameter json: the item as its collection's GET sends it.
  /// - Returns: 8 bytes in base64url without padding: 11 characters.
  func digest(of json: some DataProtocol) -> String {
    var code = code
    code.update(data: json)
    var bits = code.finalize().prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    return String(unsafeUninitializedCapacity: 11) { text in
      // Sixty-four bits are ten times six, and four.
      text[10] = Self.alphabet[Int(bits << 2 & 63)]
      bits >>= 4
      for place in (0..<10).reversed() {
        text[place] = Self.alphabet[Int(bits & 63)]
        bits >>= 6
      }
      return 11
    }
  }
}
