import Crypto
import Foundation

/// A secret as the database stores it: encrypted in a box with a key that the database does not have, derived from one
/// of the refresh token keys. In front of the box stand the key's id and a note, readable but authenticated.
struct Sealed: Sendable {
  /// The stored bytes.
  let bytes: Data
  let note: String
  private let kid: String
  /// The index at which the box begins.
  private let start: Int

  /// - Parameters:
  ///   - note: at most 255 bytes.
  ///   - label: names the use. A secret sealed for one use cannot be opened for another.
  init(_ secret: String, note: String = "", label: String, keys: SigningKeys) throws {
    let kid = keys.signing.kid
    guard let key = keys.derived(kid: kid, label: label), let size = UInt8(exactly: note.utf8.count) else {
      throw DeliveryFailure(description: "the note of a sealed secret is too long")
    }
    var head = Data([UInt8(kid.utf8.count)])
    head.append(contentsOf: kid.utf8)
    head.append(size)
    head.append(contentsOf: note.utf8)
    let box = try AES.GCM.seal(Data(secret.utf8), using: key, authenticating: head)
    start = head.count
    bytes = head + Data(box.nonce) + box.ciphertext + box.tag
    self.note = note
    self.kid = kid
  }

  /// Nil unless the bytes have the form of a sealed secret.
  init?(bytes: Data) {
    var rest = Array(bytes)[...]
    func text() -> String? {
      guard let size = rest.popFirst(), rest.count >= size else { return nil }
      defer { rest = rest.dropFirst(Int(size)) }
      return String(validating: rest.prefix(Int(size)), as: UTF8.self)
    }
    guard let kid = text(), let note = text() else { return nil }
    self.bytes = bytes
    self.note = note
    self.kid = kid
    start = bytes.count - rest.count
  }

  /// Decrypts the secret.
  func opened(label: String, keys: SigningKeys) throws -> String {
    guard let key = keys.derived(kid: kid, label: label) else {
      throw DeliveryFailure(description: "it is sealed with the refresh token key \(kid), which is not configured")
    }
    let bytes = Array(self.bytes)
    let box = try AES.GCM.SealedBox(combined: bytes[start...])
    return String(decoding: try AES.GCM.open(box, using: key, authenticating: bytes[..<start]), as: UTF8.self)
  }
}
