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

  /// The ids of the keys.
  public var kids: [String] { all.map(\.kid) }

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

  /// Whether one key is among both, under any id.
  func shares(_ others: SigningKeys) -> Bool {
    all.contains { own in others.all.contains { $0.key == own.key } }
  }

  /// A fresh key with a random id, as a configuration value.
  public static func generate() -> String {
    let key = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) }
    let kid = String(UInt32.random(in: .min ... .max), radix: 36)
    return "\(kid):\(key.base64EncodedString())"
  }
}

/// Tokens that the server recognizes without storing them: `label.kid.content.mac`. The MAC is made with a server key
/// over everything before it, and over a context that the token itself does not contain.
extension SigningKeys {
  /// Nil if there is no key with this id.
  func token(_ label: String, _ content: Data, for context: String = "", kid: String) -> String? {
    guard let key = key(kid) else { return nil }
    let text = "\(label).\(kid).\(content.base64URL)"
    let mac = HMAC<SHA256>.authenticationCode(for: Self.signed(text, context), using: key)
    return "\(text).\(Data(mac).base64URL)"
  }

  /// Nil unless one of the keys signed it, with this label and for this context.
  func read(_ token: String, _ label: String, for context: String = "") -> (kid: String, content: Data)? {
    guard token.isASCII else { return nil }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 4, parts[0] == label, let key = key(parts[1]), let content = Data(base64URL: parts[2]),
      let mac = Data(base64URL: parts[3]),
      HMAC<SHA256>.isValidAuthenticationCode(
        mac, authenticating: Self.signed(parts[0...2].joined(separator: "."), context), using: key)
    else { return nil }
    return (parts[1], content)
  }

  /// A text has exactly two dots, so no context can make it look like another text.
  private static func signed(_ text: String, _ context: String) -> Data {
    Data((context.isEmpty ? text : "\(text).\(context)").utf8)
  }
}

extension Data {
  /// Without padding, as in RFC 4648 section 5.
  var base64URL: String {
    let bytes = base64EncodedData().lazy.filter { $0 != UInt8(ascii: "=") }.map { byte in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      default: byte
      }
    }
    return String(decoding: Array(bytes), as: UTF8.self)
  }

  init?(base64URL text: String) {
    var bytes = text.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      default: byte
      }
    }
    while !bytes.count.isMultiple(of: 4) { bytes.append(UInt8(ascii: "=")) }
    self.init(base64Encoded: Data(bytes))
  }
}

extension Date {
  /// The current time in whole seconds, as providers and most libraries expect it in a JWT.
  static var wholeSecond: Date { Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down)) }
}
