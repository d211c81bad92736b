import Crypto
import Foundation

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
