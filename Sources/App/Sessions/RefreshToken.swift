import Crypto
import Foundation

/// Proof that a session may get new tokens: the session's id, a counter and a branch with a MAC over them. Derived from
/// a server key, so that nothing of it is stored and the same one can be given again when an answer was lost.
struct RefreshToken: Equatable, Sendable {
  let session: Session.ID
  let counter: Int
  let branch: Int
  let kid: String

  private static let prefix = "mr1"

  /// `mr1.kid.content.mac`
  func signed(with keys: SigningKeys) throws -> String {
    guard let key = keys.key(kid) else { throw AppError.sessionEnded }
    let mac = HMAC<SHA256>.authenticationCode(for: Data(signedText.utf8), using: key)
    return "\(signedText).\(Data(mac).base64URL)"
  }

  private var signedText: String {
    var content = Data()
    withUnsafeBytes(of: session.rawValue.uuid) { content.append(contentsOf: $0) }
    withUnsafeBytes(of: Int64(counter).bigEndian) { content.append(contentsOf: $0) }
    withUnsafeBytes(of: Int32(branch).bigEndian) { content.append(contentsOf: $0) }
    return "\(Self.prefix).\(kid).\(content.base64URL)"
  }

  init(session: Session.ID, counter: Int, branch: Int, kid: String) {
    self.session = session
    self.counter = counter
    self.branch = branch
    self.kid = kid
  }

  /// Nil unless one of the keys has signed it.
  init?(_ text: String, keys: SigningKeys) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 4, parts[0] == Self.prefix, let key = keys.key(parts[1]),
      let content = Data(base64URL: parts[2]), content.count == 28, let mac = Data(base64URL: parts[3]),
      HMAC<SHA256>.isValidAuthenticationCode(
        mac, authenticating: Data("\(parts[0]).\(parts[1]).\(parts[2])".utf8), using: key)
    else { return nil }
    kid = parts[1]
    (session, counter, branch) = content.withUnsafeBytes { bytes in
      (
        Session.ID(rawValue: UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))),
        Int(Int64(bigEndian: bytes.loadUnaligned(fromByteOffset: 16, as: Int64.self))),
        Int(Int32(bigEndian: bytes.loadUnaligned(fromByteOffset: 24, as: Int32.self)))
      )
    }
  }
}

extension Data {
  /// Without padding, as in RFC 4648 section 5.
  var base64URL: String {
    base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  init?(base64URL text: String) {
    let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    self.init(base64Encoded: text.replacing("-", with: "+").replacing("_", with: "/") + padding)
  }
}
