import Crypto
import Foundation
import NIOCore
import Postgres

/// The key that a webhook's receiver shares with us. What is signed with it after Standard Webhooks 1.0 is known there
/// to be from us, whole, and no older message sent again.
public struct WebhookSecret: Sendable {
  private let key: SymmetricKey

  /// `whsec_` and 24 to 64 bytes in base64; nil for anything else.
  public init?(_ text: String) {
    let prefix = "whsec_"
    let base64 = String(text.dropFirst(prefix.count))
    // The decoder takes more than the one form.
    guard text.hasPrefix(prefix), let bytes = Data(base64Encoded: base64), bytes.base64EncodedString() == base64,
      (24...64).contains(bytes.count)
    else { return nil }
    key = SymmetricKey(data: bytes)
  }

  /// A new one, as its receiver is told it.
  static func fresh() -> String {
    "whsec_" + SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) }.base64EncodedString()
  }

  /// The headers that go with a body.
  ///
  /// - Parameters:
  ///   - id: the same at every attempt, by which the receiver knows a repeated one.
  ///   - now: of this attempt.
  func headers(id: String, body: ByteBuffer, now: Timestamp = .now()) -> [(name: String, value: String)] {
    let seconds = String(now.microseconds / 1_000_000)
    let signed = Data("\(id).\(seconds).".utf8) + body.readableBytesView
    let signature = Data(HMAC<SHA256>.authenticationCode(for: signed, using: key)).base64EncodedString()
    return [("webhook-id", id), ("webhook-timestamp", seconds), ("webhook-signature", "v1,\(signature)")]
  }
}
