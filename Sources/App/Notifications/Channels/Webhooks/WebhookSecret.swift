import Crypto
import Foundation
import HTTPServer
import Postgres

/// The key that a webhook's receiver shares with us. A signature according to Standard Webhooks 1.0 proves to the
/// receiver that a message is from us, is unchanged, and is not an old one sent again.
public struct WebhookSecret: Sendable {
  private let key: SymmetricKey

  /// `whsec_` and 24 to 64 bytes in base64; nil for anything else.
  public init?(_ text: String) {
    let prefix = "whsec_"
    let base64 = String(text.dropFirst(prefix.count))
    // The decoder also accepts other forms.
    guard text.hasPrefix(prefix), let bytes = Data(base64Encoded: base64), bytes.base64EncodedString() == base64,
      (24...64).contains(bytes.count)
    else { return nil }
    key = SymmetricKey(data: bytes)
  }

  /// A new secret, as its receiver gets it.
  static func fresh() -> String {
    "whsec_" + SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) }.base64EncodedString()
  }

  /// The headers for a body.
  ///
  /// - Parameters:
  ///   - id: the same at every attempt, so that the receiver recognizes a repeated one.
  ///   - now: the time of this attempt.
  func headers(id: String, body: ByteBuffer, now: Timestamp = .now()) -> [(name: String, value: String)] {
    Self.headers(id: id, body: body, signedWith: [self], now: now)
  }

  /// - Parameter secrets: several while the receiver changes from one to another, so that it can verify either
  ///   signature.
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

  /// As the database stores it: sealed with a key that the database does not have.
  static func sealed(_ text: String, keys: SigningKeys) throws -> Data {
    try Sealed(text, label: label, keys: keys).bytes
  }

  static func opened(_ sealed: Data, keys: SigningKeys) throws -> WebhookSecret {
    guard let box = Sealed(bytes: sealed) else {
      throw DeliveryFailure(description: "the webhook's secret is not sealed", remedy: .none)
    }
    guard let secret = WebhookSecret(try box.opened(label: label, keys: keys)) else {
      throw DeliveryFailure(description: "the webhook's secret is malformed", remedy: .none)
    }
    return secret
  }
}
