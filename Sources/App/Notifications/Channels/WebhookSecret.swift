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
    Self.headers(id: id, body: body, signedWith: [self], now: now)
  }

  /// - Parameter secrets: several while the receiver goes over from one to another: it is to know either signature.
  static func headers(
    id: String, body: ByteBuffer, signedWith secrets: [WebhookSecret], now: Timestamp = .now()
  ) -> [(name: String, value: String)] {
    let seconds = String(now.microseconds / 1_000_000)
    let signed = Data("\(id).\(seconds).".utf8) + body.readableBytesView
    let signatures = secrets.map { secret in
      "v1," + Data(HMAC<SHA256>.authenticationCode(for: signed, using: secret.key)).base64EncodedString()
    }
    return [
      ("webhook-id", id), ("webhook-timestamp", seconds), ("webhook-signature", signatures.joined(separator: " ")),
    ]
  }
}

extension WebhookSecret {
  private static let label = "muster webhook secret"

  /// As the database has it: in a box that it cannot open.
  static func sealed(_ text: String, keys: SigningKeys) throws -> Data {
    try Sealed(text, label: label, keys: keys).bytes
  }

  static func opened(_ sealed: Data, keys: SigningKeys) throws -> WebhookSecret {
    guard let box = Sealed(bytes: sealed) else {
      throw DeliveryFailure(description: "the webhook's secret is no sealed one", remedy: .none)
    }
    guard let secret = WebhookSecret(try box.opened(label: label, keys: keys)) else {
      throw DeliveryFailure(description: "the webhook's secret is malformed", remedy: .none)
    }
    return secret
  }
}
