import Crypto
import Foundation

/// A secret as the database holds it: in a box, to which the database does not have the key. That is derived from one of
/// the refresh token keys. In front of the box stand, readable but not to be exchanged, the key's id and a note.
struct Sealed: Sendable {
  /// What is stored.
  let bytes: Data
  let note: String
  private let kid: String
  /// Where the box begins.
  private let start: Int

  /// - Parameters:
  ///   - note: of 255 bytes at most.
  ///   - label: names the use: what is sealed for one cannot be opened for another.
  init(_ secret: String, note: String = "", label: String, keys: SigningKeys) throws {
    let kid = keys.signing.kid
    guard let key = keys.derived(kid: kid, label: label), let size = UInt8(exactly: note.utf8.count) else {
      throw DeliveryFailure(description: "what stands beside a sealed secret is too long")
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

  /// Nil unless it looks like one.
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

  /// The secret.
  func opened(label: String, keys: SigningKeys) throws -> String {
    guard let key = keys.derived(kid: kid, label: label) else {
      throw DeliveryFailure(description: "it is sealed with the refresh token key \(kid), which is not configured")
    }
    let bytes = Array(self.bytes)
    let box = try AES.GCM.SealedBox(combined: bytes[start...])
    return String(decoding: try AES.GCM.open(box, using: key, authenticating: bytes[..<start]), as: UTF8.self)
  }
}
