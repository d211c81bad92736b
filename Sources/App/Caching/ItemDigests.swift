import Crypto
import Foundation

/// Stands for the JSON of an item: the beginning of a keyed hash. See ``ItemDigests``.
struct ItemDigest: Hashable, Sendable {
  /// Of the text: 8 bytes in base64url without padding.
  static let length = 11
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
  /// The values of characters; 64 for those that are not in the alphabet.
  private static let values: [UInt8] = (0...UInt8.max).map { byte in
    alphabet.firstIndex(of: byte).map(UInt8.init) ?? 64
  }

  private let bits: UInt64

  fileprivate init(bits: UInt64) { self.bits = bits }

  /// - Parameter text: ``length`` bytes.
  /// - Returns: nil for text that is not in base64url.
  init?(_ text: ArraySlice<UInt8>) {
    var (bits, last): (UInt64, UInt8) = (0, 0)
    for byte in text.dropLast() {
      last = Self.values[Int(byte)]
      guard last < 64 else { return nil }
      bits = bits << 6 | UInt64(last)
    }
    last = text.last.map { Self.values[Int($0)] } ?? 64
    guard text.count == Self.length, last < 64 else { return nil }
    // Sixty-four bits are ten times six, and four.
    self.bits = bits << 4 | UInt64(last >> 2)
  }

  var text: String {
    String(unsafeUninitializedCapacity: Self.length) { text in
      var bits = bits
      text[10] = Self.alphabet[Int(bits << 2 & 63)]
      bits >>= 4
      for place in (0..<10).reversed() {
        text[place] = Self.alphabet[Int(bits & 63)]
        bits >>= 6
      }
      return Self.length
    }
  }
}

/// Digests of items, by which a phone and the server find out which items the phone lacks. A digest is the beginning of
/// a keyed hash of the item's JSON. Without the key, which is derived from the first refresh token key, no one can make
/// two items with the same digest.
///
/// Another key makes all digests unknown: phones then get their items again. So keys may be rotated at any time, and
/// processes may have different first keys meanwhile.
struct ItemDigests: Sendable {
  private static let label = "muster item digests"

  /// Has hashed the key, and is copied for each item.
  private let code: HMAC<SHA256>

  init(keys: SigningKeys) {
    code = HMAC(key: keys.derived(label: Self.label))
  }

  /// - Parameter json: the item as its collection's GET sends it.
  func digest(of json: some DataProtocol) -> String { hash(of: json).text }

  func hash(of json: some DataProtocol) -> ItemDigest {
    var code = code
    code.update(data: json)
    return ItemDigest(bits: code.finalize().prefix(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
  }
}
